"""The sub-commands of `firstlight`, a module each: `python -m firstlight.commands.train` is `firstlight train`.

Modules, since Lightning and joblib start a process again by the name of its main module.
"""
