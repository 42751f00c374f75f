"""Teachers of a training: what a kind of network returns for them, and checks of runs that teach."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest
from typing import Any

from firstlight.data.store import key_of
from firstlight.data.table_data import TableData
from firstlight.errors import UserError
from firstlight.kind.kind import Kind
from firstlight.kind.run import Run
from firstlight.lit.distillation import NetworkTeacher, Teacher
from firstlight.lit.distillation_options import DistillationOptions

Named = Mapping[str, Sequence[Run]]  # the name of each teacher, and its runs; () for one that is not a run
DIVISION = ("split", "validation_fraction", "test_fraction", "split_seed")  # the options of `data` that draw splits


@dataclass(frozen=True)
class DistillationTarget:
    """A teacher for one data module.

    teacher: the function that predicts a batch. fingerprint: a hash of everything that its predictions depend on.
    facts: what the record says about it in addition, such as its accuracy on the training rows.
    """

    teacher: Teacher
    fingerprint: str
    facts: dict[str, Any] = field(default_factory=dict)


def digest_of(run: Run) -> str:
    """Return the hash of a run's checkpoint file."""
    with run.checkpoint.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def has_same_data(run: Run, data: TableData) -> bool:
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
            problem = f"teacher={run.path}: the run has data.{name}={theirs} and has seen texts of this validation"
            raise UserError(f"{problem}; set data.{name}={theirs}")
    return True


log = logging.getLogger(__name__)


def distillation_target_of(
    kind: Kind, named: Named, data: TableData, options: DistillationOptions
) -> DistillationTarget:
    """Return the teacher of a training: that of `teacher.py` of its kind, or the mean of all runs that are named.

    For the mean, the networks predict each batch, because its tokens and context differ from step to step. Raises
    UserError.
    """
    if kind.has("teacher"):
        distillation_target: DistillationTarget = kind.function("teacher", "distillation_target")(named, data, options)
        return distillation_target
    runs = [run for runs in named.values() for run in runs]
    for run in runs:
        _refuse_other_tokens(run, data)
        if has_same_data(run, data):
            log.warning("teacher=%s predicts texts that it was trained on, so its predictions repeat them", run.path)
    target_logits = kind.get("module").target_logits
    fingerprint = key_of({"teachers": sorted(map(digest_of, runs))})
    return DistillationTarget(NetworkTeacher([run.network for run in runs], target_logits), fingerprint)


def _refuse_other_tokens(run: Run, data: TableData) -> None:
    """Raise UserError if a run has another vocabulary or a shorter context than the data."""
    for name, value in data.reading().items():
        if run.metadata.get(name) != value:
            problem = f"teacher={run.path}: the run has another {name.replace('_', ' ')} than this data"
            raise UserError(f"{problem}; train it with the same tokenizer options on the same data")
    if run.config["context_length"] < data.options.context_length:
        problem = f"teacher={run.path}: the run reads {run.config['context_length']} tokens"
        raise UserError(f"{problem}, but context_length={data.options.context_length}; lower it, or name another run")
