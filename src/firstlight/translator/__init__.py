"""Networks that translate a sentence, with their data, training, evaluation and figures."""
