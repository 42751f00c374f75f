"""Every mistake in the configuration is one line and exit code 2."""

from pathlib import Path

import pytest
import yaml

from tests_support import Scripts

MISTAKES = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))


def test_a_current_folder_whose_name_hydra_would_resolve_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "${oc.env:HOME}"
    folder.mkdir()
    error = Scripts(folder).refuse("train", "task=names")
    assert f"error: {folder}: the name of the current folder has ${{ in it" in error
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


def test_a_check_that_fails_by_a_bug_ends_the_run_before_it_begins(scripts, monkeypatch) -> None:
    """Hydra would warn of the exception and train all the same."""
    monkeypatch.setattr("firstlight.config.checks.check_metric", lambda config: 1 / 0)
    done = scripts.run("train", "task=sentiment", "data.source=sample", "dry_run=true")
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr
    assert not (scripts.folder / "logs").exists()
