"""Figures of `explore` for data and for runs of all kinds, the catalog of all figures, and the HTML page."""
