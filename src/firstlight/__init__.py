"""firstlight: transformers from first principles, as experiments."""
