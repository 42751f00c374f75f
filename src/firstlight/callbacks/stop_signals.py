"""A callback that stops a training on Ctrl-C or SIGTERM at the end of a step, with a checkpoint to resume from."""

import logging
import signal
import threading
from types import FrameType
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from firstlight.callbacks.checkpoint import BestAndLast, best_and_last
from firstlight.errors import Interrupted
from firstlight.lit.running_mean import ends_a_step

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopAtStepEnd(Callback):
    """Stop a training on Ctrl-C or SIGTERM at the end of the step, after a last checkpoint.

    In the middle of a step the weights and the counters may disagree, so a checkpoint from there could not be resumed
    exactly. The callback therefore waits for the end of the step or of the validation, lets `BestAndLast` save, and
    raises `Interrupted`. A second signal stops at once. `Trainer.validate` and `Trainer.test` have nothing to save and
    stop at the first signal. With several processes the signals are left to Lightning, since all processes must stop at
    the same step.

    Raises:
        Interrupted: From `firstlight.errors`, with the number of the signal.

    Example:
        >>> import os, signal
        >>> import lightning as L
        >>> from firstlight.callbacks import StopAtStepEnd
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> class Signal(L.Callback):
        ...     def on_train_batch_start(self, *_):
        ...         os.kill(os.getpid(), signal.SIGTERM)
        >>> trainer = L.Trainer(max_epochs=5, callbacks=[StopAtStepEnd(), Signal()])
        >>> trainer.fit(module, datamodule=data)
        Traceback (most recent call last):
        firstlight.errors.Interrupted: interrupted by signal 15
        >>> trainer.global_step
        1
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._waits = False

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.received = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.received_sigterm:  # while Lightning set things up
            raise Interrupted(signal.SIGTERM)
        self._listen(trainer)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._listen(trainer)

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._listen(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.received is not None and ends_a_step(trainer, batch_idx):
            checkpoint = best_and_last(trainer)
            if checkpoint is None or not (trainer.is_last_batch or checkpoint.validation_follows(trainer, batch_idx)):
                self._stop(trainer, checkpoint)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        if self.received is not None and batch_idx % trainer.accumulate_grad_batches == 0:
            checkpoint = best_and_last(trainer)
            if checkpoint is None or checkpoint.saved_step == trainer.global_step:  # by the validation before this step
                raise Interrupted(self.received)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        checkpoint = best_and_last(trainer)
        if self.received is not None and (checkpoint is None or checkpoint.saved_step == trainer.global_step):
            raise Interrupted(self.received)  # else one step more: the end of an epoch is kept by its validation alone

    def _listen(self, trainer: Trainer) -> None:
        """Take the signals until Lightning tears down: however a run ends, it puts back the handlers that it found."""
        self._waits = trainer.state.fn is TrainerFn.FITTING
        if trainer.world_size == 1 and threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                signal.signal(number, self._receive)
        if self.received is not None and not self._waits:  # at the very end of the training
            raise Interrupted(self.received)

    def _receive(self, number: int, _: FrameType | None) -> None:
        if self.received is not None or not self._waits:
            raise Interrupted(number)
        self.received = number
        log.info("Stopping after this step; interrupt again to stop at once")

    def _stop(self, trainer: Trainer, checkpoint: BestAndLast | None) -> None:
        assert self.received is not None
        if checkpoint is not None and checkpoint.saved_step != trainer.global_step:
            checkpoint.save_last(trainer)
        raise Interrupted(self.received)
