"""Interface between the playground and the runs of each kind."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from firstlight.kind.panels.inputs import Inputs

Event = dict[str, Any]  # sent to page.js, one on each line


class Panel(ABC):
    """Base class of the panels, which show a run in the playground. A panel implements `write` or `answer`."""

    kind: ClassVar[str]  # the name of the kind
    title: ClassVar[str]  # the heading above the runs of this kind
    streams: ClassVar[bool] = False

    def __init__(self, run: Any) -> None:
        self.run = run

    @abstractmethod
    def examples(self) -> tuple[str, ...]:
        """Return example texts."""

    def answer(self, asked: Inputs) -> str:
        """Return the result of the run for a text, as HTML. asked: the fields of the request."""
        raise NotImplementedError

    def write(self, asked: Inputs) -> Iterator[Event]:
        """Check a request, and return an iterator of events with the text that the run writes."""
        raise NotImplementedError

    def warm_up(self) -> None:
        """Answer one request, so that the first user does not wait for the initialization of libraries."""
        self.answer(Inputs({"text": next(iter(self.examples()), "a first sentence")}))
