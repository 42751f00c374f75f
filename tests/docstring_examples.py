"""Functions that run the examples of docstrings."""

import contextlib
import doctest
import inspect
import io
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any


def run_examples(of: Any, folder: Path, **names: Any) -> int:
    """Run the examples of a function, or of a class and its methods, inherited ones too; returns how many there were.

    Every example must run. What it prints is not compared, since it depends on the weights. folder: where it runs;
    names: what the examples may use.
    """
    count = 0
    for name, docstring in _docstrings(of):
        known = dict(names)
        for example in doctest.DocTestParser().get_examples(docstring):
            code = compile(example.source, f"<example of {name}>", "single")
            with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
                exec(code, known)  # noqa: S102 (our own docstrings)
            count += 1
    return count


METHODS = (FunctionType, property, cached_property, classmethod, staticmethod)


def without_an_example(of: type) -> list[str]:
    """Return the public methods and properties of a class whose docstring has no example."""
    return [name for name, docstring in _docstrings(of) if ">>>" not in docstring]


def _docstrings(of: Any) -> Iterator[tuple[str, str]]:
    yield of.__name__, inspect.getdoc(of) or ""
    if not inspect.isclass(of):
        return
    for name in dir(of):
        member = inspect.getattr_static(of, name)
        is_documented = isinstance(member, METHODS)
        if not name.startswith("_") and is_documented:
            yield f"{of.__name__}.{name}", inspect.getdoc(member) or ""
