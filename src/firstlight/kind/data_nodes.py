"""Schemas of `data`, with the checks that need no data. Imports no torch."""

from collections.abc import Mapping
from typing import Any


def form_of(data: Mapping[str, Any]) -> str:
    """Return the form of the data that the options of `data` describe: `reviews`, `pairs`, or `characters` for text.

    Each form has its own figures, which do not depend on the kind of network.
    """
    return "reviews" if "text_column" in data else "pairs" if "source_column" in data else "characters"
