"""Text to ids: one normalization, one definition of a word, tokenizers of words and of subwords."""
