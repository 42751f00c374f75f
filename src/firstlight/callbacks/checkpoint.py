"""What makes a training resume exactly: callbacks and a plugin that write checkpoints, and seeds of each step."""

import math
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from lightning.fabric.plugins import CheckpointIO
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.trainer.states import TrainerFn

from firstlight.errors import RunError, UserError
from firstlight.files.atomic import replacing, sync
from firstlight.lit.checkpoint import METADATA, STAMP, read_checkpoint
from firstlight.lit.lightning_internals import set_steps_done
from firstlight.lit.running_mean import ends_a_step

LAST, PREVIOUS = "last.ckpt", "previous.ckpt"  # the checkpoint to resume from; the one before it
WEIGHTS_OF_A_PROCESS = ".temp.ckpt"  # with which Lightning's forked or spawned processes return their weights
STEP_STRIDE = 1_000_003  # a prime, so that neighboring (seed, step, rank) never have the same stream


class BestAndLast(Checkpoint):
    """Write `best.ckpt`, the best weights by a validation metric, and `last.ckpt`, from which a run can resume.

    `last.ckpt` is written after every validation, at the end of the training, and every `every_n_train_steps` steps. It
    is not written while gradients are accumulated, or at the end of an epoch without a validation.

    Args:
        folder: The folder of the two files.
        monitor: The metric, such as `val/loss`.
        mode: `min` if a smaller metric is better, `max` if a larger one is.
        every_n_train_steps: The number of steps between two writes of `last.ckpt`. None: only after a validation and at
            the end.
        keep_every: The number of steps between two checkpoints that are kept, `step_000500.ckpt` and so on, with the
            weights only. The first one is written before the first step. None: none are kept.

    Raises:
        UserError: If `every_n_train_steps` or `keep_every` is below 1, or if a validation did not log `monitor`.
        RunError: If a weight is not finite when a checkpoint is written.

    Example:
        >>> from pathlib import Path
        >>> import lightning as L
        >>> from firstlight.callbacks import BestAndLast
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[BestAndLast("best_and_last", monitor="val/loss", mode="min")])
        >>> trainer.fit(module, datamodule=data)
        >>> sorted(path.name for path in Path("best_and_last").iterdir())
        ['best.ckpt', 'last.ckpt']
        >>> again = Classification.load_from_checkpoint("best_and_last/best.ckpt")
    """

    def __init__(
        self,
        folder: str,
        monitor: str,
        mode: str,
        every_n_train_steps: int | None = None,
        keep_every: int | None = None,
    ) -> None:
        for name, every in {"every_n_train_steps": every_n_train_steps, "keep_every": keep_every}.items():
            if every is not None and every < 1:
                raise UserError(f"callbacks.checkpoint.{name}={every} must be at least 1, or null")
        self.folder, self.monitor, self.mode = Path(folder), monitor, mode
        self.every_n_train_steps, self.keep_every = every_n_train_steps, keep_every
        self.best_model_path = str(self.folder / "best.ckpt")  # Lightning's names; its strategies assign to them
        self.last_model_path = str(self.folder / LAST)
        self.best_score: float | None = None
        self.saved_step = -1
        self.is_saving = False

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.global_step == 0:
            self._keep(trainer)

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        every, step = self.every_n_train_steps, trainer.global_step
        if ends_a_step(trainer, batch_idx):
            self._keep(trainer)
        if step == self.saved_step or not ends_a_step(trainer, batch_idx):
            return
        # At the end of an epoch without a validation, Lightning would count the batches of the next epoch wrongly.
        is_due = (every is not None and step % every == 0 and not trainer.is_last_batch) or step == trainer.max_steps
        if is_due and not self.validation_follows(trainer, batch_idx):
            self.save_last(trainer)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not is_validation_of_fit(trainer):
            return
        if self._is_best(trainer):
            self._save(trainer, self.best_model_path)
        batch_idx = trainer.fit_loop.batch_idx
        # At the end of an epoch without a scheduled validation, on_train_end saves, as on_train_batch_end explains.
        is_due = not trainer.is_last_batch or _is_scheduled(trainer, batch_idx)
        if is_due and ends_a_step(trainer, batch_idx):  # a checkpoint has no accumulated gradients
            self.save_last(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.global_step != self.saved_step:
            self.save_last(trainer)

    def save_last(self, trainer: Trainer) -> None:
        """Write last.ckpt."""
        self._save(trainer, self.last_model_path)
        self.saved_step = trainer.global_step

    def state_dict(self) -> dict[str, Any]:
        return {"best_score": self.best_score}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best_score = state_dict["best_score"]

    def _is_best(self, trainer: Trainer) -> bool:
        """Return whether the monitored metric is better than the best so far. If so, store it as the best."""
        if self.monitor not in trainer.callback_metrics:
            there_are = ", ".join(sorted(name for name in trainer.callback_metrics if name.startswith("val/")))
            raise UserError(f"optimized_metric={self.monitor} is not measured in validation; choose one of {there_are}")
        score = float(trainer.callback_metrics[self.monitor])
        is_better = (
            self.best_score is None
            or math.isnan(self.best_score)  # every comparison with NaN is False
            or (score < self.best_score if self.mode == "min" else score > self.best_score)
        )
        if is_better:
            self.best_score = score
        return is_better

    @staticmethod
    def validation_follows(trainer: Trainer, batch_idx: int) -> bool:
        """Return whether a validation follows this step. If so, the checkpoint is written after it."""
        if not trainer.enable_validation or not _validates_in_this_epoch(trainer):
            return False
        if trainer.should_stop and _may_stop(trainer):  # Lightning validates before it stops
            return True
        return _is_scheduled(trainer, batch_idx)

    def _keep(self, trainer: Trainer) -> None:
        step = trainer.global_step
        if self.keep_every is not None and step % self.keep_every == 0:
            self._save(trainer, str(self.folder / f"step_{step:06d}.ckpt"), weights_only=True)

    def _save(self, trainer: Trainer, path: str, *, weights_only: bool = False) -> None:
        if self.saved_step >= 0 and not self.folder.is_dir():
            raise RunError(f"{self.folder} was removed or moved while the run was trained")
        for name, parameter in trainer.lightning_module.named_parameters():
            if not torch.isfinite(parameter).all():
                raise RunError(f"{name} is not finite at step {trainer.global_step}; lower optimizer.lr")
        self.is_saving = True
        try:
            trainer.save_checkpoint(path, weights_only)
        finally:
            self.is_saving = False


class FinalValidation(Callback):
    """Validate after the last step of a training, if no other validation follows that step.

    This concerns a training that ends in the middle of an epoch, as `max_steps` may require.

    Its metrics go to every logger. The callbacks that draw, write samples and keep checkpoints run as in any other
    validation of the training. `limit_val_batches=0` leaves it out.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import FinalValidation
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary", batch_size=5)
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_steps=1, callbacks=[FinalValidation()])
        >>> trainer.fit(module, datamodule=data)
        >>> "val/loss" in trainer.callback_metrics
        True
    """

    def __init__(self) -> None:
        self._every_n_epochs: int | None = None

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        # After a resume from a validation that Lightning does not expect, it counts the step before it once too little.
        if batch_idx % trainer.accumulate_grad_batches == 0:
            set_steps_done(trainer, trainer.global_step)

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if not trainer.enable_validation or not ends_a_step(trainer, batch_idx):
            return
        if is_last_step(trainer) and not BestAndLast.validation_follows(trainer, batch_idx):
            trainer.should_stop = True  # Lightning validates before it stops
            self._every_n_epochs = trainer.check_val_every_n_epoch
            if self._every_n_epochs is not None:
                trainer.check_val_every_n_epoch = 1  # in this epoch too

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self._every_n_epochs is not None:
            trainer.check_val_every_n_epoch, self._every_n_epochs = self._every_n_epochs, None


def _validates_in_this_epoch(trainer: Trainer) -> bool:
    every_n_epochs = trainer.check_val_every_n_epoch
    return every_n_epochs is None or (trainer.current_epoch + 1) % every_n_epochs == 0


def _is_scheduled(trainer: Trainer, batch_idx: int) -> bool:
    """Return whether trainer.val_check_interval and trainer.check_val_every_n_epoch place a validation here."""
    if trainer.val_check_batch is None or not _validates_in_this_epoch(trainer):
        return False
    if trainer.val_check_batch == math.inf:  # the number of batches in an epoch is unknown
        return trainer.is_last_batch
    if trainer.check_val_every_n_epoch is None:  # val_check_interval counts across epochs
        batch_idx = trainer.fit_loop.total_batch_idx
    return (batch_idx + 1) % trainer.val_check_batch == 0


def _may_stop(trainer: Trainer) -> bool:
    """Return whether a trainer that should stop has reached its minimum numbers of epochs and steps."""
    epochs = trainer.fit_loop.epoch_progress.current.completed
    return epochs >= (trainer.min_epochs or 0) and trainer.global_step >= (trainer.min_steps or 0)


def is_validation_of_fit(trainer: Trainer) -> bool:
    """Return whether the validation that runs now belongs to a training, and is not the check before it."""
    return trainer.state.fn is TrainerFn.FITTING and not trainer.sanity_checking


def is_last_step(trainer: Trainer) -> bool:
    """Return whether the training has no further step."""
    is_last_epoch = trainer.current_epoch + 1 == trainer.max_epochs
    return trainer.global_step == trainer.max_steps or (trainer.is_last_batch and is_last_epoch)


Found = TypeVar("Found", bound=Callback)


def callback_of(trainer: Trainer, kind: type[Found]) -> Found | None:
    """Return the trainer's first callback of a class, or None if it has none."""
    callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
    return next((callback for callback in callbacks if isinstance(callback, kind)), None)


def reseed(device: torch.device, seed: int, step: int, rank: int = 0) -> None:
    """Seed the generators of dropout on a device. It takes ten microseconds on a CPU."""
    number = (seed * STEP_STRIDE + step) * STEP_STRIDE + rank
    number %= 2**63
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(number)
    elif device.type == "mps":
        torch.mps.manual_seed(number)


class ReseedEveryStep(Callback):
    """Seed dropout at every step from a seed and the number of the step.

    A resumed training then draws the same random numbers as an uninterrupted one, and ends with the same weights.

    Args:
        seed: The seed.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import ReseedEveryStep
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_steps=2, callbacks=[ReseedEveryStep(seed=1)])
        >>> trainer.fit(module, datamodule=data)
        >>> trainer.global_step
        2
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        number = trainer.global_step * trainer.accumulate_grad_batches + batch_idx % trainer.accumulate_grad_batches
        reseed(pl_module.device, self.seed, number, trainer.global_rank)


class AtomicCheckpointIO(CheckpointIO):
    """Writer of Lightning's checkpoints with the run's metadata. A file has a temporary name until it is complete."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        """metadata: config, tokenizer and classes in plain types, so that a reader needs only the checkpoint.

        Metadata that a module has already put into the checkpoint is kept.
        """
        self.metadata = metadata

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Write a checkpoint, flush it to the disk and rename it. An existing last.ckpt becomes previous.ckpt."""
        assert storage_options is None, "a local file has no storage options"
        target = Path(path)
        is_first = not target.parent.exists()
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with replacing(target, before=partial(_keep_previous, target)) as unfinished:
                is_whole = target.name != WEIGHTS_OF_A_PROCESS
                with unfinished.open("wb") as file:
                    torch.save({METADATA: self.metadata | STAMP, **checkpoint} if is_whole else checkpoint, file)
        except RuntimeError as error:  # torch's writer replaces the error of the disk
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None
        finally:
            if is_first and not any(target.parent.iterdir()):
                target.parent.rmdir()  # an empty folder would mean that the checkpoints were deleted
        sync(target.parent)  # so that the rename survives a power cut

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        """Return a checkpoint of tensors and plain types. weights_only is ignored, since no other type is ever read."""
        del weights_only
        if Path(path).name == WEIGHTS_OF_A_PROCESS:
            return torch.load(path, map_location=map_location or "cpu", weights_only=True)
        return read_checkpoint(path, map_location or "cpu")

    def remove_checkpoint(self, path: Any) -> None:
        """Delete a checkpoint."""
        Path(path).unlink(missing_ok=True)


def _keep_previous(last: Path) -> None:
    """Keep last.ckpt as previous.ckpt before it is replaced. A file named last exists at all times."""
    if last.name != LAST or not last.is_file():
        return
    previous = last.with_name(PREVIOUS)
    link = previous.with_name(f".{previous.name}-link")
    link.unlink(missing_ok=True)
    try:
        link.hardlink_to(last)
    except OSError:  # without hard links, no file is named last for a moment
        last.replace(previous)
    else:
        link.replace(previous)
        link.unlink(missing_ok=True)  # replace() does nothing if both name one file, as after a kill
