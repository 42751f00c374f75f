"""Transformers as plain PyTorch modules, and their options as dataclasses.

The names in `__all__` are public. Each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
