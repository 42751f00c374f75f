"""A sweep goes on with what is not finished, whatever happened to it."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from firstlight.data import sources
from firstlight.runs.jobs import folder_name, name_of_sweep
from tests_support import Scripts, wait_until

JOBS = {"dropout-0_seed-1", "dropout-0_seed-2", "dropout-0.1_seed-1", "dropout-0.1_seed-2"}


@pytest.fixture
def grid(tiny_training: list[str]) -> list[str]:
    return ["-m", *tiny_training, "dropout=0,0.1", "seed=1,2", "trainer.max_steps=4", "logger=none"]


def records(folder: Path) -> dict[str, dict[str, Any]]:
    return {file.parent.name: json.loads(file.read_text()) for file in sorted(folder.glob("*/metrics.json"))}


def sweep_folder(scripts: Scripts) -> Path:
    (folder,) = (scripts.folder / "logs" / "sweeps").iterdir()
    return folder


def test_the_same_command_again_runs_nothing_again(scripts: Scripts, grid: list[str]) -> None:
    assert scripts.run("train", *grid).returncode == 0
    folder = sweep_folder(scripts)
    first = records(folder)
    assert first.keys() == JOBS
    assert {record["status"] for record in first.values()} == {"finished"}
    assert [first[job]["dropout"] for job in sorted(JOBS)] == [0.1, 0.1, 0, 0]
    assert not any(name.startswith("test/") for record in first.values() for name in record["metrics"])
    again = scripts.run("train", *reversed(grid[1:]), "-m")
    assert again.returncode == 0
    assert records(sweep_folder(scripts)) == first
    assert "4 jobs: 4 finished, 0 failed, 0 to go, best val/accuracy" in again.stdout + again.stderr


def test_a_job_that_fails_ends_neither_the_sweep_nor_the_others(scripts: Scripts, tiny_training: list[str]) -> None:
    grid = ["-m", *tiny_training, "optimizer.lr=1e-3,1e30,1e-2", "trainer.max_steps=9", "logger=none"]
    done = scripts.run("train", *grid)
    assert done.returncode == 1
    assert "1 of 3 jobs failed, the first in" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr + done.stdout
    found = records(sweep_folder(scripts))
    assert [record["status"] for record in found.values()] == ["finished", "finished", "failed"]
    (failed,) = (record for record in found.values() if record["status"] == "failed")
    assert "NonFinite" in failed["reason"] or "loss" in failed["reason"]
    finished = {name: record for name, record in found.items() if record["status"] == "finished"}
    assert scripts.run("train", *grid).returncode == 1  # it is tried again, and fails again
    after = records(sweep_folder(scripts))
    assert {name: after[name] for name in finished} == finished


def test_a_killed_sweep_goes_on_where_it_was(scripts: Scripts, tiny_training: list[str]) -> None:
    grid = ["-m", *tiny_training, "seed=1,2", "trainer.max_epochs=4", "logger=none"]
    quick = "callbacks.checkpoint.every_n_train_steps=2"
    process = scripts.start("train", *grid, quick)
    folders = scripts.folder / "logs" / "sweeps"

    def second_job_has_a_checkpoint() -> bool:
        return bool(list(folders.glob("*/seed-2/checkpoints/last.ckpt")))

    wait_until(second_job_has_a_checkpoint, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)
    before = records(sweep_folder(scripts))
    assert [record["status"] for record in before.values()] == ["finished", "running"]
    assert scripts.run("train", *grid, quick).returncode == 0
    after = records(sweep_folder(scripts))
    assert after["seed-1"] == before["seed-1"]
    assert after["seed-2"]["status"] == "finished"
    alone = scripts.train(*tiny_training, "seed=2", "trainer.max_epochs=4", "logger=none", "test=false")
    metrics = json.loads((alone / "metrics.json").read_text())["metrics"]
    assert after["seed-2"]["metrics"] == metrics


def test_a_dry_run_lists_the_jobs_and_runs_none(scripts: Scripts, tiny_training: list[str]) -> None:
    arguments = [*tiny_training[:1], *tiny_training[2:], "model=tiny,small", "dry_run=true"]
    done = scripts.run("train", "-m", *arguments)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if "model=" in line]
    assert len(rows) == 2
    assert all("waiting" in row for row in rows)
    counts = [int(row.split("│")[2].strip().replace(",", "")) for row in rows]
    assert 0 < counts[0] < counts[1]
    assert not list((scripts.folder / "logs").glob("sweeps/*/*"))
    single = scripts.run("train", *tiny_training, "dry_run=true")
    assert single.returncode == 0, single.stderr
    assert f"{counts[0]:,}" in single.stdout
    assert not (scripts.folder / "logs" / "sentiment").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model.num_heads=2,3",), "model.num_heads=3: model.dim=16 is not divisible by model.num_heads=3"),
        (("seed=1,1",), "two jobs of the sweep are the same, seed-1; remove one"),
        (("dropout=0,1.5",), "dropout=1.5: dropout=1.5 must be at least 0 and below 1"),
        (("trainer.strategy=ddp", "seed=1,2"), "trainer.strategy=ddp would start the whole sweep again"),
        (("dropout=interval(0,1)",), "a grid takes lists"),
    ],
)
def test_what_cannot_be_run_is_said_before_the_first_job(
    arguments: tuple[str, ...], message: str, scripts: Scripts, tiny_training: list[str]
) -> None:
    done = scripts.run("train", "-m", *tiny_training, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list((scripts.folder / "logs").glob("sweeps/*/*"))


def test_another_configuration_under_the_same_name_is_refused(scripts: Scripts, tiny_training: list[str]) -> None:
    sweep = ["-m", *tiny_training, "sweep.name=mine", "logger=none", "seed=1,2"]
    assert scripts.run("train", *sweep, "trainer.max_steps=1").returncode == 0
    before = records(scripts.folder / "logs" / "sweeps" / "mine")
    done = scripts.run("train", *sweep, "trainer.max_steps=2")
    assert done.returncode == 2
    assert "holds a run of trainer.max_steps=1, where it is 2 here; give this sweep another sweep.name" in done.stderr
    assert records(scripts.folder / "logs" / "sweeps" / "mine") == before


def test_the_name_of_a_sweep_does_not_depend_on_the_order_of_what_is_typed() -> None:
    parse = OverridesParser.create().parse_overrides
    name = name_of_sweep(parse(["seed=1,2", "dropout=0.1"]))
    assert name == name_of_sweep(parse(["dropout=0.1", "seed=1,2", "dry_run=true", "paths.log_dir=x"]))
    assert name != name_of_sweep(parse(["seed=1,2,3", "dropout=0.1"]))
    assert name[0].isalpha()


def test_a_folder_is_named_by_what_varies_without_signs_that_overrides_mind() -> None:
    assert folder_name(["model=tiny", "dropout=0.1", "+a.b=c,d"]) == "a.b-c-d_dropout-0.1_model-tiny"
    assert folder_name([]) == "job"
    long, other = (folder_name([f"key={'x' * 200}{end}"]) for end in "ab")
    assert long != other
    assert len(long) < 140


def test_where_the_data_is_is_looked_for_once_for_all_jobs(
    scripts: Scripts, tiny_training: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    real = sources.local_folder
    monkeypatch.setattr(sources, "local_folder", lambda name: (looked.append(name), real(name))[1])
    (scripts.folder / "data").mkdir()
    (scripts.folder / "data" / "amazon_reviews").symlink_to(tiny_training[0].partition("=")[2])
    quick = [*tiny_training[1:], "trainer.max_steps=1", "logger=none"]
    assert scripts.run("train", "-m", *quick, "seed=1,2,3").returncode == 0
    found = records(sweep_folder(scripts)).values()
    assert [record["data"]["source"] for record in found] == ["local"] * 3
    assert all("data.source=local" in record["overrides"] for record in found)
    assert looked.count("amazon_reviews") == 1 + 3  # once for the sweep, then by each job, where it was found


def test_jobs_that_run_at_the_same_time_give_what_they_give_one_by_one(
    scripts: Scripts, tiny_training: list[str]
) -> None:
    grid = ["-m", *tiny_training, "seed=1,2", "trainer.max_steps=4", "logger=none", "threads=1"]
    done = scripts.run_alone("train", *grid, "sweep.name=both", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    assert done.returncode == 0, done.stderr
    assert "2 jobs: 2 finished, 0 failed, 0 to go" in done.stdout + done.stderr
    assert scripts.run("train", *grid, "sweep.name=each").returncode == 0
    both, each = (records(scripts.folder / "logs" / "sweeps" / name) for name in ("both", "each"))
    assert both.keys() == each.keys() == {"seed-1", "seed-2"}
    for job in both:
        assert both[job]["metrics"] == each[job]["metrics"]
