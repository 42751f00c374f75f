"""Other data than a run was trained on, or than a task has. Imports no torch."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from firstlight.errors import UserError


@dataclass
class DataChanges:
    """Other data than the run was trained on."""

    path: str | None = None
    """A file, a folder of split files, or a Hub id."""
    source: Literal["auto", "hub", "local", "sample"] | None = None
    """Where to look, as in training."""
    text_column: str | None = None
    """The column of the texts."""
    label_column: str | None = None
    """The column of the labels."""
    source_column: str | None = None
    """For a translator: the column of what is translated, or the ending of its file."""
    target_column: str | None = None
    """For a translator: likewise of the translations."""
    labels: Literal["binary", "stars", "classes"] | None = None
    """How the labels are read. A run that predicts negative or positive finds out by itself whether they are stars or
    two classes; stars or classes say which they are."""
    lowest_label: int | None = None
    """The label of one star, or of negative where the labels are two numbers."""
    preparation: Literal["text", "plays", "lines"] | None = None
    """For a generator: the text as it is, the plays in it, or a document of each line."""
    separator: str | None = None
    """For a generator: what stands between the lines of --data.preparation lines."""

    @property
    def only_split(self) -> str:
        """The split that a single file is read as: train where the data is the run's own, else test."""
        return "train" if self.path is None else "test"

    def given(self) -> dict[str, Any]:
        """Return the options that were given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def options(self) -> dict[str, Any]:
        """Return what changes in the options of the data: a source of its own has no path, and a path any source."""
        if self.source is not None:
            return {"path": None} | self.given()
        return self.given() | ({"source": "auto"} if self.path is not None else {})


def changed_options(saved: dict[str, Any], kind: type, changes: DataChanges, log_dir: Path) -> Any:
    """The run's own data options, of a class of data/options.py, with what the command line changes.

    log_dir: of the command line; the cache is below it.
    """
    from firstlight.data.options import Labels, Preparation, SourceKind
    from firstlight.kinds.card_data import options_of_card

    options = options_of_card(saved, kind, log_dir / "cache", path=changes.path, source=changes.source)
    changed = changes.options()
    for name in changes.given().keys() - vars(options).keys():
        raise UserError(f"data.{name} means nothing to this kind of run; leave it out")
    if changes.labels is not None:
        changed["labels"] = Labels[changes.labels]
        if options.labels not in (Labels.binary, changed["labels"]):
            raise UserError(f"data.labels={changes.labels}: the run predicts {options.labels.value}; leave it out")
    if changes.preparation is not None:
        changed["preparation"] = Preparation[changes.preparation]
    if "source" in changed:
        changed["source"] = SourceKind[changed["source"]]
    try:
        return replace(options, **changed)
    except ValueError as error:
        raise UserError(str(error)) from error
