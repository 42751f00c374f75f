import copy
import itertools
import shutil
from pathlib import Path

import pytest
import torch
from hydra.utils import instantiate
from lightning.pytorch import Callback
from omegaconf import OmegaConf

from callback_fixtures import on
from firstlight.callbacks import BestAndLast, FinalValidation, ReseedEveryStep, TextSamples
from firstlight.callbacks.checkpoint import STEP_STRIDE, reseed
from firstlight.errors import RunError, UserError
from firstlight.lit.checkpoint import read_checkpoint
from firstlight.runs.folder import RunFolder


class Scores(Callback):
    """Callback that logs given values as the metric of the validations."""

    def __init__(self, *values: float, name: str = "val/score") -> None:
        self.values, self.name = list(values), name

    def on_validation_epoch_end(self, trainer, pl_module):
        pl_module.log(self.name, self.values.pop(0))


def step_of(path: Path) -> int | None:
    return read_checkpoint(path)["global_step"] if path.is_file() else None


def best_and_last(folder: Path, mode: str = "min", monitor: str = "val/score", every: int | None = None) -> BestAndLast:
    return BestAndLast(str(folder), monitor, mode, every)


def writes_of(folder: Path) -> tuple[list[int | None], Callback]:
    """Return the steps of last.ckpt at the start of each batch, and the callback that records them."""
    steps: list[int | None] = []
    return steps, on(on_train_batch_start=lambda _: steps.append(step_of(folder / "last.ckpt")))


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
    kept: list[dict[str, torch.Tensor]] = []
    keep = on(on_validation_end=lambda trainer: kept.append(copy.deepcopy(trainer.lightning_module.state_dict())))
    bench.fit(Scores(3, 1, 2), best_and_last(tmp_path), keep, max_epochs=3, limit_train_batches=2)
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
    steps, writes = writes_of(tmp_path)
    bench.fit(Scores(*scores), best_and_last(tmp_path, every=every), writes, max_epochs=2, **options)
    assert steps == written
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
    steps, writes = writes_of(tmp_path)
    bench.fit(Scores(1, 2), best_and_last(tmp_path), writes, num_sanity_val_steps=2, limit_train_batches=2)
    assert steps == [None, None]


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


# --- the validation after the last step ---


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"max_steps": 4}, [3]),
        ({"max_epochs": 1, "check_val_every_n_epoch": 5}, [5]),
        ({"max_epochs": 3, "check_val_every_n_epoch": 2}, [11, 17]),
        ({"max_steps": 4, "val_check_interval": 3}, [2, 3]),
        ({"max_epochs": 1, "val_check_interval": 4}, [3, 5]),
        ({"max_steps": 4, "limit_val_batches": 0}, []),
    ],
)
def test_the_last_validation_of_a_training_is_after_its_last_step(bench, options: dict, steps: list[int]) -> None:
    checkpoint = BestAndLast(str(bench.folder / "kept"), "val/loss", "min")
    trainer = bench.fit(FinalValidation(), checkpoint, **options)
    assert [step for step, _ in bench.memory.curve("val/loss")] == steps
    assert (checkpoint.best_score is not None) == bool(steps)
    assert checkpoint.saved_step == trainer.global_step
    assert trainer.check_val_every_n_epoch == options.get("check_val_every_n_epoch", 1)


@pytest.mark.parametrize(
    ("short", "long", "steps"),
    [
        ({"max_steps": 4}, {"max_epochs": 2}, [3, 5, 11]),
        ({"max_steps": 6, "val_check_interval": 4}, {"max_epochs": 2, "val_check_interval": 4}, [3, 5, 9, 11]),
        ({"max_steps": 4, "check_val_every_n_epoch": 2}, {"max_epochs": 2, "check_val_every_n_epoch": 2}, [3, 11]),
        ({"max_steps": 2, "accumulate_grad_batches": 2}, {"max_epochs": 2, "accumulate_grad_batches": 2}, [1, 2, 5]),
    ],
)
def test_a_training_that_is_extended_continues_exactly_after_its_final_validation(bench, short, long, steps) -> None:
    def fit(options: dict, folder: str, **more: Path):
        checkpoint = BestAndLast(str(bench.folder / folder), "val/loss", "min")
        trainer = bench.fit(FinalValidation(), checkpoint, **options, **more)
        return trainer, dict(trainer.lightning_module.named_parameters())

    fit(short, "kept")
    trainer, weights = fit(long, "kept", ckpt_path=bench.folder / "kept" / "last.ckpt")
    extended, bench.memory.lines = bench.memory.lines, []
    whole, whole_weights = fit(long, "whole")
    assert all(torch.equal(weight, whole_weights[name]) for name, weight in weights.items())
    assert trainer.global_step == whole.global_step
    validated = [(step, line["val/loss"]) for step, line in extended if "val/loss" in line]
    assert [step for step, _ in validated] == steps
    assert {*bench.memory.curve("val/loss")} <= {*validated}


def test_the_validation_of_a_short_training_writes_samples(writer_bench, tmp_path: Path) -> None:
    samples = TextSamples(str(tmp_path / "samples"), num_samples=1, num_tokens=5)
    writer_bench.fit(FinalValidation(), samples, max_steps=2)
    assert [path.name for path in (tmp_path / "samples").iterdir()] == ["00000002.txt"]


# --- the random numbers of each step ---


CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def the_global_generator_is_put_back():
    with torch.random.fork_rng(devices=[]):
        yield


def test_neighboring_seeds_steps_and_ranks_share_no_stream() -> None:
    steps = [*range(31), 997, 10_007, STEP_STRIDE - 1]
    drawn = set()
    for seed, step, rank in itertools.product(range(7), steps, range(5)):
        reseed(CPU, seed, step, rank)
        drawn.add(int(torch.randint(2**62, ())))
    assert len(drawn) == 7 * len(steps) * 5
    reseed(CPU, 2**63 - 1, 2**40)  # no seed is too large


def draws(bench, seed: int, **options) -> list[int]:
    """Return a random number of the global generator in each batch, before dropout draws from it."""
    numbers: list[int] = []
    draw = on(
        on_before_zero_grad=lambda _: torch.rand(3),  # another user of the global generator
        on_train_batch_start=lambda _: numbers.append(int(torch.randint(2**62, ()))),
    )
    bench.fit(ReseedEveryStep(seed), draw, limit_val_batches=0, **options)
    return numbers


def test_what_a_step_draws_depends_on_the_seed_and_the_step_alone(bench) -> None:
    first = draws(bench, seed=3, max_epochs=2)
    assert len(set(first)) == 12
    assert draws(bench, seed=3, max_epochs=2) == first
    assert not set(draws(bench, seed=4)) & set(first)


def test_with_accumulation_every_batch_of_a_step_draws_something_else(bench) -> None:
    """The last step of an epoch has fewer batches. The next epoch begins with a new step."""
    numbers = draws(bench, seed=3, max_epochs=2, accumulate_grad_batches=4)
    assert len(numbers) == len(set(numbers)) == 12
