"""What is explored: a run, or a task's data alone; each part is opened when the first figure asks for it."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from hydra.utils import instantiate

from firstlight.data.encoding import encode
from firstlight.data.options import ReviewOptions, SourceKind
from firstlight.data.pairs import PairData
from firstlight.data.streams import StreamData
from firstlight.errors import UserError
from firstlight.kinds.attention import Attention, attention_of
from firstlight.kinds.data_changes import DataChanges
from firstlight.kinds.data_nodes import form_of
from firstlight.kinds.drawn import NothingToDrawError
from firstlight.kinds.evaluation import refuse_other_data
from firstlight.kinds.exploration import Exploration
from firstlight.kinds.kind import get
from firstlight.kinds.loaded import LoadedRun
from firstlight.kinds.registry import KINDS
from firstlight.kinds.reviews import Reviews, find_reviews

Part = TypeVar("Part")


@dataclass(eq=False)
class Subject:
    """A run or a task, with what the command line says of the figures.

    config: resolved, as plain types; loaded: None where a task's data is explored alone; other: the run to compare
    with; text: what is drawn, None where it is to be chosen; block, head: which attention is enlarged, from 1.
    """

    config: dict[str, Any]
    loaded: LoadedRun | None = None
    other: LoadedRun | None = None
    text: str | None = None
    block: int | None = None
    head: int | None = None
    data_changes: DataChanges = field(default_factory=DataChanges)
    data_node: Any = None  # of a task without a run
    log_dir: Path = Path("logs")  # below which the cache is
    _parts: dict[str, Any] = field(default_factory=dict)

    @property
    def run(self) -> Any:
        """The run, of a figure that needs one."""
        assert self.loaded is not None, "the catalog lets no task have a figure of a run"
        return self.loaded

    @cached_property
    def exploration(self) -> Exploration:
        """What the run's kind knows of it."""
        exploration: type[Exploration] = get(KINDS[self.run.kind].exploration)
        return exploration(self.run, self.data_changes, self.log_dir)

    @property
    def context_length(self) -> int:
        return int(self.config["context_length"])

    @property
    def is_sample(self) -> bool:
        """Whether the figures are about generated data: of a run, what it was trained on."""
        if self.loaded is not None:
            return self.loaded.data_source == SourceKind.sample.value
        form = form_of(self.config["data"])
        found = self.reviews if form == "reviews" else self.pairs if form == "pairs" else self.stream
        return found.source.kind is SourceKind.sample

    @property
    def data(self) -> Any:
        """The run's data, or other data, in its vocabulary. Raises NothingToDrawError if it is not found."""
        return self.part("data", self.exploration.open_data)

    @property
    def reviews(self) -> Reviews:
        """Labelled texts: of a classifier in its vocabulary. Raises NothingToDrawError if they are not found."""
        if self.loaded is not None and issubclass(self.exploration.data_type, Reviews):
            return self.data
        return self.part("reviews", self._open_reviews)

    @property
    def stream(self) -> StreamData:
        """A text to be continued, likewise."""
        return self.data if self.loaded is not None else self.part("task", self._open_task)

    @property
    def pairs(self) -> PairData:
        """Sentences and their translations, likewise."""
        return self.data if self.loaded is not None else self.part("task", self._open_task)

    @property
    def attention(self) -> Attention:
        """What the run's attentions look at in the text."""
        return self.part(
            "attention", lambda: self.of_text(self._short_text(), lambda text: attention_of(self.run, text))
        )

    def chosen_text(self) -> tuple[str, list[str]]:
        """The text of --text, or one of the validation split, or where the data is gone another; and what to say."""
        if self.text is not None:
            return self.text, []
        return self.part("text", self._choose_text)

    def of_text(self, text: str, compute: Callable[[str], Part]) -> Part:
        """What is computed of a text. Raises UserError for a text that was given, else NothingToDrawError."""
        try:
            return compute(text)
        except UserError as error:
            if self.text is not None:
                raise
            raise NothingToDrawError(str(error)) from error

    def part(self, name: str, make: Callable[[], Part]) -> Part:
        """Make a part of the subject once; one that cannot be made is not tried again."""
        if name not in self._parts:
            try:
                self._parts[name] = make()
            except UserError as error:
                if name == "attention" and self.text is not None:  # of a text that was given
                    raise
                self._parts[name] = NothingToDrawError(str(error))
        found = self._parts[name]
        if isinstance(found, NothingToDrawError):
            raise found
        return found

    def _short_text(self) -> str:
        """The chosen text, but of one that was not given no more than the run sees."""
        text, _ = self.chosen_text()
        return text if self.text is not None else self.exploration.seen(text)

    def _choose_text(self) -> tuple[str, list[str]]:
        try:
            return self.exploration.some_text(self.data), [f"{self.exploration.choice_note}; --text takes another"]
        except NothingToDrawError:
            text, reason = self.exploration.made_up_text()
            return text, [f"the data is not found, so {reason}; --text takes another"]

    def _open_reviews(self) -> Reviews:
        of_texts = {each.name for each in fields(ReviewOptions)}  # not what is done with them, such as masking
        saved = {name: value for name, value in self.config["data"].items() if name in of_texts}
        source, options = find_reviews(saved, self.data_changes, self.log_dir)
        if self.loaded is not None:
            refuse_other_data(self.loaded, source, self.data_changes)
        return Reviews(source, options, encode(source, options))

    def _open_task(self) -> Any:
        """The data module that the task names."""
        data = instantiate(self.data_node, _convert_="object")
        data.prepare_data()
        data.setup("fit")
        return data
