"""Subject of `explore`: a run, or only the data of a task. Each part is read when the first figure needs it."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from hydra.utils import instantiate
from numpy.typing import NDArray

from firstlight.data.encoding import EncodedTexts, encode
from firstlight.data.options import Labels, ReviewOptions, SourceKind, TextOptions
from firstlight.data.sources import Source, find_source
from firstlight.errors import UserError
from firstlight.kind.attention import Attention, attention_of
from firstlight.kind.data_changes import DataChanges, changed_options
from firstlight.kind.data_nodes import form_of
from firstlight.kind.drawn import NothingToDrawError
from firstlight.kind.evaluation import refuse_other_data
from firstlight.kind.exploration import Exploration
from firstlight.kind.kind import get
from firstlight.kind.loaded import LoadedRun
from firstlight.kind.registry import KINDS


@dataclass(frozen=True, eq=False)
class Reviews:
    """Rows with a text, as texts and as token ids."""

    source: Source
    options: TextOptions
    encoded: EncodedTexts
    labels: Labels | None = None  # how the labels become targets, for a run

    def __post_init__(self) -> None:
        if not len(self.encoded.rows_of("train")):
            raise UserError(f"{self.source.where} has no train split; choose data with one")

    def texts(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the texts of some rows, which are read from the source again."""
        return self.source.texts(self.options.text_columns, rows.tolist())


def find_reviews(saved: dict[str, Any], changes: DataChanges, log_dir: Path) -> tuple[Source, Any]:
    """Return the source of the texts of a run or task, and their options. saved: its data options.

    The options are `ReviewOptions` for labelled texts, else `TextOptions`.
    """
    kind = ReviewOptions if "labels" in saved else TextOptions
    known = {each.name for each in fields(kind)}  # without other options, such as those of masking
    options: TextOptions = changed_options({key: saved[key] for key in saved.keys() & known}, kind, changes, log_dir)
    return find_source(options, sample=options.sample.value), options


Part = TypeVar("Part")


@dataclass(eq=False)
class Subject:
    """Run or task, with the options of the command line for the figures.

    config: resolved config as plain types. loaded: the run; None for a task. other: the run to compare with. text: the
    text for the figures; None if it is chosen automatically. block, head: numbers of the attention that is enlarged,
    starting from 1.
    """

    config: dict[str, Any]
    loaded: LoadedRun | None = None
    other: LoadedRun | None = None
    text: str | None = None
    block: int | None = None
    head: int | None = None
    data_changes: DataChanges = field(default_factory=DataChanges)
    data_node: Any = None  # config of the data, for a task
    log_dir: Path = Path("logs")  # folder that contains the cache
    _parts: dict[str, Any] = field(default_factory=dict)

    @property
    def run(self) -> Any:
        """The run. Only figures that require a run use it."""
        assert self.loaded is not None, "the catalog excludes figures that require a run"
        return self.loaded

    @cached_property
    def exploration(self) -> Exploration:
        """The exploration of the run."""
        exploration: type[Exploration] = get(KINDS[self.run.kind].exploration)
        return exploration(self.run, self.data_changes, self.log_dir)

    @property
    def context_length(self) -> int:
        return int(self.config["context_length"])

    @property
    def is_sample(self) -> bool:
        """Whether the figures show generated data. For a run, this is the training data."""
        if self.loaded is not None:
            return self.loaded.data_source == SourceKind.sample.value
        form = form_of(self.config["data"])
        found = self.reviews if form == "reviews" else self.pairs if form == "pairs" else self.stream
        return found.source.kind is SourceKind.sample

    @property
    def data(self) -> Any:
        """The data, encoded with the vocabulary of the run. Raises NothingToDrawError if it is not found."""
        return self.part("data", self.exploration.open_data)

    @property
    def reviews(self) -> Reviews:
        """The rows with a text, for a classifier in its vocabulary. Raises NothingToDrawError if they are not found."""
        if self.loaded is not None and issubclass(self.exploration.data_type, Reviews):
            return self.data
        return self.part("reviews", self._open_reviews)

    @property
    def stream(self) -> Any:
        """The text of a generator. Raises NothingToDrawError if it is not found."""
        return self.data if self.loaded is not None else self.part("task", self._open_task)

    @property
    def pairs(self) -> Any:
        """The sentences and their translations. Raises NothingToDrawError if they are not found."""
        return self.data if self.loaded is not None else self.part("task", self._open_task)

    @property
    def attention(self) -> Attention:
        """The attention weights of the run for the text."""
        return self.part(
            "attention", lambda: self.of_text(self._short_text(), lambda text: attention_of(self.run, text))
        )

    def chosen_text(self) -> tuple[str, list[str]]:
        """Return a text and notes on it: --text, else a validation text, or a made-up one if the data is not found."""
        if self.text is not None:
            return self.text, []
        return self.part("text", self._choose_text)

    def of_text(self, text: str, compute: Callable[[str], Part]) -> Part:
        """Return the result of `compute` for a text. Raises NothingToDrawError if the text is not from --text."""
        try:
            return compute(text)
        except UserError as error:
            if self.text is not None:
                raise
            raise NothingToDrawError(str(error)) from error

    def part(self, name: str, make: Callable[[], Part]) -> Part:
        """Return a part of the subject, which is computed once. An error is raised again without another attempt."""
        if name not in self._parts:
            try:
                self._parts[name] = make()
            except UserError as error:
                if name == "attention" and self.text is not None:  # an error in the user's text
                    raise
                self._parts[name] = NothingToDrawError(str(error))
        found = self._parts[name]
        if isinstance(found, NothingToDrawError):
            raise found
        return found

    def _short_text(self) -> str:
        """Return the text. A text that is not from --text is cut to the context."""
        text, _ = self.chosen_text()
        return text if self.text is not None else self.exploration.seen(text)

    def _choose_text(self) -> tuple[str, list[str]]:
        try:
            return self.exploration.some_text(self.data), [f"{self.exploration.choice_note}; choose another by --text"]
        except NothingToDrawError:
            text, reason = self.exploration.made_up_text()
            return text, [f"the data is not found, so {reason}; choose another by --text"]

    def _open_reviews(self) -> Reviews:
        source, options = find_reviews(self.config["data"], self.data_changes, self.log_dir)
        if self.loaded is not None:
            refuse_other_data(self.loaded, source, self.data_changes)
        return Reviews(source, options, encode(source, options))

    def _open_task(self) -> Any:
        """Return the data module of the task."""
        data = instantiate(self.data_node, _convert_="object")
        data.prepare_data()
        data.setup("fit")
        return data
