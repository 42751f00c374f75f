"""Functions that plot data, training and trained models. Each takes arrays and returns a Figure.

A figure is a `matplotlib.figure.Figure`, about 1,200 pixels wide. `save` writes it to a file. No function needs a
display or changes the settings of matplotlib. The names in `__all__` are public. Each is imported at its first use.
"""

from firstlight.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
