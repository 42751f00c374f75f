"""Data made by grammars of our own, for whoever has neither a data set nor a network."""
