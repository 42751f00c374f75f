"""A trial is pruned at a validation by what the study stores, and it stays pruned when it is resumed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest
from lightning.pytorch.trainer.states import TrainerFn

from firstlight.callbacks.prune_trial import PruneTrial
from firstlight.errors import UserError
from firstlight.runs.trials import STUDY_NAME, made, storage_of

ABOVE_2 = {"_target_": "optuna.pruners.ThresholdPruner", "upper": 2.0}


def trainer_at(step: int, loss: float, max_steps: int = 100) -> Any:
    """A trainer that has just validated."""
    return SimpleNamespace(
        state=SimpleNamespace(fn=TrainerFn.FITTING),
        strategy=SimpleNamespace(reduce_boolean_decision=lambda decision, **_: decision),
        callback_metrics={"val/loss": loss},
        sanity_checking=False,
        is_global_zero=True,
        should_stop=False,
        is_last_batch=False,
        global_step=step,
        max_steps=max_steps,
        max_epochs=None,
        current_epoch=0,
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with a study without trials."""
    path = tmp_path_factory.mktemp("study") / "study.journal"
    optuna.create_study(storage=storage_of(path), study_name=STUDY_NAME)
    return path


@pytest.fixture
def started(database: Path) -> tuple[optuna.Study, int]:
    """The study, and the number of a new trial in it."""
    study = optuna.load_study(storage=storage_of(database), study_name=STUDY_NAME)
    return study, study.ask().number


def test_a_trial_stops_where_the_pruner_says_so_and_stays_pruned(started, database) -> None:
    study, number = started
    callback = PruneTrial(database, number, ABOVE_2, "val/loss")
    for step, loss, stops in ((10, 1.5, False), (20, 2.5, True)):
        trainer = trainer_at(step, loss)
        callback.on_validation_end(trainer, None)
        assert trainer.should_stop is stops
    assert study.trials[number].intermediate_values == {0: 1.5, 1: 2.5}
    assert (callback.pruned_at, callback.reason) == (20, "pruned at step 20 by ThresholdPruner")

    resumed = PruneTrial(database, number, {"_target_": "optuna.pruners.NopPruner"}, "val/loss")
    for step, stops in ((10, False), (20, True)):  # from a checkpoint before the decision, and from the one after it
        trainer = trainer_at(step, 9.0)
        resumed.on_train_start(trainer, None)
        assert trainer.should_stop is stops
    trainer = trainer_at(20, 2.5)
    resumed.on_validation_end(trainer, None)
    assert trainer.should_stop
    assert study.trials[number].intermediate_values == {0: 1.5, 1: 2.5}, "a validation is reported once"


def test_the_last_validation_prunes_nothing(started: tuple[optuna.Study, int], database: Path) -> None:
    study, number = started
    trainer = trainer_at(100, 2.5)
    callback = PruneTrial(database, number, ABOVE_2, "val/loss")
    callback.on_validation_end(trainer, None)
    assert not trainer.should_stop
    assert callback.pruned_at is None
    assert study.trials[number].intermediate_values == {0: 2.5}


@pytest.mark.parametrize(
    ("part", "node", "message"),
    [
        ("pruner", "median", "hydra.sweeper.pruner=median: the pruner is a group; write hydra/sweeper/pruner=median"),
        (
            "pruner",
            {"_target_": "optuna.pruners.MedianPrunr"},
            r"pruner\._target_=optuna\.pruners\.MedianPrunr cannot be imported: .*; optuna\.pruners has .*MedianPruner",
        ),
        ("pruner", {"_target_": "optuna.pruners.MedianPruner", "n_warmup_steps": -1}, "n_warmup_steps.* correct its"),
        ("pruner", {"_target_": "optuna.samplers.TPESampler"}, "TPESampler is not a pruner of Optuna; optuna.pruners"),
        ("sampler", {"_target_": "optuna.samplers.TPESampler", "n_startup_trials": "few"}, "n_startup_trials=few"),
        ("sampler", {"_target_": "optuna.samplers.CmaEsSampler"}, "unpickles values of study.journal, which could"),
    ],
)
def test_a_pruner_that_cannot_be_made_is_one_line(part: str, node: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        made(part, node)
    assert "\n" not in str(raised.value)
