"""The file of a run's predictions for each text of a split, with which reports compare runs on the same texts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.trainer.states import TrainerFn
from numpy.typing import NDArray
from torch import Tensor

from firstlight.callbacks.evaluation import SPLITS, EvaluationCallback
from firstlight.data.tables import IGNORED
from firstlight.runs.predictions import Predictions, key_of, write_predictions

PIECE = 256  # predictions in a unit of a long text, whatever the context is


class WritePredictions(EvaluationCallback):
    """Write the losses and hits of each text of `Trainer.validate` as `validation.npz`, those of a test as `test.npz`.

    A unit is a text, a pair of sentences, or PIECE consecutive predictions of a long text. The validations within a
    training write no file. Several processes write none, because each has a part of the split.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts: list[dict[str, Tensor]] = []

    def begin_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        self.parts = []

    def add_batch(self, trainer: Trainer, pl_module: Any, stage: str, outputs: Any, batch: Any) -> None:
        if not self.reads(trainer) or not isinstance(outputs, dict):
            return
        if "probabilities" in outputs:
            part = of_classes(outputs.get("rows", batch.rows), outputs["probabilities"], outputs["targets"])
        elif "token_losses" in outputs:
            part = _of_tokens(outputs, batch)
        else:
            return  # the steps of a module of the user return something else
        self.parts.append({name: numbers.cpu() for name, numbers in part.items()})

    def end_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        parts, self.parts = self.parts, []
        if parts:
            found = {name: torch.cat([part[name] for part in parts]).numpy() for name in parts[0]}
            self.keep(with_groups(predictions_of(found), getattr(trainer, "datamodule", None)), stage)

    def reads(self, trainer: Trainer) -> bool:
        """Return whether the predictions of this evaluation are read."""
        return trainer.state.fn is not TrainerFn.FITTING and trainer.world_size == 1

    def keep(self, predictions: Predictions, stage: str) -> None:
        """Do what the callback is for with the predictions of a split."""
        write_predictions(self.folder / f"{SPLITS[stage]}.npz", predictions)


def of_classes(rows: Tensor, shares: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """Return the loss and the hit of each row, (rows,). shares: (rows, classes) probabilities; targets: (rows,)."""
    predicted = shares.argmax(dim=1)
    smallest = torch.finfo(shares.dtype).tiny
    return {
        "rows": rows,
        "losses": -shares.gather(1, targets[:, None])[:, 0].clamp(min=smallest).log().float(),
        "tokens": torch.ones_like(targets),
        "correct": (predicted == targets).long(),
        "checksums": targets,
        "targets": targets,
        "predicted": predicted,
    }


def _of_tokens(outputs: Any, batch: Any) -> dict[str, Tensor]:
    """Return the sums over each row of a batch, or single predictions if the batch has no rows."""
    losses, targets = outputs["token_losses"].float(), batch.targets
    is_real = targets != IGNORED
    single = {
        "losses": losses,
        "tokens": is_real.long(),
        "correct": ((outputs["predicted"] == targets) & is_real).long(),
        "checksums": targets.masked_fill(~is_real, 0).long(),
    }
    if not hasattr(batch, "rows"):
        return {name: numbers.flatten() for name, numbers in single.items()}
    if losses.ndim == 1:  # the masked tokens of all rows in one list
        places = batch.places // batch.token_ids.shape[1]
        zeros = {name: numbers.new_zeros(len(batch.rows)) for name, numbers in single.items()}
        sums = {name: zeros[name].index_add(0, places, numbers) for name, numbers in single.items()}
    else:
        sums = {name: numbers.sum(dim=1) for name, numbers in single.items()}
    return {"rows": batch.rows, **sums}


def predictions_of(found: dict[str, NDArray[Any]]) -> Predictions:
    """Return the predictions of a split from its arrays, each (units,), or (predictions,) without rows."""
    if "rows" in found:
        order = np.argsort(found["rows"], kind="stable")
        found = {name: numbers[order] for name, numbers in found.items()}
        found = {name: numbers[found["tokens"] > 0] for name, numbers in found.items()}
    else:
        starts = np.arange(0, len(found["losses"]), PIECE)
        found = {name: np.add.reduceat(numbers, starts) for name, numbers in found.items()}
        found["rows"] = np.arange(len(starts))
    key = key_of(found["rows"], found["tokens"], found.pop("checksums"))
    return Predictions(key=key, **found)


def with_groups(found: Predictions, data: Any) -> Predictions:
    """Return predictions with the group of each row if `data`, a data module, has `group_column`."""
    has_groups = getattr(getattr(data, "options", None), "group_column", None) is not None
    return replace(found, groups=np.array(data.groups(found.rows))) if has_groups else found
