"""Kinds of networks. A kind defines how to load, evaluate, explain and show its runs, and has a baseline.

`kind.py` defines the interface of a kind, and `registry.py` lists the kinds. Each kind is a separate package. The
other modules contain base classes and functions that all kinds share.
"""
