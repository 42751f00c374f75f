"""A callback that stops a trial of a search at a validation, when the pruner of the search says so."""

import logging
from functools import cached_property
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning.pytorch import Callback, LightningModule, Trainer
from omegaconf import DictConfig

from firstlight.callbacks.checkpoint import is_last_step, is_validation_of_fit
from firstlight.callbacks.write_predictions import WritePredictions
from firstlight.errors import UserError
from firstlight.runs import trials
from firstlight.runs.predictions import Predictions, UnreadablePredictions, read_predictions, write_predictions

log = logging.getLogger(__name__)

LOSSES = "losses"  # the folder of the predictions of trials, next to the study
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
        return self._trial.user_attrs.get(PRUNED_AT)

    @property
    def reason(self) -> str:
        """The reason for the record of a pruned trial."""
        pruner = str(self.pruner["_target_"]).rpartition(".")[2]
        return f"pruned at step {self.pruned_at:,} by {pruner}"

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        at = self.pruned_at if trainer.is_global_zero else None
        self._stop_if(at is not None and trainer.global_step >= at, trainer)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if is_validation_of_fit(trainer):
            self._stop_if(trainer.is_global_zero and self._is_pruned(trainer), trainer)

    def _is_pruned(self, trainer: Trainer) -> bool:
        """Report the validation of this step. Return whether the trial ends here."""
        trial, step = self._trial, trainer.global_step
        steps = [*trial.user_attrs.get(VALIDATED_AT, [])]
        if step not in steps:
            steps.append(step)
            trial.set_user_attr(VALIDATED_AT, steps)
        number = steps.index(step)
        if number not in self._study.get_trials(deepcopy=False)[self.number].intermediate_values:
            trial.report(float(trainer.callback_metrics[self.metric]), step=number)
        if self.pruned_at is not None:
            return step >= self.pruned_at
        if is_last_step(trainer) or not self._is_behind(number):
            return False
        trial.set_user_attr(PRUNED_AT, step)
        return True

    def _is_behind(self, number: int) -> bool:
        """Return what the pruner says after a validation with this number."""
        return bool(self._trial.should_prune())

    def _stop_if(self, is_pruned: bool, trainer: Trainer) -> None:
        """Stop all processes of the training if the first one says so."""
        if trainer.strategy.reduce_boolean_decision(is_pruned, all=False):
            trainer.should_stop = True

    @cached_property
    def _study(self) -> Any:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        return optuna.load_study(
            study_name=trials.STUDY_NAME,
            storage=trials.storage_of(self.study),
            sampler=optuna.samplers.RandomSampler(),  # none is used, and others would fit the trials at this point
            pruner=trials.made("pruner", self.pruner),
        )

    @cached_property
    def _trial(self) -> Any:
        import optuna

        return optuna.Trial(self._study, self._study.get_trials(deepcopy=False)[self.number]._trial_id)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_study", "_trial")}


class PruneByTexts(PruneTrial, WritePredictions):
    """Stop a trial whose validation texts are predicted worse than by the best trial so far, by Wilcoxon's test.

    The values of each text are paired with those of the best trial at the same validation: its losses, or for
    val/accuracy its hits. The level of `WilcoxonPruner` is divided by the number of validations of the best trial, so
    that it is that of the whole trial (Bonferroni). Each trial stores its predictions next to the study.

    Raises:
        UserError: For several processes, for a module whose steps return no losses of texts, and for a damaged file.
    """

    def __init__(self, study: Path, number: int, pruner: Any, metric: str) -> None:
        PruneTrial.__init__(self, study, number, pruner, metric)
        WritePredictions.__init__(self, study.parent / LOSSES)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if trainer.world_size > 1:
            raise UserError(f"hydra/sweeper/pruner=wilcoxon: requires one process, not {trainer.world_size}")

    def reads(self, trainer: Trainer) -> bool:
        return is_validation_of_fit(trainer)

    def keep(self, predictions: Predictions, stage: str) -> None:
        self.latest: Predictions = predictions

    def _is_behind(self, number: int) -> bool:
        from optuna.trial import TrialState

        if not hasattr(self, "latest"):
            raise UserError("hydra/sweeper/pruner=wilcoxon: validation_step returns no losses of texts; use median")
        write_predictions(self._file(self.number, number), self.latest)
        if not self._study.get_trials(deepcopy=False, states=[TrialState.COMPLETE]):
            return False
        best = self._study.best_trial
        try:
            other = read_predictions(self._file(best.number, number))
        except UnreadablePredictions as error:
            raise UserError(f"{error}; choose another sweep.name") from error
        if other is None or other.key != self.latest.key:
            log.warning("trial %d has no validation %d of the same texts; nothing is compared", best.number, number)
            return False
        metric = self.metric if other.values(self.metric) is not None else "val/loss"
        falls = metric != self.metric or self._study.direction.name == "MINIMIZE"
        level = self.pruner["p_threshold"] / len(best.intermediate_values)
        pruner = trials.made("pruner", self.pruner, p_threshold=level)
        return is_worse(self.latest.values(metric), other.values(metric), pruner, falls=falls)

    def _file(self, trial: int, validation: int) -> Path:
        return self.folder / f"{trials.trial_folder(trial)}_{validation:04d}.npz"


def is_worse(values: Any, best: Any, pruner: Any, *, falls: bool) -> bool:
    """Return whether WilcoxonPruner finds the values of a trial worse than those of the best one, both (texts,)."""
    import optuna

    study = optuna.create_study(direction=trials.MINIMIZE if falls else trials.MAXIMIZE)
    known, new = (
        optuna.trial.create_trial(value=float(each.mean()), intermediate_values=dict(enumerate(each.tolist())))
        for each in (best, values)
    )
    study.add_trial(known)
    return bool(pruner.prune(study, new))


def pruning_of_trial(config: DictConfig) -> PruneTrial | None:
    """Return the callback that stops a trial of a search with a pruner; None for every other run."""
    if not HydraConfig.initialized() or HydraConfig.get().mode is not RunMode.MULTIRUN:
        return None
    hydra = HydraConfig.get()
    if hydra.sweeper.get("n_trials") is None or not trials.is_chosen(hydra.sweeper.get("pruner")):
        return None
    study = Path(hydra.sweep.dir) / trials.STUDY_FILE
    by_texts = str(hydra.sweeper.pruner["_target_"]).endswith(".WilcoxonPruner")
    callback = PruneByTexts if by_texts else PruneTrial
    return callback(study, trials.number_of_trial(hydra.sweep.subdir), hydra.sweeper.pruner, config.optimized_metric)
