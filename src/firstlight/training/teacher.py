"""The teacher of a run: finds what `teacher` names, and gives the LightningModule its predictions."""

from pathlib import Path
from typing import Any

from lightning.pytorch import LightningModule
from omegaconf import DictConfig, OmegaConf

from firstlight.data.table_data import TableData
from firstlight.errors import UserError
from firstlight.kind.kind import Kind
from firstlight.kind.load import load
from firstlight.kind.registry import KINDS
from firstlight.kind.run import Run
from firstlight.kind.teachers import Named, distillation_target_of
from firstlight.lit.distillation import Distillation
from firstlight.lit.distillation_options import DistillationOptions
from firstlight.lit.training import Training
from firstlight.runs.named import find_runs


def set_teacher(config: DictConfig, kind: Kind, module: LightningModule, data: TableData) -> dict[str, Any] | None:
    """Give a module the teacher of its configuration. Return what record and checkpoint say about it, or None.

    Raises UserError for a teacher that does not fit.
    """
    if not config.teacher:
        return None
    if not isinstance(module, Training):
        raise UserError(
            f"teacher={','.join(config.teacher)}: {type(module).__name__} computes its loss without a teacher"
        )
    options: DistillationOptions = OmegaConf.to_object(config.distillation)  # type: ignore[assignment]
    named = _named(config, kind)
    distillation_target = distillation_target_of(kind, named, data, options)
    module.distillation = Distillation(distillation_target.teacher, options.weight, options.temperature)
    runs = [str(run.path) for runs in named.values() for run in runs]
    return {
        "names": list(config.teacher),
        "runs": runs,
        "fingerprint": distillation_target.fingerprint,
        **distillation_target.facts,
    }


def _named(config: DictConfig, kind: Kind) -> Named:
    """Return the teachers of a configuration with their runs. Raises UserError for a run of another kind."""
    named: dict[str, list[Run]] = {}
    for name in config.teacher:
        folders = [] if name in kind.teachers else find_runs(name, Path(config.paths.log_dir))
        named[name] = [load(folder.path) for folder in folders]
        for run in named[name]:
            if run.kind != kind.name:
                noun = KINDS[run.kind].noun
                raise UserError(
                    f"teacher={name}: {run.path} is a {noun}, but this task trains a {kind.noun}; name another run"
                )
    return named


def refuse_other_teacher(now: dict[str, Any] | None, then: dict[str, Any] | None) -> None:
    """Raise UserError if a run resumes with another teacher. now, then: what `set_teacher` returned."""
    if (now or {}).get("fingerprint") != (then or {}).get("fingerprint"):
        names = [",".join((each or {}).get("names", [])) or "null" for each in (now, then)]
        raise UserError(
            f"teacher={names[0]} is not the teacher {names[1]} that the resumed run learned from, or it has changed; "
            "name or restore that one, or start a new run"
        )
