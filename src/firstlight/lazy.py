"""Names that are imported when they are first used: those of a package, and the classes of an attribute.

Also what the other imports cost later: garbage collections visit all objects that they have made.
"""

import ast
import gc
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose stub imports the public names.

    package, file: `__name__` and `__file__` of the package. The stub `__init__.pyi` beside the file is also what type
    checkers read.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    modules = {alias.name: str(node.module) for node in imports for alias in node.names}

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find, lambda: sorted(modules), sorted(modules)


def exclude_imports_from_collections() -> None:
    """Exclude all present objects from garbage collections, unless an earlier call in this process has done it.

    New objects are collected as often as by default, since those of a training step may hold large tensors.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.set_threshold(700)


def later(*names: str) -> Any:
    """Return a class attribute whose value is a tuple of classes. names: their full names."""
    return _Later(names)


class _Later:
    """Descriptor of a tuple of classes, which are imported when the attribute is read."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __get__(self, instance: object, owner: type) -> tuple[Any, ...]:
        return tuple(map(resolve_name, self.names))
