"""Subject of `explore`: a run, or only the data of a task. Each part is read when the first figure needs it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from hydra.utils import instantiate
from numpy.typing import NDArray

from firstlight.data.encoding import EncodedTexts
from firstlight.data.options import SourceKind
from firstlight.errors import UserError
from firstlight.kind.attention import Attention
from firstlight.kind.data_changes import DataChanges
from firstlight.kind.kind import NothingToDrawError
from firstlight.kind.run import Run

Part = TypeVar("Part")


@dataclass(eq=False)
class Subject:
    """Run or task, with the options of the command line for the figures.

    config: resolved config as plain types. loaded: the run; None for a task. others: the runs to compare with. text:
    the text for the figures, and another one for `patching`; None if they are chosen automatically.
    """

    config: dict[str, Any]
    loaded: Run | None = None
    others: Sequence[Run] = ()
    text: str | None = None
    against: str | None = None
    data_changes: DataChanges = field(default_factory=DataChanges)
    data_node: Any = None  # config of the data, for a task
    log_dir: Path = Path("logs")  # folder that contains the cache
    _parts: dict[str, Any] = field(default_factory=dict)

    @property
    def run(self) -> Any:
        """The run. Only figures that require a run use it."""
        assert self.loaded is not None, "the catalog excludes figures that require a run"
        return self.loaded

    @property
    def context_length(self) -> int:
        return int(self.config["context_length"])

    @property
    def is_sample(self) -> bool:
        """Whether the figures show generated data. For a run, this is the training data."""
        if self.loaded is not None:
            return self.loaded.data_source == SourceKind.sample.value
        return self.data.source.kind is SourceKind.sample

    @property
    def data(self) -> Any:
        """The data, for a run encoded with its vocabulary. Raises NothingToDrawError if it is not found."""
        return self.part("data", self._open_data)

    @property
    def encoded(self) -> EncodedTexts:
        """The encoded rows with a text. Raises NothingToDrawError if they are not found."""
        encoded: EncodedTexts = self.data.encoded if hasattr(self.data, "encoded") else self.data.corpus
        if not len(encoded.rows_of("train")):
            raise NothingToDrawError(f"{self.data.source.where} has no train split; choose data with one")
        return encoded

    def texts(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the texts of some rows, which are read from the source again."""
        return self.data.source.texts(self.data.options.text_columns, rows.tolist())

    @property
    def attention(self) -> Attention:
        """The attention weights of the run for the text."""
        text, _ = self.chosen_text()
        return self.of_text(text if self.text is not None else self.run.beginning(text), self.run.attention)

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
                self._parts[name] = NothingToDrawError(str(error))
        found = self._parts[name]
        if isinstance(found, NothingToDrawError):
            raise found
        return found

    def _choose_text(self) -> tuple[str, list[str]]:
        try:
            return self.run.some_text(self.data), [f"{self.run.choice_note}; choose another by --text"]
        except NothingToDrawError:
            text = self.run.made_up_text()
            return text, [f"the data is not found, so {self.run.made_up_note}; choose another by --text"]

    def _open_data(self) -> Any:
        """Return the data of the run, or the data module of the task."""
        if self.loaded is not None:
            return self.loaded.open_data(self.data_changes, self.log_dir, "train")
        data = instantiate(self.data_node, _convert_="object")
        data.ensure_setup()
        return data
