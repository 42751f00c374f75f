"""The ladder of names, from a multirun to a table and a picture."""

import csv
import json
from pathlib import Path

from tests_support import Scripts

QUICK = ["data.source=sample", "trainer.max_epochs=1", "trainer.limit_train_batches=3", "trainer.limit_val_batches=1"]


def test_the_rungs_are_trained_one_after_the_other_and_shown_beside_the_post(scripts: Scripts) -> None:
    done = scripts.run("train", "experiment=post/names_ladder", "ladder=one_head,heads,pre_norm", *QUICK)
    assert done.returncode == 0, done.stderr
    folder = scripts.folder / "logs" / "sweeps" / "names_ladder"
    with (folder / "ladder.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["rung"] for row in rows] == ["one_head", "heads", "pre_norm"]
    assert [row["post"] for row in rows] == ["2.476", "", "2.024"]
    parameters = [int(row["parameters"]) for row in rows]
    assert parameters == sorted(parameters)
    assert (folder / "ladder.png").stat().st_size > 10_000
    for rung in ("one_head", "heads", "pre_norm"):
        assert rung in done.stdout


def test_a_rung_that_was_not_finished_is_left_out(scripts: Scripts) -> None:
    done = scripts.run("train", "experiment=post/names_ladder", "ladder=one_head,heads", *QUICK)
    assert done.returncode == 0, done.stderr
    folder = scripts.folder / "logs" / "sweeps" / "names_ladder"
    record = folder / "ladder-one_head" / "metrics.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": "failed"}))
    show(folder)
    with (folder / "ladder.csv").open(encoding="utf-8", newline="") as file:
        assert [row["rung"] for row in csv.DictReader(file)] == ["heads"]


def show(folder: Path) -> None:
    from omegaconf import OmegaConf

    from firstlight.runs.ladder import ShowLadder

    ShowLadder().on_multirun_end(OmegaConf.create({"hydra": {"sweep": {"dir": str(folder)}}}))
