"""Generated data sets, for use without a data set and without a network. They come from grammars in this package."""
