"""Docstrings in the form that mkdocstrings shows: with examples as code, and with the options of data modules."""

import inspect
import re
from pkgutil import resolve_name
from typing import Any

from griffe import Extension, Object

HEADING = re.compile(r"^Example:$", re.MULTILINE)
BARE = re.compile(r"\n\n(>>> .+(?:\n.+)*)\Z")  # a last paragraph, without a heading


class ExampleSections(Extension):
    """Extension of griffe that makes each example a section `Examples:`."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is None:
            return
        text = obj.docstring.value
        if "{options}" in text:  # filled in when the class is created
            text = inspect.getdoc(resolve_name(obj.path)) or ""
        text = HEADING.sub("Examples:", text)
        obj.docstring.value = BARE.sub(_as_section, text)


def _as_section(example: re.Match[str]) -> str:
    return "\n\nExamples:\n    " + example[1].replace("\n", "\n    ")
