"""What the playground asks of a run, answered by a class for each kind."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

from firstlight.kinds.panels.inputs import Inputs

Event = dict[str, Any]  # as page.js reads them, one a line


class Panel(ABC):
    """A run in the playground. A panel that streams has `write`, any other has `answer`."""

    streams: ClassVar[bool] = False

    def __init__(self, run: Any) -> None:
        self.run = run

    @abstractmethod
    def examples(self) -> tuple[str, ...]:
        """Return texts to begin with."""

    def answer(self, asked: Inputs) -> str:
        """Return what the run says of a text, as HTML. asked: the fields of the request."""
        raise NotImplementedError

    def write(self, asked: Inputs) -> Iterator[Event]:
        """Check the request, then return what the run writes, event by event."""
        raise NotImplementedError

    def warm_up(self) -> None:
        """Answer once, so that the first one to ask does not wait for libraries."""
        self.answer(Inputs({"text": "a first sentence"}))
