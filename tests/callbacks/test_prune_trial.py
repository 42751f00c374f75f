"""A trial is pruned at a validation by what the study stores, and it stays pruned when it is resumed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pytest
from lightning.pytorch.trainer.states import TrainerFn

from firstlight.callbacks.prune_trial import PruneByTexts, PruneTrial, is_worse
from firstlight.errors import UserError
from firstlight.runs.predictions import Predictions
from firstlight.runs.trials import STUDY_NAME, made, storage_of

WILCOXON = {"_target_": "optuna.pruners.WilcoxonPruner", "p_threshold": 0.05, "n_startup_steps": 2}
ABOVE_2 = {"_target_": "optuna.pruners.ThresholdPruner", "upper": 2.0}


def trainer_at(step: int, loss: float, max_steps: int = 100) -> Any:
    """A trainer that has just validated."""
    return SimpleNamespace(
        state=SimpleNamespace(fn=TrainerFn.FITTING),
        strategy=SimpleNamespace(reduce_boolean_decision=lambda decision, **_: decision),
        callback_metrics={"val/loss": loss},
        is_global_zero=True,
        **dict.fromkeys(("sanity_checking", "should_stop", "is_last_batch"), False),
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


def test_a_trial_whose_texts_are_predicted_worse_than_by_the_best_one_is_pruned(tmp_path: Path) -> None:
    study = optuna.create_study(storage=storage_of(tmp_path / "study.journal"), study_name=STUDY_NAME)
    draw = np.random.default_rng(0)
    hard, ones = draw.gamma(2, 0.5, 50).astype(np.float32), np.ones(50, dtype=np.int64)

    def validated(losses: Any, step: int, key: str = "k") -> bool:
        callback = PruneByTexts(tmp_path / "study.journal", study.trials[-1].number, WILCOXON, "val/loss")
        callback.keep(Predictions(np.arange(50), losses, ones, ones, key), "val")
        trainer = trainer_at(step, float(losses.mean()))
        callback.on_validation_end(trainer, None)
        return bool(trainer.should_stop)

    study.ask()
    assert not any(validated(hard + 9, step) for step in (10, 20)), "there is no best trial yet"
    study.tell(0, float(hard.mean()) + 9)
    study.ask()
    assert not validated(hard + 9 + draw.normal(0, 0.1, 50), 10)
    assert not validated(hard + 99, 20, key="other texts")
    assert not validated(hard + 99, 30), "the best trial has no third validation"
    study.tell(1, 99.0)
    study.ask()
    assert not validated(hard, 10)
    assert validated(hard + 9.1, 20)
    (tmp_path / "losses" / "trial-0000_0000.npz").write_bytes(b"PK")
    study.ask()
    with pytest.raises(UserError, match=r"losses/trial-0000_0000.npz cannot be read .*; choose another sweep.name"):
        validated(hard, 10)


def test_the_level_is_that_of_a_whole_trial_and_a_planted_difference_is_found() -> None:
    pruner = made("pruner", WILCOXON, p_threshold=0.05 / 3)

    def is_pruned(difference: float, number: int) -> bool:
        draw = np.random.default_rng(number)
        hard, best, trial = draw.gamma(2, 0.5, 200), draw.normal(0, 0.3, (3, 200)), draw.normal(0, 0.3, (3, 200))
        pairs = zip(np.cumsum(trial, axis=0) + difference, np.cumsum(best, axis=0), strict=True)
        return any(is_worse(hard + one, hard + other, pruner, falls=True) for one, other in pairs)

    assert np.mean([is_pruned(0.0, number) for number in range(200)]) <= 0.05 + 2 * (0.05 * 0.95 / 200) ** 0.5
    assert np.mean([is_pruned(0.2, number) for number in range(200)]) > 0.9
    assert not is_worse(np.ones(50), np.zeros(50), pruner, falls=False)


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
