"""Networks that write text token by token, with their data, training, evaluation and figures."""
