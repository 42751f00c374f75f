"""Data: local files, the Hub or a generated sample, as batches that can be resumed."""
