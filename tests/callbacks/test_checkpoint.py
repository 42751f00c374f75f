import shutil
from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate
from lightning.pytorch import Callback
from omegaconf import OmegaConf

from firstlight.callbacks.checkpoint import BestAndLast
from firstlight.errors import RunError, UserError
from firstlight.lit.checkpoint import read_checkpoint
from firstlight.runs.folder import RunFolder


class Scores(Callback):
    """Callback that logs given values as the metric of the validations."""

    def __init__(self, *values: float, name: str = "val/score") -> None:
        self.values, self.name = list(values), name

    def on_validation_epoch_end(self, trainer, pl_module):
        pl_module.log(self.name, self.values.pop(0))


class Writes(Callback):
    """Callback that records the step of last.ckpt at the start of each batch."""

    def __init__(self, folder: Path) -> None:
        self.last = folder / "last.ckpt"
        self.steps: list[int | None] = []

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.steps.append(step_of(self.last))


def step_of(path: Path) -> int | None:
    return read_checkpoint(path)["global_step"] if path.is_file() else None


def best_and_last(folder: Path, mode: str = "min", monitor: str = "val/score", every: int | None = None) -> BestAndLast:
    return BestAndLast(str(folder), monitor, mode, every)


# --- best ---


@pytest.mark.parametrize(
    ("mode", "scores", "best"),
    [
        ("min", [3, 1, 2], 2),
        ("max", [3, 1, 2], 1),
        ("min", [1, 1, 1], 1),  # the first of equal values
        ("min", [float("nan"), 7, 8], 2),
        ("max", [4, float("nan"), 3], 1),
    ],
)
def test_best_is_of_the_validation_with_the_best_score(bench, tmp_path, mode, scores, best) -> None:
    callback = best_and_last(tmp_path, mode)
    bench.fit(Scores(*scores), callback, max_epochs=3, limit_train_batches=2)
    assert step_of(tmp_path / "best.ckpt") == 2 * best
    assert callback.best_score == scores[best - 1]


def test_best_has_the_weights_of_its_moment(bench, tmp_path) -> None:
    kept = []

    class Keep(Callback):
        def on_validation_end(self, trainer, pl_module):
            kept.append({name: weight.clone() for name, weight in pl_module.state_dict().items()})

    bench.fit(Scores(3, 1, 2), best_and_last(tmp_path), Keep(), max_epochs=3, limit_train_batches=2)
    weights = read_checkpoint(tmp_path / "best.ckpt")["state_dict"]
    assert all(torch.equal(weights[name], kept[1][name]) for name in kept[1])
    assert not all(torch.equal(weights[name], kept[2][name]) for name in kept[2])


def test_a_resumed_run_knows_how_good_the_best_was(bench, tmp_path) -> None:
    bench.fit(Scores(1), best_and_last(tmp_path), limit_train_batches=2)
    resumed = best_and_last(tmp_path)
    both_worse = Scores(5, 4)
    bench.fit(both_worse, resumed, max_epochs=3, limit_train_batches=2, ckpt_path=tmp_path / "last.ckpt")
    assert step_of(tmp_path / "best.ckpt") == 2
    assert step_of(tmp_path / "last.ckpt") == 6
    assert resumed.best_score == 1


def test_an_unknown_monitor_is_an_error_that_lists_what_there_is(bench, tmp_path) -> None:
    """Early stopping runs before the checkpoint callback and would raise its own error."""
    config = OmegaConf.load(Path(__file__).parents[2] / "conf" / "callbacks" / "early_stopping.yaml").early_stopping
    for early_stopping in ([], [instantiate(config, monitor="val/accuracy", mode="max")]):
        with pytest.raises(UserError, match=r"^optimized_metric=val/accuracy is not measured in validation; choose"):
            bench.fit(*early_stopping, best_and_last(tmp_path, monitor="val/accuracy"))
        assert not (tmp_path / "best.ckpt").exists()


# --- last ---


@pytest.mark.parametrize(
    ("scores", "every", "options", "written", "last", "best"),
    [
        ([1, 2, 3, 4], None, {"val_check_interval": 3}, [None] * 3 + [3] * 3 + [6] * 3 + [9] * 3, 12, 3),
        ([1, 2], 2, {"limit_train_batches": 4}, [None, None, 2, 2, 4, 4, 6, 6], 8, 4),
        # an epoch without validation has no step that waits for one
        ([1, 2, 3], 3, {"val_check_interval": 3, "check_val_every_n_epoch": 2}, [None] * 3 + [3] * 6 + [9] * 3, 12, 9),
        # a validation in the middle of a step leaves the checkpoint as it was
        ([2, 1, 3], None, {"val_check_interval": 4, "accumulate_grad_batches": 3}, [None] * 12, 4, 3),
        ([], None, {"limit_val_batches": 0}, [None] * 12, 12, None),
    ],
)
def test_last_is_written_after_each_validation_every_so_many_steps_and_at_the_end(
    bench, tmp_path, scores, every, options, written, last, best
) -> None:
    writes = Writes(tmp_path)
    bench.fit(Scores(*scores), best_and_last(tmp_path, every=every), writes, max_epochs=2, **options)
    assert writes.steps == written
    assert (step_of(tmp_path / "last.ckpt"), step_of(tmp_path / "best.ckpt")) == (last, best)


