"""Figures of results: each is a function, arrays in, `matplotlib.figure.Figure` out."""
