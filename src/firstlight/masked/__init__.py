"""Networks that predict masked words, with their data, training, evaluation and figures."""
