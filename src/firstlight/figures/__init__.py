"""Functions that draw figures of data, training and trained models. Each takes arrays and returns a Figure.

A figure is a `matplotlib.figure.Figure`, about 1,200 pixels wide. `save` writes it to a file. No function needs a
display or changes the settings of matplotlib. The names in `__all__` are public. Each is imported at its first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
