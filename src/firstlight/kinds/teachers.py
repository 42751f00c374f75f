"""Teachers of a training: what a kind of network returns for them, and checks of runs that teach."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest
from typing import Any

from firstlight.data.table_data import TableData
from firstlight.errors import UserError
from firstlight.kinds.loaded import LoadedRun
from firstlight.lit.distillation import Teacher

Named = Mapping[str, Sequence[LoadedRun]]  # the name of each teacher, and its runs; () for one that is not a run
DIVISION = ("split", "validation_fraction", "test_fraction", "split_seed")  # the options of `data` that draw splits


@dataclass(frozen=True)
class Lesson:
    """A teacher for one data module.

    teacher: the function that predicts a batch. fingerprint: a hash of everything that its predictions depend on.
    facts: what the record says about it in addition, such as its accuracy on the training rows.
    """

    teacher: Teacher
    fingerprint: str
    facts: dict[str, Any] = field(default_factory=dict)


def digest_of(run: LoadedRun) -> str:
    """Return the hash of a run's checkpoint file."""
    with run.checkpoint.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def has_same_data(run: LoadedRun, data: TableData) -> bool:
    """Return whether a run was trained on the source of this data.

    Raises UserError if it then divided the source in another way, so that it has seen rows of this validation split.
    """
    if run.data_fingerprint != data.source.fingerprint:
        return False
    if {"validation", "test"} <= set(getattr(data.source, "splits", ())):  # no split is drawn
        return True
    for name in DIVISION:
        own, theirs = getattr(data.options, name, None), run.config["data"].get(name)
        own = getattr(own, "name", own)  # of an enum
        if own != theirs:
            raise UserError(
                f"teacher={run.path}: the run was trained with data.{name}={theirs}, but this training has "
                f"data.{name}={own}, so the teacher has seen texts of its validation split; set the same value"
            )
    return True
