"""The figures of `explore` that all kinds of runs have and those of the data, the catalog of all, and the page."""
