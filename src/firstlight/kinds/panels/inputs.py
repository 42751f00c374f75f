"""What the page asks for, checked; texts are cut before anything is computed. Imports nothing heavy."""

import math
from typing import Any

MOST_CHARACTERS = 10_000  # of a text that a run is given


class BadInputError(ValueError):
    """A request that the page does not make: broken, or with a value that its fields do not take."""


class Inputs:
    """The fields of a request."""

    def __init__(self, values: Any) -> None:
        if not isinstance(values, dict):
            raise BadInputError("a request is a JSON object")
        self._values: dict[str, Any] = values

    def text(self, name: str) -> str:
        """A text, which may be empty; "?" for what no UTF-8 can hold."""
        value = self._values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise BadInputError(f"{name}={value!r} is not a text")
        return value.encode("utf-8", "replace").decode()

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float | None:
        """A number from low to high; the default where the field is empty."""
        value = self._values.get(name)
        if value is None or value == "":
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or (isinstance(value, float) and not math.isfinite(value)):
            raise BadInputError(f"{name}={value!r} is not a number")
        if not low <= value <= high:
            is_short = isinstance(value, float) or abs(value) < 2**53
            number = f"{name}={value:g}" if is_short else f"{name}, a number of {len(str(abs(value)))} digits,"
            raise BadInputError(f"{number} must lie between {low:g} and {high:g}")
        return value

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int | None:
        """Likewise a whole number."""
        value = self.number(name, low, high, default)
        if value is not None and value != int(value):
            raise BadInputError(f"{name}={value:g} is not a whole number")
        return None if value is None else int(value)


def beginning_of(text: str) -> tuple[str, list[str]]:
    """The first characters of a text, with what there is to say."""
    if len(text) <= MOST_CHARACTERS:
        return text, []
    return text[:MOST_CHARACTERS], [f"the text is long: only its first {MOST_CHARACTERS:,} characters are read"]


def end_of(text: str) -> tuple[str, list[str]]:
    """The last characters of a text, with what there is to say."""
    if len(text) <= MOST_CHARACTERS:
        return text, []
    return text[-MOST_CHARACTERS:], [f"the prompt is long: only its last {MOST_CHARACTERS:,} characters are read"]
