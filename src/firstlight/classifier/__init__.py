"""Networks that predict the class of a text, with their data, training, evaluation and figures."""
