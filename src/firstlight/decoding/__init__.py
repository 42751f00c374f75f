"""Decoding: sampling, generation with a cache, and beam search. Token ids in, token ids out; no text and no files."""
