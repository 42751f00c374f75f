"""A training run: its parts, its fit, its resumption and its initial weights."""
