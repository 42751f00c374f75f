"""The runs that teach a network: their checks, and the fingerprint of their predictions."""

import logging
from collections.abc import Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule
from omegaconf import DictConfig, OmegaConf

from firstlight.config.schema import DistillationOptions
from firstlight.data.store import key_of
from firstlight.data.table_data import TableData
from firstlight.errors import UserError
from firstlight.kind.kind import Kind
from firstlight.kind.load import load
from firstlight.kind.registry import KINDS
from firstlight.kind.run import Run
from firstlight.lit.losses import Distillation, NetworkTeacher
from firstlight.lit.metadata import is_same
from firstlight.lit.training import Training
from firstlight.runs.named import find_runs

log = logging.getLogger(__name__)
DIVISION = (  # the options of `data` that draw splits
    *("folds", "fold", "fold_rows", "fold_seed", "fold_group"),
    *("split", "validation_fraction", "test_fraction", "split_seed"),
)


def set_teacher(config: DictConfig, kind: Kind, module: LightningModule, data: TableData) -> dict[str, Any] | None:
    """Give a module the teacher of its configuration. Return what record and checkpoint say about it, or None.

    Raises UserError for a teacher that does not fit.
    """
    if not config.teacher:
        return None
    if not isinstance(module, Training) or type(module).target_logits is Training.target_logits:
        problem = f"{type(module).__name__} computes its loss without a teacher"
        raise UserError(f"teacher={','.join(config.teacher)}: {problem}")
    options: DistillationOptions = OmegaConf.to_object(config.distillation)  # type: ignore[assignment]
    runs = _teachers(config, kind)
    for run in runs:
        check_teacher(run, data)
    teacher = NetworkTeacher([run.network for run in runs], module.target_logits)
    module.distillation = Distillation(teacher, options.weight, options.temperature)
    names, paths = list(config.teacher), [str(run.path) for run in runs]
    return {"names": names, "runs": paths, "fingerprint": fingerprint_of(runs)}


def _teachers(config: DictConfig, kind: Kind) -> list[Run]:
    """Return the runs that a configuration names as teachers. Raises UserError for a run of another kind."""
    runs = []
    for name in config.teacher:
        for folder in find_runs(name, Path(config.paths.log_dir)):
            run = load(folder.path)
            if run.kind != kind.name:
                noun = KINDS[run.kind].noun
                problem = f"teacher={name}: {run.path} is a {noun}, but this task trains a {kind.noun}"
                raise UserError(f"{problem}; name another run")
            runs.append(run)
    return runs


def refuse_other_teacher(now: dict[str, Any] | None, then: dict[str, Any] | None) -> None:
    """Raise UserError if a run resumes with another teacher. now, then: what `set_teacher` returned."""
    if (now or {}).get("fingerprint") != (then or {}).get("fingerprint"):
        names = [",".join((each or {}).get("names", [])) or "null" for each in (now, then)]
        problem = f"is not the teacher {names[1]} that the resumed run learned from, or it has changed"
        raise UserError(f"teacher={names[0]} {problem}; name or restore that one, or start a new run")


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
