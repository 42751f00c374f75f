"""Folders for other software: weights, vocabularies and computations of trained runs."""
