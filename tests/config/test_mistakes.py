"""Every mistake in the configuration is one line and exit code 2, answered before anything heavy is imported."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests_support import ROOT, Scripts

MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))


def test_a_current_folder_whose_name_hydra_would_resolve_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "${oc.env:HOME}"
    folder.mkdir()
    done = Scripts(folder).run("train", "task=names")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"error: {folder}: the name of the current folder has ${{ in it" in done.stderr
    assert not any(folder.iterdir())


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_mistake_is_one_line_with_exit_code_2_and_leaves_nothing_behind(typed, scripts, tiny_training, request):
    words = {"TINY": tiny_training}
    if "RUN" in typed.split():
        words["RUN"] = [str(request.getfixturevalue("trained")("sentiment"))]
    (scripts.folder / "in.csv").write_text("text\ngood\n")
    done = scripts.run(*(each for word in typed.split() for each in words.get(word, [word])))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith("error: ")
    assert MISTAKES[typed] in done.stderr
    assert [path.name for path in scripts.folder.iterdir()] == ["in.csv"]
    assert not any((Path(run) / "figures").exists() for run in words.get("RUN", []))


# `firstlight train`, which calls the same function as src/train.py, answers a wrong key and --help without torch in
# test_main.py::test_an_answer_does_not_wait_for_what_it_does_not_need.
def test_an_answer_does_not_wait_for_torch(scripts: Scripts) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(ROOT / "src" / "train.py"), "model.dim=50", "model.num_heads=3"],
        capture_output=True,
        text=True,
        cwd=scripts.folder,
        check=False,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time:" in line}
    assert "hydra" in imported
    assert not imported & {"torch", "lightning", "torchmetrics", "datasets", "wandb", "matplotlib"}


def test_an_unknown_option_of_a_reading_script_is_exit_code_2(scripts: Scripts) -> None:
    done = scripts.run("predict", "latest", "--txt", "good")
    assert done.returncode == 2
    assert "--text" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_check_that_fails_by_a_bug_ends_the_run_before_it_begins(scripts, monkeypatch) -> None:
    """Hydra would warn of the exception and train all the same."""
    monkeypatch.setattr("firstlight.config.checks.check_metric", lambda config: 1 / 0)
    done = scripts.run("train", "task=sentiment", "data.source=sample", "dry_run=true")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert not (scripts.folder / "logs").exists()
