"""The sub-commands of `firstlight`, a module each: `python -m firstlight.commands.train` is `firstlight train`.

Each has its options, its call and its words on the terminal. Nothing imports them but the scripts of src/. They are
modules, since Lightning and joblib start a process again by the name of its main module.
"""
