"""Jobs of a sweep that are trained together have the weights and the records of jobs that are trained alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from firstlight.sweeps.stacked import alike, refusal
from tests_support import Done, Scripts, some_names

EXACT = ["trainer.precision=64-true", "dropout=0", "test=false", "threads=1", "trainer.accelerator=cpu"]
SHORT = ["model=tiny", "model.dim=16", "model.num_layers=1", "trainer.log_every_n_steps=5", "trainer.max_steps=10"]


@pytest.fixture
def names(tmp_path: Path) -> list[str]:
    """Overrides of a training on a few names."""
    path = tmp_path / "names.txt"
    path.write_text(some_names(400), encoding="utf-8")
    return ["task=names", f"data.path={path}", "data.batch_size=38", *SHORT, *EXACT, "trainer.val_check_interval=5"]


def sweep(scripts: Scripts, name: str, *overrides: str) -> tuple[Done, dict[str, Path]]:
    """Run a sweep, and return the folders of its jobs by their names."""
    done = scripts.run("train", "-m", *overrides, f"sweep.name={name}")
    assert done.returncode == 0, done.stderr
    return done, {each.name: each for each in (scripts.folder / "logs" / "sweeps" / name).iterdir() if each.is_dir()}


def content(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Return the weights of the last checkpoint, the lines of the history, and the record of a run."""
    checkpoint = torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)
    lines = (folder / "history.jsonl").read_text(encoding="utf-8").splitlines()
    return checkpoint["state_dict"], list(map(json.loads, lines)), json.loads((folder / "metrics.json").read_text())


def assert_equal(stacked: dict[str, Path], alone: dict[str, Path], *, models: int | None) -> None:
    assert stacked.keys() == alone.keys()
    for name, folder in stacked.items():
        (weights, history, record), (others, other_history, other) = content(folder), content(alone[name])
        torch.testing.assert_close(weights, others, rtol=0, atol=1e-9)
        assert record.get("stacked") == models
        for key in ("steps", "tokens", "examples", "flops", "parameters", "status"):
            assert record.get(key) == other.get(key)
        for line, other_line in zip(history, other_history, strict=True):
            assert line.keys() == other_line.keys()
            for key in ("step", "train/loss", "val/loss", "train/perplexity", "val/perplexity", "val/accuracy"):
                assert line.get(key) == pytest.approx(other_line.get(key), abs=1e-6)


def test_models_with_other_seeds_and_rates_are_trained_together_and_continued(scripts: Scripts, names) -> None:
    jobs = [*names, "seed=1,2", "optimizer.lr=0.001,0.003"]
    _, stacked = sweep(scripts, "stacked", "hydra/launcher=stacked", *jobs)
    _, alone = sweep(scripts, "alone", *jobs)
    assert len(stacked) == 4
    assert_equal(stacked, alone, models=4)
    kept, *lost = stacked
    assert scripts.run("evaluate", str(stacked[kept])).returncode == 0
    before = (stacked[kept] / "metrics.json").read_bytes()
    for name in lost[:2]:
        shutil.rmtree(stacked[name])
    _, stacked = sweep(scripts, "stacked", "hydra/launcher=stacked", *jobs)
    assert (stacked[kept] / "metrics.json").read_bytes() == before
    assert_equal(*({name: folders[name] for name in lost[:2]} for folders in (stacked, alone)), models=2)


def test_jobs_of_classifiers_are_trained_together_or_say_why_not(scripts: Scripts, reviews_folder: Path) -> None:
    jobs = [
        "task=sentiment",
        f"data.path={reviews_folder}",
        "context_length=23",
        *SHORT,
        *EXACT,
        "model.token_dropout=0",
    ]
    jobs += ["trainer.val_check_interval=5", "data.batch_size=16", "seed=1,2"]
    done, single = sweep(scripts, "bucketed", "hydra/launcher=stacked", *jobs, "trainer.max_steps=1")
    assert "one by one, not as a stack: it needs data.bucket_by_length=false instead of true" in done.stdout
    jobs.append("data.bucket_by_length=false")
    _, stacked = sweep(scripts, "stacked", "hydra/launcher=stacked", *jobs)
    _, alone = sweep(scripts, "alone", *jobs)
    assert_equal(stacked, alone, models=2)
    assert all("stacked" not in content(folder)[2] for folder in single.values())


def test_only_jobs_that_differ_in_numbers_are_alike(tmp_path: Path) -> None:
    settings = [(1, 8, 0.1), (2, 8, 0.1), (1, 16, 0.1), (3, 8, 0.2), (4, 8, 0.1)]
    configs = [
        OmegaConf.create(
            {"seed": seed, "model": {"dim": dim}, "optimizer": {"lr": lr}, "hydra": {"sweep": {"subdir": f"{place}"}}}
        )
        for place, (seed, dim, lr) in enumerate(settings)
    ]
    assert list(alike(configs, tmp_path, most=3)) == [[0, 1, 3], [4], [2]]
    assert refusal(OmegaConf.create({"trainer": {"accumulate_grad_batches": 2}})) == (
        "it needs trainer.accumulate_grad_batches=1 instead of 2"
    )
    assert refusal(OmegaConf.create({"trainer": {"accumulate_grad_batches": 1}})) is None
