"""A callback that stops a trial of a search at a validation, when the pruner of the search says so."""

import logging
from functools import cached_property
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from firstlight.callbacks.checkpoint import is_last_step
from firstlight.runs.trials import STUDY_NAME, made, storage_of

log = logging.getLogger(__name__)

VALIDATED_AT, PRUNED_AT = "validated_at_steps", "pruned_at_step"  # attributes of a trial in the study


class PruneTrial(Callback):
    """Report the metric of each validation to Optuna's study, and stop the training when the pruner says so.

    Optuna's `step` is the number of the validation, counted from 0, so that trials with other sizes of batches compare.
    The study stores which training steps these were. A resumed trial therefore reports no validation twice, and a trial
    that was pruned before its process was killed stays pruned. The last validation of a training prunes nothing.

    Args:
        study: The file of the study.
        number: The number of the trial.
        pruner: The node of the configuration that describes the pruner.
        metric: The metric that is reported, such as val/loss.
    """

    def __init__(self, study: Path, number: int, pruner: Any, metric: str) -> None:
        self.study, self.number, self.pruner, self.metric = study, number, pruner, metric

    @property
    def pruned_at(self) -> int | None:
        """The training step at which the trial was pruned; None if it was not."""
        step: int | None = self._trial.user_attrs.get(PRUNED_AT)
        return step

    @property
    def reason(self) -> str:
        """The reason for the record of a pruned trial."""
        pruner = str(self.pruner["_target_"]).rpartition(".")[2]
        return f"pruned at step {self.pruned_at:,} by {pruner}"

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        at = self.pruned_at if trainer.is_global_zero else None
        self._stop_if(at is not None and trainer.global_step >= at, trainer)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.state.fn is TrainerFn.FITTING and not trainer.sanity_checking:
            self._stop_if(trainer.is_global_zero and self._is_pruned(trainer), trainer)

    def _is_pruned(self, trainer: Trainer) -> bool:
        """Report the validation of this step. Return whether the trial ends here."""
        trial, step = self._trial, trainer.global_step
        steps = [*trial.user_attrs.get(VALIDATED_AT, [])]
        if step not in steps:
            steps.append(step)
            trial.set_user_attr(VALIDATED_AT, steps)
        number = steps.index(step)
        if number not in self._reported():
            trial.report(float(trainer.callback_metrics[self.metric]), step=number)
        if self.pruned_at is not None:
            return step >= self.pruned_at
        if is_last_step(trainer) or not trial.should_prune():
            return False
        trial.set_user_attr(PRUNED_AT, step)
        return True

    def _reported(self) -> dict[int, float]:
        values: dict[int, float] = self._study.get_trials(deepcopy=False)[self.number].intermediate_values
        return values

    def _stop_if(self, is_pruned: bool, trainer: Trainer) -> None:
        """Stop all processes of the training if the first one says so."""
        if trainer.strategy.reduce_boolean_decision(is_pruned, all=False):
            trainer.should_stop = True

    @cached_property
    def _study(self) -> Any:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        return optuna.load_study(
            study_name=STUDY_NAME,
            storage=storage_of(self.study),
            sampler=optuna.samplers.RandomSampler(),  # none is used, and others would fit the trials at this point
            pruner=made("pruner", self.pruner),
        )

    @cached_property
    def _trial(self) -> Any:
        import optuna

        return optuna.Trial(self._study, self._study.get_trials(deepcopy=False)[self.number]._trial_id)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_study", "_trial")}
