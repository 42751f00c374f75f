"""The teacher of a run: finds what `teacher` names, and gives the LightningModule its predictions."""

from typing import Any

from lightning.pytorch import LightningModule
from omegaconf import DictConfig, OmegaConf

from firstlight.data.table_data import TableData
from firstlight.errors import UserError
from firstlight.kinds.kind import get
from firstlight.kinds.registry import kind_of_config
from firstlight.kinds.teachers import Lesson
from firstlight.lit.distillation import Distillation
from firstlight.lit.distillation_options import DistillationOptions
from firstlight.lit.training import Training


def set_teacher(config: DictConfig, module: LightningModule, data: TableData) -> dict[str, Any] | None:
    """Give a module the teacher of its configuration. Return what record and checkpoint say about it, or None.

    Raises UserError for a teacher that does not fit.
    """
    if not config.teacher:
        return None
    if not isinstance(module, Training):
        raise UserError(
            f"teacher={','.join(config.teacher)}: {type(module).__name__} computes its loss without a teacher"
        )
    kind = kind_of_config(config)
    assert kind.lesson is not None, "checks.py refuses a teacher otherwise"
    options: DistillationOptions = OmegaConf.to_object(config.distillation)  # type: ignore[assignment]
    lesson: Lesson = get(kind.lesson)(list(config.teacher), data, options)
    module.distillation = Distillation(lesson.teacher, options.weight, options.temperature)
    return {"names": list(config.teacher), "fingerprint": lesson.fingerprint, **lesson.facts}


def refuse_other_teacher(now: dict[str, Any] | None, then: dict[str, Any] | None) -> None:
    """Raise UserError if a run resumes with another teacher. now, then: what `set_teacher` returned."""
    if (now or {}).get("fingerprint") != (then or {}).get("fingerprint"):
        names = [",".join((each or {}).get("names", [])) or "null" for each in (now, then)]
        raise UserError(
            f"teacher={names[0]} is not the teacher {names[1]} that the resumed run learned from, or it has changed; "
            "name or restore that one, or start a new run"
        )
