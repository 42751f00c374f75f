"""The search for the learning rate: it changes nothing but the rate, and a resumed training does not search again."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint

from firstlight.callbacks import learning_rate_finder
from firstlight.callbacks.learning_rate_finder import LearningRateFinder, smoothed, suggested
from firstlight.callbacks.reseed import ReseedEveryStep
from firstlight.errors import RunError, UserError
from firstlight.lit import MuonAdamW, one_cycle

NUM_STEPS = 20


def finder_in(folder: Path, **options: Any) -> LearningRateFinder:
    return LearningRateFinder(str(folder / "finder"), num_training_steps=NUM_STEPS, **options)


def parts_of(kind: str, request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """Return the data and a new module of a kind, with dropout, a warm-up, and for the generator two rates."""
    bench = request.getfixturevalue("bench" if kind == "classifier" else "writer_bench")
    data = bench.data()
    module = bench.module(data, dropout=0.3, schedule=partial(one_cycle, warmup_fraction=0.5, cycle_momentum=True))
    optimizer = partial(MuonAdamW, lr=0.01, matrix_lr=0.03) if kind == "generator" else partial(torch.optim.AdamW)
    module.optimizer_factory = optimizer
    return data, module


def trained(module: Any, data: Any, folder: Path, *callbacks: Any, steps: int = 4, **options: Any) -> dict[str, Any]:
    """Train, and return the weights and the last rates of the groups."""
    trainer = Trainer(
        accelerator="cpu",
        max_steps=steps,
        accumulate_grad_batches=2,
        gradient_clip_val=1.0,
        limit_val_batches=0,
        callbacks=[ReseedEveryStep(1), *callbacks],
        default_root_dir=folder,
        enable_checkpointing=any(isinstance(each, ModelCheckpoint) for each in callbacks),
        **dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary", "use_distributed_sampler"), False),
    )
    trainer.fit(module, datamodule=data, **options)
    rates = [group["lr"] for group in trainer.optimizers[0].param_groups]
    return {"rates": rates} | dict(module.state_dict())


def assert_equal(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert one["rates"] == two["rates"]
    assert all(torch.equal(one[name], two[name]) for name in one if name != "rates")


@pytest.mark.parametrize("kind", ["classifier", "generator"])
def test_the_training_is_that_with_the_rate_from_the_beginning(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    data, module = parts_of(kind, request)
    finder = finder_in(tmp_path)
    searched = trained(module, data, tmp_path, finder)
    rate = finder.learning_rate
    assert rate is not None
    assert 1e-6 < rate < 1

    again, plain = parts_of(kind, request)
    keywords = plain.optimizer_factory.keywords
    scale = rate / keywords.get("lr", 1e-3)
    rates = {"lr": rate} | ({"matrix_lr": keywords["matrix_lr"] * scale} if "matrix_lr" in keywords else {})
    plain.optimizer_factory = partial(plain.optimizer_factory.func, **keywords | rates)
    assert_equal(searched, trained(plain, again, tmp_path))
    found = json.loads((tmp_path / "finder" / "curve.json").read_text())
    assert found["optimizer"] == pytest.approx(rates)
    assert found["rates"] == pytest.approx([1e-6 * 1e6 ** (step / (NUM_STEPS - 1)) for step in range(NUM_STEPS)])
    assert len(found["losses"]) == len(found["smoothed_losses"]) == NUM_STEPS
    assert (tmp_path / "finder" / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_resumed_training_keeps_its_rate_and_searches_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    data, module = parts_of("generator", request)
    keeping = ModelCheckpoint(tmp_path, every_n_train_steps=2, save_top_k=-1, filename="{step}")
    finder = finder_in(tmp_path)
    whole = trained(module, data, tmp_path, finder, keeping)
    monkeypatch.setattr(learning_rate_finder, "RangeTest", None)
    caplog.set_level("INFO")
    data, module = parts_of("generator", request)
    resumed = finder_in(tmp_path)
    assert_equal(whole, trained(module, data, tmp_path, resumed, ckpt_path=str(tmp_path / "step=2.ckpt")))
    assert resumed.learning_rate == finder.learning_rate
    assert f"Learning rate: {finder.learning_rate:.3g}, which the search before the first step found" in caplog.text


def test_the_suggestion_is_a_tenth_of_the_rate_with_the_lowest_smoothed_loss() -> None:
    rates = [10 ** (-6 + step / 10) for step in range(60)]
    losses = [3 - 2 / (1 + abs(step - 40) / 5) for step in range(60)]
    losses[20] = 0.5  # a single lucky batch
    means = smoothed(losses)
    assert means[20] == pytest.approx(sum(losses[15:26]) / 11)
    assert means[0] == pytest.approx(sum(losses[:6]) / 6)
    assert suggested(rates, means) == pytest.approx(rates[40] / 10)
    with pytest.raises(RunError, match=r"the loss falls at no rate of the search; set optimizer\.lr yourself"):
        suggested(rates, [1 + step for step in range(60)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_lr": 0.1, "max_lr": 0.1}, "min_lr=0.1 must be above 0 and below max_lr=0.1"),
        ({"num_training_steps": 19}, "num_training_steps=19 must be at least 20"),
        ({"early_stop_threshold": 1}, "early_stop_threshold=1 must be above 1"),
    ],
)
def test_an_impossible_search_is_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"callbacks.learning_rate_finder.{message}")):
        LearningRateFinder("finder", **options)


def test_an_optimizer_whose_rate_cannot_be_set_is_one_line(bench: Any) -> None:
    data = bench.data()
    module = bench.module(data)
    module.optimizer_factory = lambda parameters: torch.optim.SGD(parameters, lr=0.1)
    with pytest.raises(UserError, match="whose optimizer is a functools"):
        bench.fit(finder_in(bench.folder), data=data, module=module)
