"""Interface between the playground and the runs of each kind: panels, and the fields of a request.

Long texts are cut before any computation.
"""

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from firstlight.files.plain_yaml import read_yaml
from firstlight.kind.attention import AttentionMap
from firstlight.runs.folder import is_finite

MOST_CHARACTERS = 10_000  # characters of a text that a run reads
Event = dict[str, Any]  # sent to page.js, one on each line
Answer = dict[str, Any]  # sent to answers.js, which shows it


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
        if not is_finite(value):
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


def view_of(maps: Sequence[AttentionMap], asked: Inputs) -> dict[str, Any]:
    """Return the attention that is shown: of one map, by default the last, one head or the mean of all heads.

    The weights, (rows, columns), are base64 with one byte for each. asked: the fields map and head of a request.
    """
    last = len(maps) - 1
    chosen = min(asked.integer("map", 0, 1000, last) or 0, last)
    weights, head = maps[chosen].weights, asked.integer("head", 0, 1000)
    head = head if head is not None and head < len(weights) else None
    shown = weights.mean(axis=0) if head is None else weights[head]
    data = base64.b64encode(np.rint(255 * shown.clip(0, 1)).astype(np.uint8).tobytes()).decode()
    choices = {"maps": [each.name for each in maps], "map": chosen, "heads": len(weights), "head": head}
    return {"weights": data, "columns": shown.shape[1], **choices}


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

    def answer(self, asked: Inputs) -> Answer:
        """Return the result of the run for a text: some of these parts, which the page shows in this order.

        notice: a sentence in place of an answer. html: HTML in which all texts of users and networks are escaped.
        verdict, translation: texts. classes: `names` with their `shares`, the `label` that is explained, and whether
        they `are_stars`. bars: more `names` with their `shares`. words: the `words` of a text, the places of those that
        are `read`, their `scores`, the places of `unknown` ones, and the `label` and the `method` of the scores.
        tokens: those that attend to each other. pair: the tokens of the `columns` and of the `rows` of the attention.
        view: their attention, of `view_of`. notes: sentences below the answer.

        asked: the fields of the request.
        """
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
