"""The kinds of networks, and what the commands do with each: load, evaluate, predict, explain, show, and a baseline.

`kind.py` says what a kind has to answer, `registry.py` lists the kinds, and each kind is a package of its own. The
other modules hold what the kinds share: base classes, and functions that each of them would otherwise repeat.
"""
