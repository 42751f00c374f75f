"""Tests of the ablation of names, from the multirun to the table and the figure."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from firstlight.kind.load import load
from firstlight.runs.folder import SAMPLE_NOTE
from run_folders import make_run
from tests_support import Done, Scripts

QUICK = ["data.source=sample", "trainer.max_epochs=1", "trainer.limit_train_batches=3", "trainer.limit_val_batches=1"]


@pytest.fixture(scope="module")
def climbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """Return the output of an ablation with two rungs, and the folder of its sweep."""
    scripts = Scripts(tmp_path_factory.mktemp("ladder"))
    done = scripts.run("train", "experiment=post/names_ladder", "ladder=bigram_table,one_head", *QUICK)
    return done, scripts.folder / "logs" / "sweeps" / "names_ladder"


def test_the_rungs_are_trained_one_after_the_other(climbed: tuple[Done, Path]) -> None:
    done, folder = climbed
    assert done.returncode == 0, done.stderr
    rows = rows_of(folder)
    assert [row["rung"] for row in rows] == ["bigram_table", "one_head"]
    assert [row["context_length"] for row in rows] == ["10", "10"]
    parameters = [int(row["parameters"]) for row in rows]
    assert parameters == sorted(parameters)
    assert (folder / "ladder.png").stat().st_size > 10_000
    assert done.stdout.count(SAMPLE_NOTE) == 1, "a sweep on generated data says so at its end"
    for rung in ("bigram_table", "one_head"):
        assert rung in done.stdout


def test_a_rung_without_blocks_is_loaded_again(climbed: tuple[Done, Path]) -> None:
    run = load(climbed[1] / "ladder-bigram_table")
    assert (run.config["model"]["num_layers"], len(run.network.state_dict())) == (4, 1)


def test_a_rung_that_was_not_finished_is_left_out(climbed: tuple[Done, Path], tmp_path: Path) -> None:
    folder = tmp_path / "names_ladder"
    shutil.copytree(climbed[1], folder)
    record = folder / "ladder-one_head" / "metrics.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": "failed"}))
    show(folder)
    assert [row["rung"] for row in rows_of(folder)] == ["bigram_table"]


def test_a_job_that_was_interrupted_is_resumed_as_one_run(climbed: tuple[Done, Path], tmp_path: Path) -> None:
    job = tmp_path / "names_ladder" / "ladder-one_head"
    shutil.copytree(climbed[1] / job.name, job)
    record = json.loads((job / "metrics.json").read_text())
    (job / "metrics.json").write_text(json.dumps(record | {"status": "interrupted"}))
    Scripts(tmp_path).succeed("train", f"resume={job}", "trainer.max_epochs=2")
    again = json.loads((job / "metrics.json").read_text())
    assert (again["status"], again["steps"]) == ("finished", 2 * record["steps"])
    assert not (tmp_path / "logs" / "sweeps").exists()


@pytest.mark.parametrize(("source", "published"), [("local", ["2.476", "2.024"]), ("sample", ["", ""])])
def test_generated_names_are_not_compared_with_the_post(tmp_path: Path, source: str, published: list[str]) -> None:
    for rung in ("pre_norm", "one_head"):
        make_run(tmp_path, rung, f"ladder={rung}", task="names", data={"source": source, "fingerprint": "f"})
    show(tmp_path)
    assert [(row["rung"], row["post"]) for row in rows_of(tmp_path)] == list(
        zip(("one_head", "pre_norm"), published, strict=True)
    )


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "ladder.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def show(folder: Path) -> None:
    from omegaconf import OmegaConf

    from firstlight.sweeps.figures import ShowLadder

    ShowLadder().on_multirun_end(OmegaConf.create({"hydra": {"sweep": {"dir": str(folder)}}}))
