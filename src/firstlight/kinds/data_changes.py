"""Options that replace the data of a run or task. Imports no torch."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from firstlight.errors import UserError


@dataclass
class DataChanges:
    """Options that replace the data that the run was trained on."""

    path: str | None = None
    """A file, a folder of split files, or a Hub id."""
    source: Literal["auto", "hub", "local", "sample"] | None = None
    """Where to look for the data, as in training."""
    text_column: str | None = None
    """The column of the texts. For a run of pairs, or of contexts in several columns: columns with commas between
    them."""
    choice_columns: str | None = None
    """For a run of multiple choice: the columns of the answers with commas between them."""
    label_column: str | None = None
    """The column of the labels."""
    source_column: str | None = None
    """For a translator: the column of the source sentences, or the suffix of their file."""
    target_column: str | None = None
    """For a translator: the column of the translations, or the suffix of their file."""
    labels: Literal["binary", "stars", "classes"] | None = None
    """How the labels are read. A run that predicts negative or positive detects whether the labels are stars or two
    classes; set stars or classes to choose yourself. A run of two classes named negative and positive reads stars if
    you set binary."""
    lowest_label: int | None = None
    """The label that means one star, or negative if the labels are two numbers."""
    preparation: Literal["text", "plays", "lines"] | None = None
    """For a generator: text reads the text unchanged, plays reads only the plays in it, and lines reads each line as a
    document."""
    separator: str | None = None
    """For a generator: the separator between the lines of --data.preparation lines."""

    @property
    def only_split(self) -> str:
        """The split as which a single file is read: train for the run's own data, test for other data."""
        return "train" if self.path is None else "test"

    def given(self) -> dict[str, Any]:
        """Return the options that were given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def options(self) -> dict[str, Any]:
        """Return the changed data options. A given source removes the path, and a given path allows any source."""
        if self.source is not None:
            return {"path": None} | self.given()
        return self.given() | ({"source": "auto"} if self.path is not None else {})


def _answers(columns: str, options: Any) -> list[str]:
    """Return the columns of the answers. Raises UserError unless the run chooses among as many answers."""
    if options.choices is None:
        raise UserError(f"data.choice_columns={columns} requires a run of multiple choice; leave it out")
    names = columns.split(",")
    if len(names) != options.choices.num_choices:
        raise UserError(
            f"data.choice_columns={columns}: the run chooses among {options.choices.num_choices} answers; name as many "
            "columns"
        )
    return names


def changed_options(saved: dict[str, Any], kind: type, changes: DataChanges, log_dir: Path) -> Any:
    """Return the data options of a run, an instance of a class of data/options.py, with the changes applied.

    log_dir: folder of the runs, which contains the cache.
    """
    from firstlight.data.labels import SENTIMENTS
    from firstlight.data.options import Labels, Preparation, SourceKind
    from firstlight.kinds.card_data import options_of_card

    options = options_of_card(saved, kind, log_dir / "cache", path=changes.path, source=changes.source)
    changed = changes.options()
    for name in changes.given().keys() - vars(options).keys():
        raise UserError(f"data.{name} does not apply to this kind of run; leave it out")
    if changes.text_column is not None and (options.reads_pairs or options.choices is not None):
        changed["text_column"] = changes.text_column.split(",")
    if changes.choice_columns is not None:
        changed["choice_columns"] = _answers(changes.choice_columns, options)
    if changes.labels is not None:
        changed["labels"] = Labels[changes.labels]
        is_of_sentiments = saved.get("class_names") == list(SENTIMENTS) and changes.labels == "binary"
        if options.labels not in (Labels.binary, changed["labels"]) and not is_of_sentiments:
            raise UserError(f"data.labels={changes.labels}: the run predicts {options.labels.value}; leave it out")
        if is_of_sentiments:
            changed["class_names"] = None  # those of stars and of sentiments are known
    if changes.preparation is not None:
        changed["preparation"] = Preparation[changes.preparation]
    if "source" in changed:
        changed["source"] = SourceKind[changed["source"]]
    try:
        return replace(options, **changed)
    except ValueError as error:
        raise UserError(str(error)) from error
