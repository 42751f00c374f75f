"""Tests of the ablation of names, from the multirun to the table and the figure."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from firstlight.kinds.load import load
from tests_support import Done, Scripts

QUICK = ["data.source=sample", "trainer.max_epochs=1", "trainer.limit_train_batches=3", "trainer.limit_val_batches=1"]


@pytest.fixture(scope="module")
def climbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Path]:
    """Return the output of an ablation with two rungs, and the folder of its sweep."""
    scripts = Scripts(tmp_path_factory.mktemp("ladder"))
    done = scripts.run("train", "experiment=post/names_ladder", "ladder=bigram_table,one_head", *QUICK)
    return done, scripts.folder / "logs" / "sweeps" / "names_ladder"


def test_the_rungs_are_trained_one_after_the_other_and_shown_beside_the_post(climbed: tuple[Done, Path]) -> None:
    done, folder = climbed
    assert done.returncode == 0, done.stderr
    with (folder / "ladder.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["rung"] for row in rows] == ["bigram_table", "one_head"]
    assert [row["post"] for row in rows] == ["", "2.476"]
    parameters = [int(row["parameters"]) for row in rows]
    assert parameters == sorted(parameters)
    assert (folder / "ladder.png").stat().st_size > 10_000
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
    with (folder / "ladder.csv").open(encoding="utf-8", newline="") as file:
        assert [row["rung"] for row in csv.DictReader(file)] == ["bigram_table"]


def show(folder: Path) -> None:
    from omegaconf import OmegaConf

    from firstlight.sweeps.ladder import ShowLadder

    ShowLadder().on_multirun_end(OmegaConf.create({"hydra": {"sweep": {"dir": str(folder)}}}))
