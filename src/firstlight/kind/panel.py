"""Interface between the playground and the runs of each kind: panels, and the fields of a request.

Long texts are cut before any computation. Imports no heavy library.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from firstlight.files.plain_yaml import read_yaml

MOST_CHARACTERS = 10_000  # characters of a text that a run reads
Event = dict[str, Any]  # sent to page.js, one on each line


class BadInputError(ValueError):
    """Error of a request that the page never sends: a malformed one, or one with an invalid value."""


class Inputs:
    """Fields of a request."""

    def __init__(self, values: Any) -> None:
        if not isinstance(values, dict):
            raise BadInputError("the request must be a JSON object")
        self._values: dict[str, Any] = values

    def text(self, name: str) -> str:
        """Return a text, which may be empty. Characters that UTF-8 cannot encode are replaced by "?"."""
        value = self._values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise BadInputError(f"{name}={value!r} must be a text")
        return value.encode("utf-8", "replace").decode()

    def number(self, name: str, low: float, high: float, default: float | None = None) -> float | None:
        """Return a number from `low` to `high`, or the default if the field is empty."""
        value = self._values.get(name)
        if value is None or value == "":
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or (isinstance(value, float) and not math.isfinite(value)):
            raise BadInputError(f"{name}={value!r} must be a number")
        if not low <= value <= high:
            raise BadInputError(f"{name} must be between {low:g} and {high:g}")
        return value

    def integer(self, name: str, low: int, high: int, default: int | None = None) -> int | None:
        """Return a whole number from `low` to `high`, or the default if the field is empty."""
        value = self.number(name, low, high, default)
        if value is not None and value != int(value):
            raise BadInputError(f"{name}={value:g} must be a whole number")
        return None if value is None else int(value)


def beginning_of(text: str) -> tuple[str, list[str]]:
    """Return the first MOST_CHARACTERS characters of a text, and notes for the user."""
    if len(text) <= MOST_CHARACTERS:
        return text, []
    return text[:MOST_CHARACTERS], [f"the text is long: only its first {MOST_CHARACTERS:,} characters are read"]


def end_of(text: str) -> tuple[str, list[str]]:
    """Return the last MOST_CHARACTERS characters of a text, and notes for the user."""
    if len(text) <= MOST_CHARACTERS:
        return text, []
    return text[-MOST_CHARACTERS:], [f"the prompt is long: only its last {MOST_CHARACTERS:,} characters are read"]


class Panel(ABC):
    """Base class of the panels, which show a run in the playground. A panel implements `write` or `answer`."""

    kind: ClassVar[str]  # the name of the kind
    title: ClassVar[str]  # the heading above the runs of this kind
    streams: ClassVar[bool] = False
    network: ClassVar[type[Any] | None] = None  # the class of networks that the page can compute in the browser

    def __init__(self, run: Any) -> None:
        self.run = run

    def texts(self, name: str) -> tuple[Any, ...]:
        """Return a list of `examples.yaml` in the package of this kind."""
        return tuple(read_yaml(Path(str(files(type(self).__module__.rpartition(".")[0])), "examples.yaml"))[name])

    @abstractmethod
    def examples(self) -> tuple[str, ...]:
        """Return example texts."""

    def answer(self, asked: Inputs) -> str:
        """Return the result of the run for a text, as HTML. asked: the fields of the request."""
        raise NotImplementedError

    def write(self, asked: Inputs) -> Iterator[Event]:
        """Check a request, and return an iterator of events with the text that the run writes."""
        raise NotImplementedError

    def page_data(self) -> dict[str, Any]:
        """Return what the page needs to compute the run in the browser, besides its network, as JSON.

        `tokenizers` has the JSON of each tokenizer. Only for a panel with a `network`.
        """
        return {"tokenizers": [json.loads(self.run.tokenizer.to_json())]}

    def warm_up(self) -> None:
        """Answer one request, so that the first user does not wait for the initialization of libraries."""
        self.answer(Inputs({"text": next(iter(self.examples()), "a first sentence")}))
