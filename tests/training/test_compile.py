"""torch.compile changes the speed of a training, not what comes of it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from tests_support import some_names

HAS_COMPILER = bool(shutil.which("g++") or shutil.which("c++"))


@pytest.mark.slow  # the compiler takes a minute
@pytest.mark.skipif(not HAS_COMPILER, reason="torch.compile needs a C++ compiler, and there is neither g++ nor c++")
@pytest.mark.parametrize("task", ["sentiment", "names"])
def test_a_compiled_training_gives_nearly_the_losses_of_one_that_is_not(task, scripts, tiny_training) -> None:
    names = scripts.folder / "names.txt"
    names.write_text(some_names(700), encoding="utf-8")
    common = [*tiny_training, f"task={task}", "dropout=0", "trainer.max_steps=4", "trainer.log_every_n_steps=1"]
    common += {"sentiment": ["model.token_dropout=0"], "names": [f"data.path={names}", "model.dim=16"]}[task]
    losses, weights = [], []
    for name, overrides in {"plain": [], "compiled": ["compile=true"]}.items():
        done = scripts.run_alone("train", *common, *overrides, f"hydra.run.dir={name}")
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in (scripts.folder / name / "history.jsonl").read_text().splitlines()]
        losses.append([line["train/loss"] for line in lines if "train/loss" in line])
        checkpoint = torch.load(scripts.folder / name / "checkpoints" / "last.ckpt", weights_only=True)
        weights.append(checkpoint["state_dict"])
    assert len(losses[0]) == len(losses[1]) == 4
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert len(set(losses[0])) == 4
    assert weights[0].keys() == weights[1].keys()
    done = scripts.run_alone("evaluate", "compiled", "--split", "validation")
    assert done.returncode == 0, done.stderr
    found = metrics_of(scripts.folder / "compiled" / "evaluate" / "validation")
    assert found["validation/loss"] == pytest.approx(metrics_of(scripts.folder / "compiled")["val/loss"], rel=1e-4)


def metrics_of(folder: Path) -> dict[str, float]:
    return json.loads((folder / "metrics.json").read_text())["metrics"]


@pytest.mark.parametrize(
    ("task", "dynamic"),
    [("sentiment", True), pytest.param("names", False, marks=pytest.mark.slow)],  # 1.3 s for another option
)
def test_a_network_is_compiled_in_place_where_it_is_wanted(task, dynamic, scripts, tiny_training, monkeypatch) -> None:
    """Once for all lengths, where batches differ in length."""
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda network, **options: asked.append(options))
    names = scripts.folder / "names.txt"
    names.write_text(some_names(300), encoding="utf-8")
    quick = [*tiny_training, f"task={task}", "trainer.max_steps=1", "logger=none", "test=false"]
    quick += ["callbacks.text_samples=null", f"data.path={names}"] if task == "names" else []
    scripts.train(*quick)
    assert asked == []
    scripts.train(*quick, "compile=true", "compile_mode=reduce-overhead")
    assert asked == [{"dynamic": dynamic, "mode": "reduce-overhead"}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["compile=true", "compile_mode=fast"], "compile_mode=fast must be null, default, reduce-overhead"),
        (["compile_mode=default"], "compile_mode=default requires compile=true; set that too, or leave it out"),
    ],
)
def test_a_mode_that_does_not_exist_or_that_nothing_uses_is_refused(options, message, scripts) -> None:
    assert message in scripts.refuse("train", *options)
