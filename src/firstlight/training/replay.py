"""The trainer of a job whose steps a stack computes.

It passes over the steps after which it does nothing: those without a log, a validation or the end of an epoch.
"""

from typing import Any

from lightning.pytorch import Callback, Trainer
from torch import Tensor

from firstlight.callbacks.checkpoint import BestAndLast, callback_of
from firstlight.callbacks.stop_signals import StopAtStepEnd
from firstlight.callbacks.throughput import Throughput
from firstlight.errors import Interrupted
from firstlight.lit.lightning_internals import next_batch, pass_over_steps
from firstlight.lit.running_mean import MeanCallback
from firstlight.training.build import Parts
from firstlight.training.stack import Stack


class Replay(Callback):
    """Replaces the training steps of a job by those of a stack.

    models: the number of models of the stack, None if this job is trained alone. excess: the seconds for which this
    trainer has waited for the stack, without the share of the job: the time of a stack is divided among its jobs.
    """

    def __init__(self, stack: Stack, place: int, parts: Parts) -> None:
        self.stack, self.parts, self.place = stack, parts, place
        self.models: int | None = None
        self.excess = 0.0
        self._with_state = False

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        if not self.stack.begin(self.parts):
            return
        self.models = len(self.stack.configs)
        if checkpoint := callback_of(trainer, BestAndLast):
            checkpoint.every_n_train_steps = None  # between validations there are no weights to save
        trainer.optimizers[0]._opt_called = True  # type: ignore[attr-defined]  # else the schedule warns
        pass_over_steps(trainer, self._idle_steps)
        pl_module.training_step = self._outputs
        pl_module.backward = lambda _: None
        pl_module.optimizer_step = self._step

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        stop = callback_of(trainer, StopAtStepEnd)
        if self.models and not self._with_state and stop is not None and stop.received is not None:
            raise Interrupted(stop.received)  # without a checkpoint, since the weights are those of an earlier step

    def _idle_steps(self) -> int:
        """Return the number of steps before the next one in which the trainer does something."""
        trainer = self.parts.trainer
        step, (batch, total) = trainer.global_step, next_batch(trainer)
        stops = [int(trainer.num_training_batches) - 1 - batch]
        if trainer.max_steps != -1:
            stops.append(trainer.max_steps - 1 - step)
        if isinstance(every := trainer.val_check_batch, int):
            stops.append(-((batch if trainer.check_val_every_n_epoch else total) + 1) % every)
        steps = min(stops)
        log_every: int = trainer.log_every_n_steps  # type: ignore[attr-defined]
        logs = 0 if step == 0 else -(step + 1) % log_every if log_every else steps
        self._with_state = steps <= logs
        return min(steps, logs)

    def _outputs(self, _: Any) -> dict[str, Tensor]:
        trainer, done = self.parts.trainer, self.stack.done
        self.visit = visit = self.stack.visit(trainer.global_step, with_state=self._with_state)
        excess = (self.stack.done > done) - 1 / len(self.stack.configs)
        self.excess += visit.seconds * excess
        sums = {name: value[self.place] for name, value in visit.sums.items()}
        for callback in trainer.callbacks if sums else ():  # type: ignore[attr-defined]
            if isinstance(callback, MeanCallback):
                count = int(sums["examples"]) if callback.training_sum == "hits" else visit.steps
                callback.add_to_mean(sums[callback.training_sum], count)
        if throughput := callback_of(trainer, Throughput):
            tokens, examples = (int(sums.get(name, 0)) for name in ("tokens", "examples"))
            throughput.count_elsewhere(tokens, examples, visit.seconds * excess, visit.processor * excess)
        return {name: value.to(self.stack.device) for name, value in visit.outputs[self.place].items()}

    def _step(self, epoch: int, batch_idx: int, optimizer: Any, closure: Any) -> None:  # noqa: ARG002
        closure()
        if self.visit.state is not None:
            trainer, module = self.parts.trainer, self.parts.module
            self.stack.copy_state(self.visit.state, self.place, trainer.global_step + 1, module, trainer.optimizers[0])
