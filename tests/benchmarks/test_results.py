"""RESULTS.md: a finished run is not measured again, and the page has the numbers of the runs."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from omegaconf import OmegaConf

from tests_support import ROOT, Scripts, captured

SCRIPT = ROOT / "benchmarks" / "results.py"


@pytest.fixture(scope="module")
def results() -> Any:
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("results", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["results"] = module  # a dataclass looks up its module here
    spec.loader.exec_module(module)
    return module


def plan_of(metric: str, lines: list[dict[str, Any]], splits: tuple[str, ...] = ("validation", "test")) -> Any:
    section = {"title": "A task", "metric": metric, "splits": list(splits), "unit": "training rows", "text": "Rows."}
    return {"preface": "# Results", "machine": "A machine.", "sections": {"task": {**section, "lines": lines}}}


def put(folder: Path, metrics: dict[str, float], **more: Any) -> None:
    folder.mkdir(parents=True)
    record = {
        "status": "finished",
        "parameters": 1234,
        "metrics": metrics,
        "seconds": {"fit": 300.0, "fit_processor": 90.0},
        "data": {"rows": {"train": 5678}},
        "versions": {"torch": "9.9"},
        "git": {"commit": "0123456789", "modified": False},
    }
    (folder / "metrics.json").write_text(json.dumps(record | more))


LINE = {"name": "ours", "title": "ours", "train": "task=stars", "seeds": [1, 2, 3]}


def test_the_page_has_mean_and_deviation_of_the_seeds_that_are_finished(results: Any, tmp_path: Path) -> None:
    for seed, accuracy in ((1, 0.5), (2, 0.6)):
        put(tmp_path / "task" / "ours" / f"seed-{seed}", {"val/accuracy": accuracy, "test/accuracy": accuracy - 0.1})
    put(tmp_path / "task" / "ours" / "seed-3", {"val/accuracy": 0.99}, status="running")
    page = results.page(plan_of("accuracy", [LINE]), tmp_path)
    row = next(line for line in page.splitlines() if line.startswith("| ours"))
    assert "`python src/train.py task=stars seed=1`" in row
    assert "| 1,234 | 5,678 | 55.0 ± 7.1% (2) | 45.0 ± 7.1% (2) | 1.5 min |" in row
    assert "`0123456`" in page
    assert "torch 9.9" in page


def test_what_is_not_measured_is_said(results: Any, tmp_path: Path) -> None:
    lines = [
        {"title": "theirs", "published": {"test": "49.9%"}},
        {**LINE, "aim": {"split": "test", "value": 1, "text": "≥ 1"}},
    ]
    page = results.page(plan_of("accuracy", lines), tmp_path)
    assert "| theirs | – | – | – | – | 49.9% | – |" in page
    assert "| ours | `python src/train.py task=stars seed=1` | not measured |" in page
    assert "≥ 1; not measured." in page


@pytest.mark.parametrize(
    ("metric", "value", "goal", "verdict"),
    [
        ("accuracy", 0.53, 0.525, ": reached"),
        ("accuracy", 0.52, 0.525, ": **not reached**"),
        ("loss", 1.59, 1.6, ": reached"),
        ("loss", 1.61, 1.6, ": **not reached**"),
        ("bleu", 33.3, 33, ": reached"),
        ("perplexity", 4.8, 4.7, ": **not reached**"),
    ],
)
def test_an_aim_is_reached_by_the_mean_or_not(
    results: Any, tmp_path: Path, metric: str, value: float, goal: float, verdict: str
) -> None:
    line = {**LINE, "aim": {"split": "test", "value": goal, "text": "so much"}}
    for seed in (1, 2, 3):
        put(tmp_path / "task" / "ours" / f"seed-{seed}", {f"test/{metric}": value + (seed - 2) * 0.001})
    assert verdict in results.page(plan_of(metric, [line]), tmp_path)


@pytest.fixture(params=["in this process", pytest.param("in processes", marks=pytest.mark.slow)])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    """Return the function that starts the scripts of a plan.

    In this process, a script gets the same command line. tests/runs/ tests the scripts as processes.
    """
    if request.param == "in processes":
        return subprocess.run

    def run(command: list[str], *, cwd: Path, stdout: Any, **_: Any) -> Any:
        python, script, *arguments = command
        assert (python, Path(script).parent, cwd) == (sys.executable, ROOT / "src", ROOT)
        done = Scripts(tmp_path).run(Path(script).stem, *arguments)
        stdout.write(done.stdout + done.stderr)
        return done

    return run


def test_a_plan_is_measured_once_and_gone_on_with(
    results: Any, start: Callable[..., Any], tmp_path: Path, reviews_folder: Path
) -> None:
    quick = f"data.path={reviews_folder} task=stars model=tiny data.max_train_rows=97 trainer.max_steps=2"
    lines = [
        {"name": "tiny", "title": "tiny", "train": f"{quick} ++callbacks.confusion_matrix=null", "seeds": [1, 2]},
        {
            "name": "counted",
            "title": "TF-IDF",
            "baseline": f"--task stars --data.path {reviews_folder} --data.max-train-rows 97",
        },
    ]
    OmegaConf.save(OmegaConf.create(plan_of("accuracy", lines)), tmp_path / "plan.yaml")

    def measure(*options: str) -> str:
        where = ["--plan", tmp_path / "plan.yaml", "--folder", tmp_path / "runs", "--page", tmp_path / "page.md"]
        arguments = [str(SCRIPT), *map(str, where), *options]
        with (
            captured() as (out, _),
            patch.object(sys, "argv", arguments),
            patch.object(results, "subprocess", SimpleNamespace(run=start)),
        ):
            results.main()
        return out.getvalue()

    with pytest.raises(SystemExit, match=r"^--only tsak: the sections are task$"):
        measure("--only", "tsak")
    first = measure("--seeds", "1")
    assert first.count("python src/train.py") == 1
    assert first.count("python src/baseline.py") == 1
    page = (tmp_path / "page.md").read_text()
    assert "(1)" in next(line for line in page.splitlines() if line.startswith("| tiny"))
    assert "(1)" not in next(line for line in page.splitlines() if line.startswith("| TF-IDF"))
    before = (tmp_path / "runs" / "task" / "tiny" / "seed-1" / "metrics.json").read_bytes()
    again = measure()
    assert again.count("python src/train.py") == 1, "only the second seed"
    assert "seed=2" in again
    assert (tmp_path / "runs" / "task" / "tiny" / "seed-1" / "metrics.json").read_bytes() == before
    assert "(2)" in (tmp_path / "page.md").read_text()
