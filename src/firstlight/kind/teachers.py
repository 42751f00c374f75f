"""Checks of the runs that teach a network, and the fingerprint of their predictions."""

import logging
from collections.abc import Sequence
from hashlib import file_digest

from firstlight.data.store import key_of
from firstlight.data.table_data import TableData
from firstlight.errors import UserError
from firstlight.kind.run import Run
from firstlight.lit.metadata import is_same

log = logging.getLogger(__name__)
DIVISION = (  # the options of `data` that draw splits
    *("folds", "fold", "fold_rows", "fold_seed", "fold_group"),
    *("split", "validation_fraction", "test_fraction", "split_seed"),
)


def fingerprint_of(runs: Sequence[Run]) -> str:
    """Return a hash of the checkpoint files of some runs."""
    digests = []
    for run in runs:
        with run.checkpoint.open("rb") as file:
            digests.append(file_digest(file, "sha256").hexdigest())
    return key_of({"teachers": sorted(digests)})


def check_teacher(run: Run, data: TableData) -> None:
    """Warn if a run was trained on the texts of this data. Raise UserError if it cannot teach a network of this data.

    It has the same vocabulary and classes, reads at least the same context, and has seen no validation text.
    """
    reading = data.reading()
    for name in [*reading, *({"target_encoding"} & run.metadata.keys())]:
        if not is_same(reading.get(name), run.metadata.get(name)):
            problem = f"teacher={run.path}: the run has another {name.replace('_', ' ')} than this data"
            raise UserError(f"{problem}; train it with the same tokenizer options on the same data")
    if run.config["context_length"] < data.options.context_length:
        problem = f"teacher={run.path}: the run reads {run.config['context_length']} tokens"
        raise UserError(f"{problem}, but context_length={data.options.context_length}; lower it, or name another run")
    if run.data_fingerprint == data.source.fingerprint:
        _refuse_other_division(run, data)
        log.warning("teacher=%s predicts texts that it was trained on, so its predictions repeat them", run.path)


def _refuse_other_division(run: Run, data: TableData) -> None:
    """Raise UserError if a run divided the source in another way, so that it has seen rows of this validation split."""
    folds = (data.options.folds, run.config["data"].get("folds"))
    if folds == (None, None) and {"validation", "test"} <= set(getattr(data.source, "splits", ())):  # none is drawn
        return
    for name in DIVISION:
        own, theirs = getattr(data.options, name, None), run.config["data"].get(name)
        own = getattr(own, "name", own)  # of an enum
        if own != theirs:
            problem = f"teacher={run.path}: the run has data.{name}={theirs} and has seen texts of this validation"
            raise UserError(f"{problem}; set data.{name}={theirs}")