@pytest.mark.parametrize(
    "options",
    [
        {"val_check_interval": 1.0},
        {"val_check_interval": 0.5},
        {"val_check_interval": 4},
        {"check_val_every_n_epoch": 2},
        {"check_val_every_n_epoch": 2, "val_check_interval": 3},
        {"limit_val_batches": 0},
        {"accumulate_grad_batches": 4},
        {"val_check_interval": 5, "check_val_every_n_epoch": None, "limit_train_batches": 7},
    ],
    ids=str,
)
def test_a_validation_is_foreseen_exactly_where_it_comes(bench, tmp_path, options: dict[str, object]) -> None:
    foreseen, seen, batches = [], [], []
    callback = best_and_last(tmp_path, monitor="val/loss")

    class Foresees(Callback):
        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            batches.append(batch_idx)
            if callback.validation_follows(trainer, batch_idx):
                foreseen.append(len(batches))

        def on_validation_end(self, trainer, pl_module):
            seen.append(len(batches))

    bench.fit(Foresees(), callback, **({"max_epochs": 2} | options))
    assert foreseen == seen


def test_with_accumulation_no_checkpoint_falls_between_two_steps(bench, tmp_path) -> None:
    """A checkpoint that is written before the last gradients of a step could not be resumed."""
    saved = []

    class Counts(BestAndLast):
        def save_last(self, trainer):
            saved.append((trainer.global_step, trainer.fit_loop.batch_idx + 1))
            super().save_last(trainer)

    callback = Counts(str(tmp_path), "val/loss", "min", 1)
    bench.fit(callback, limit_train_batches=8, accumulate_grad_batches=3)
    assert saved == [(1, 3), (2, 6), (3, 8)]


def test_a_sanity_check_and_an_evaluation_write_nothing(bench, tmp_path) -> None:
    data = bench.data()
    module = bench.module(data)
    trainer = bench.trainer(Scores(1, 2, 3), best_and_last(tmp_path))
    trainer.validate(module, datamodule=data, verbose=False)
    trainer.test(module, datamodule=data, verbose=False)
    assert list(tmp_path.glob("*.ckpt")) == []
    writes = Writes(tmp_path)
    bench.fit(Scores(1, 2), best_and_last(tmp_path), writes, num_sanity_val_steps=2, limit_train_batches=2)
    assert writes.steps == [None, None]


def test_checkpoints_are_kept_from_the_first_step_on_and_change_nothing(bench, tmp_path) -> None:
    for name, keep in {"kept": 3, "not": None}.items():
        callback = BestAndLast(str(tmp_path / name / "checkpoints"), "val/loss", "min", None, keep)
        bench.fit(callback, limit_train_batches=7, max_epochs=1)
    kept = RunFolder(tmp_path / "kept").kept_checkpoints
    assert list(kept) == [0, 3, 6]
    assert RunFolder(tmp_path / "not").kept_checkpoints == {}
    contents = {step: read_checkpoint(path) for step, path in kept.items()}
    assert [content["global_step"] for content in contents.values()] == [0, 3, 6]
    assert all("optimizer_states" not in content for content in contents.values())
    last, same = (read_checkpoint(tmp_path / name / "checkpoints/last.ckpt")["state_dict"] for name in ("kept", "not"))
    assert all(torch.equal(weight, same[key]) for key, weight in last.items())
    assert not all(torch.equal(weight, contents[6]["state_dict"][key]) for key, weight in last.items())


@pytest.mark.parametrize(
    ("every", "keep", "option"),
    [(0, None, "every_n_train_steps=0"), (-5, None, "every_n_train_steps=-5"), (None, 0, "keep_every=0")],
)
def test_an_interval_of_steps_is_at_least_one(every, keep, option: str) -> None:
    with pytest.raises(UserError, match=rf"^callbacks\.checkpoint\.{option} must be at least 1"):
        BestAndLast("folder", "val/loss", "min", every, keep)


# --- weights that are not finite ---


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_are_not_saved(bench, at, tmp_path, value: float) -> None:
    def spoil(trainer) -> None:
        with torch.no_grad():
            trainer.lightning_module.network.embedding.weight[3, 2] = value

    with pytest.raises(RunError, match=r"^network\.embedding\.weight is not finite at step 4; lower optimizer\.lr"):
        bench.fit(at("on_train_batch_end", 4, spoil), best_and_last(tmp_path, every=2))
    weights = read_checkpoint(tmp_path / "last.ckpt")
    assert weights["global_step"] == 2
    assert all(weight.isfinite().all() for weight in weights["state_dict"].values())


def test_a_folder_that_is_removed_during_the_training_is_reported(bench, at, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    removes = at("on_before_backward", 4, lambda _: shutil.rmtree(folder))
    with pytest.raises(RunError, match=r"run was removed or moved while the run was trained"):
        bench.fit(removes, BestAndLast(str(folder), "val/loss", "min", 2))
    assert not folder.exists()
