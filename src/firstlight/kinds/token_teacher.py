"""Trained networks as teachers of the kinds that predict tokens. They predict each batch within the step."""

import logging
from typing import Any

from firstlight.data.store import key_of
from firstlight.data.table_data import TableData
from firstlight.errors import UserError
from firstlight.kinds.kind import get
from firstlight.kinds.loaded import LoadedRun
from firstlight.kinds.registry import KINDS
from firstlight.kinds.teachers import Lesson, Named, digest_of, has_same_data
from firstlight.lit.checkpoint import CARD, read_checkpoint
from firstlight.lit.distillation import NetworkTeacher
from firstlight.lit.distillation_options import DistillationOptions

log = logging.getLogger(__name__)


def lesson(named: Named, data: TableData, options: DistillationOptions) -> Lesson:  # noqa: ARG001  (no folds)
    """Return the teacher of a generator, translator or masked language model: the mean of all runs that are named.

    The tokens and the context of a batch differ from step to step, so the networks predict each batch. Raises
    UserError.
    """
    runs = [run for runs in named.values() for run in runs]
    for run in runs:
        _refuse_other_tokens(run, data)
        if has_same_data(run, data):
            log.warning("teacher=%s predicts texts that it was trained on, so its predictions repeat them", run.path)
    target_logits = get(KINDS[runs[0].kind].training).target_logits
    fingerprint = key_of({"teachers": sorted(map(digest_of, runs))})
    return Lesson(NetworkTeacher([run.network for run in runs], target_logits), fingerprint)


def _refuse_other_tokens(run: LoadedRun, data: TableData) -> None:
    """Raise UserError if a run has another vocabulary or a shorter context than the data."""
    card: dict[str, Any] = read_checkpoint(run.checkpoint)[CARD]
    for name, value in data.reading().items():
        if card.get(name) != value:
            raise UserError(
                f"teacher={run.path}: the run has another {name.replace('_', ' ')} than this data, so their tokens "
                "differ; train it with the same tokenizer options on the same data"
            )
    if run.config["context_length"] < data.options.context_length:
        raise UserError(
            f"teacher={run.path}: the run reads {run.config['context_length']} tokens, but this training has "
            f"context_length={data.options.context_length}; lower it, or name a run with a longer context"
        )
