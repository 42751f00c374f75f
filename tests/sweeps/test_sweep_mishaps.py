"""Mishaps of a sweep: lost workers, two commands at once, changed choices, contradictory values."""

import fcntl
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from firstlight.errors import Interrupted
from firstlight.runs.folder import RunFolder
from firstlight.sweeps.grid import Runner
from firstlight.sweeps.jobs import Job
from tests_support import Scripts, contents

NAME = "lr (new)"  # any name that a folder may have


@pytest.fixture(scope="module")
def quick(tiny_training: list[str]) -> list[str]:
    return [*tiny_training, "trainer.max_steps=2", "logger=none", "sweep.name=mine"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, quick: list[str]) -> tuple[Scripts, list[str]]:
    """The folder of a finished sweep of two jobs, and its command line."""
    scripts = Scripts(tmp_path_factory.mktemp("finished"))
    sweep = ["-m", *quick[:-1], f"sweep.name='{NAME}'", "seed=1,2"]
    done = scripts.run("train", *sweep)
    assert done.returncode == 0, done.stderr
    assert len(list((scripts.folder / "logs" / "sweeps" / NAME).glob("*/metrics.json"))) == 2
    return scripts, sweep


def test_an_unchanged_sweep_writes_nothing_and_one_with_other_metrics_or_callbacks_is_refused(
    finished: tuple[Scripts, list[str]],
) -> None:
    scripts, sweep = finished
    before = contents(scripts.folder / "logs" / "sweeps")
    assert scripts.run("train", *sweep).returncode == 0
    assert contents(scripts.folder / "logs" / "sweeps") == before
    done = scripts.run("train", *sweep, "test=true")
    assert done.returncode == 2
    assert "is a finished run with test=False, which is True now; choose another sweep.name" in done.stderr
    assert contents(scripts.folder / "logs" / "sweeps") == before


def test_a_second_command_for_a_sweep_that_runs_is_refused(scripts: Scripts, quick: list[str]) -> None:
    folder = scripts.folder / "logs" / "sweeps" / "mine"
    folder.mkdir(parents=True)
    (folder / "multirun.yaml").write_text("that of the other command")
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = scripts.run("train", "-m", *quick, "seed=1,2")
    assert done.returncode == 2
    assert "another process runs this sweep; wait for it, or stop it" in done.stderr
    assert not list(folder.glob("*/metrics.json"))
    assert (folder / "multirun.yaml").read_text() == "that of the other command"


@pytest.mark.parametrize(
    "devices",
    [("trainer.devices=2", "trainer.accelerator=gpu"), ("trainer.devices=-1",), ("trainer.num_nodes=2",)],
)
def test_several_processes_are_refused_where_lightning_would_choose_ddp_by_itself(
    devices: tuple[str, ...], scripts: Scripts, quick: list[str]
) -> None:
    done = scripts.run("train", "-m", *quick, *devices, "seed=1,2", "dry_run=true")
    assert done.returncode == 2
    assert "trainer.strategy=ddp would start the complete sweep again in each process" in done.stderr


@pytest.mark.slow  # 2 s; test_search.py has a trial that fails
def test_a_trial_whose_values_contradict_each_other_fails_and_the_search_continues(
    scripts: Scripts, quick: list[str]
) -> None:
    pytest.importorskip("optuna")
    search = [*quick, "hparams_search=optuna", "hydra.sweeper.n_trials=2", "model.num_heads=1,3"]
    done = scripts.run("train", *search)
    assert done.returncode == 1
    assert "model.dim=16 is not divisible by model.num_heads=3" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stdout + done.stderr
    folder = scripts.folder / "logs" / "sweeps" / "mine"
    finished = {path.parent.name for path in folder.glob("*/metrics.json")}
    assert len(finished) == done.stdout.count("The run is in") == 1
    before = contents(folder)
    again = scripts.run("train", *search)
    assert again.returncode == 0, "no trial of this call failed"
    assert {name: text for name, text in contents(folder).items() if "trial-" in name} == {
        name: text for name, text in before.items() if "trial-" in name
    }


class LosesItsWorkers:
    """A launcher whose workers are killed after the first job."""

    def __init__(self, first: Job, second: Job) -> None:
        self.first, self.second = first, second

    def launch(self, job_overrides: list[list[str]], initial_job_idx: int) -> Any:
        self.first.folder.path.mkdir()
        self.first.folder.write({"task": "stars", "status": "finished", "metrics": {"val/loss": 1.0}})
        self.second.folder.path.mkdir()
        self.second.folder.write({"task": "stars", "status": "running", "metrics": {}, "parameters": 7})
        raise RuntimeError("a worker was killed")


def test_lost_jobs_have_failed_and_finished_jobs_stay(tmp_path: Path) -> None:
    config = OmegaConf.create(
        {
            "hydra": {"runtime": {"choices": {"task": "stars", "model": "tiny"}}},
            "dropout": 0.0,
            "context_length": 7,
            "seed": 1,
            "optimized_metric": "val/loss",
        }
    )
    jobs = [Job((f"seed={n}",), (f"seed={n}",), RunFolder(tmp_path / f"seed-{n}"), config) for n in (1, 2, 3)]
    runner = Runner(config, tmp_path, lambda _: LosesItsWorkers(*jobs[:2]))  # type: ignore[arg-type, return-value]
    runner.run(jobs, 0)
    assert list(runner.errors) == [tmp_path / "seed-2", tmp_path / "seed-3"]
    assert [job.status for job in jobs] == ["finished", "failed", "failed"]
    begun, record = (json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("seed-2", "seed-3"))
    assert (begun["reason"], begun["parameters"]) == ("RuntimeError: a worker was killed", 7)
    assert record["reason"] == "RuntimeError: a worker was killed"
    assert record["overrides"] == ["seed=3"]


def test_an_interruption_can_be_handed_from_a_worker_to_the_sweep() -> None:
    error = pickle.loads(pickle.dumps(Interrupted(15)))  # noqa: S301  (made here)
    assert (error.signal_number, error.exit_code, str(error)) == (15, 143, "interrupted by signal 15")
