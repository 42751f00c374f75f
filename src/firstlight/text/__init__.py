"""Text as token ids: tokenizers and word vectors.

The names in `__all__` are public. Each is imported when it is first used.
"""

from firstlight.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
