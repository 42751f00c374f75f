"""Jobs at the same time on one machine: each has its own GPU, or the sweep reports before its start why not."""

import os
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig, OmegaConf

from firstlight.errors import Interrupted, RunError, UserError
from firstlight.runs.folder import RunFolder
from firstlight.sweeps import grid, launchers
from firstlight.sweeps.grid import Runner
from firstlight.sweeps.jobs import Job
from firstlight.sweeps.launchers import ONE_BY_ONE, PARALLEL, check_gpus, jobs_at_a_time
from tests_support import Scripts


@pytest.mark.parametrize(("visible", "names"), [("", ["0", "1"]), ("7,GPU-3", ["7", "GPU-3"])])
@pytest.mark.parametrize("jobs_per_gpu", [1, 2])
def test_workers_share_the_gpus_evenly_and_keep_theirs(
    visible: str, names: list[str], jobs_per_gpu: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers: list[list[Any]] = []  # the locks of each

    def claimed(worker: list[Any]) -> str:
        workers.append(worker)
        monkeypatch.setattr(launchers, "CLAIMED", worker)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        launchers.claim_gpu(tmp_path, 2, jobs_per_gpu)
        return os.environ["CUDA_VISIBLE_DEVICES"]

    assert [claimed([]) for _ in range(2 * jobs_per_gpu)] == names * jobs_per_gpu
    with pytest.raises(RunError, match="use all 2 GPUs; run fewer jobs at a time"):
        claimed([])
    assert claimed(workers[1]) == visible, "its next job stays where it is"
    workers[0].pop().close()  # as at the end of its process
    assert claimed([]) == names[0]


@pytest.mark.parametrize(("jobs_per_gpu", "shares"), [(1, []), (8, [0.9 / 8])])
def test_each_of_several_jobs_has_its_share_of_the_memory(
    jobs_per_gpu: int, shares: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited: list[float] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", limited.append)
    launchers.share_gpu_memory(jobs_per_gpu)
    assert limited == shares


def test_where_there_is_no_gpu_none_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "CLAIMED", [])
    launchers.claim_gpu(tmp_path, 0)
    assert not list(tmp_path.iterdir())


def sweep_config(
    num_jobs: int | None,
    *,
    accelerator: str = "auto",
    devices: int = 1,
    launcher: str = PARALLEL,
    jobs_per_gpu: int = 1,
    threads: int | None = None,
) -> DictConfig:
    trainer = {"accelerator": accelerator, "devices": devices}
    options = {"_target_": launcher, "n_jobs": num_jobs, "jobs_per_gpu": jobs_per_gpu}
    return OmegaConf.create({"trainer": trainer, "threads": threads, "hydra": {"launcher": options}})


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five cores and two GPUs."""
    monkeypatch.setattr(launchers, "usable_cores", lambda: 5)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            sweep_config(-2, accelerator="gpu"),
            "hydra.launcher.n_jobs=-2 means 4 jobs at a time, and the machine has 2 GPUs; "
            "set hydra.launcher.n_jobs=2, hydra.launcher.jobs_per_gpu=2, or trainer=cpu",
        ),
        (sweep_config(3), "hydra.launcher.n_jobs=3 means 3 jobs at a time"),
        (
            sweep_config(None, accelerator="cpu", jobs_per_gpu=4),
            "hydra.launcher.jobs_per_gpu=4 requires jobs that use one GPU each, and these use none or several; set "
            "hydra.launcher.n_jobs=4",
        ),
        (sweep_config(2, jobs_per_gpu=0), "hydra.launcher.jobs_per_gpu=0 must be an integer of at least 1"),
    ],
)
def test_jobs_that_crowd_the_gpus_are_refused(config: DictConfig, message: str, machine: None) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        check_gpus(config)


def test_it_is_said_before_the_first_job(machine: None, scripts: Scripts, tiny_training: list[str]) -> None:
    at_once = ["trainer.accelerator=auto", "hydra/launcher=joblib", "hydra.launcher.n_jobs=3"]
    done = scripts.run("train", "-m", *tiny_training, *at_once, "hparams_search=optuna")
    assert done.returncode == 2
    assert done.stderr.startswith("error: hydra.launcher.n_jobs=3 means 3 jobs at a time")
    assert not (scripts.folder / "logs" / "sweeps").exists()


@pytest.mark.parametrize(
    "config",
    [
        sweep_config(-4),
        sweep_config(3, accelerator="cpu"),
        sweep_config(3, devices=2),  # each job uses all GPUs
        sweep_config(3, launcher=ONE_BY_ONE),
        sweep_config(6, jobs_per_gpu=3),
        sweep_config(None, jobs_per_gpu=3),
    ],
    ids=["but three cores", "cpu", "two each", "one by one", "three on each", "chosen"],
)
def test_jobs_that_do_not_crowd_the_gpus_are_let_through(config: DictConfig, machine: None) -> None:
    check_gpus(config)


def test_jobs_at_a_time_are_counted_as_joblib_does(machine: None) -> None:
    numbers = (-7, -5, -2, -1, 1, 11)
    assert [jobs_at_a_time(sweep_config(number)) for number in numbers] == [1, 1, 4, 5, 1, 11]


@pytest.mark.parametrize(
    ("config", "at_a_time", "plan", "threads"),
    [
        (sweep_config(None, jobs_per_gpu=8), 16, "11 at a time, 8 on each of 2 GPUs", None),
        (sweep_config(None, accelerator="cpu"), 5, "5 at a time with 1 thread each on 5 cores", 1),
        (sweep_config(None, accelerator="cpu", threads=2), 5, "5 at a time with 2 threads each on 5 cores", 2),
        (sweep_config(3, accelerator="cpu"), 3, "3 at a time on 5 cores", None),  # each uses its share of the cores
        (sweep_config(None, launcher=ONE_BY_ONE), 2, "", None),
    ],
    ids=["gpus", "cores", "threads typed", "jobs typed", "one by one"],
)
def test_the_number_of_jobs_is_chosen_by_the_gpus_or_the_cores_and_reported(
    config: DictConfig, at_a_time: int, plan: str, threads: int | None, machine: None
) -> None:
    assert jobs_at_a_time(config) == at_a_time
    assert launchers.plan_of(config, 11) == plan
    assert launchers.threads_of_jobs(config) == threads


def test_little_memory_limits_the_number_of_jobs(
    machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launchers, "MEMORY_FILE", tmp_path / "meminfo")
    config = sweep_config(None, accelerator="cpu")
    assert jobs_at_a_time(config) == 5  # a system without this file
    for kilobytes, expected in ((2_500_000, 2), (100_000, 1), (10**9, 5)):
        (tmp_path / "meminfo").write_text(f"MemTotal: 99999999 kB\nMemAvailable:   {kilobytes} kB\n")
        assert jobs_at_a_time(config) == expected


def test_a_missing_launcher_is_one_line_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"^hydra/launcher=joblib needs .*: pip install .*joblib"):
        launchers.runner_of_jobs()


class Launcher:
    """A launcher on which jobs that share a GPU run out of memory, if their names say so."""

    def __init__(self, config: DictConfig, launched: list[tuple[int | None, int, list[str]]]) -> None:
        self.config, self.launched = config.hydra.launcher, launched

    def launch(self, overrides: list[list[str]], initial_job_idx: int) -> list[JobReturn]:
        names = [each[0] for each in overrides]
        assert all(
            (each[1:] == ["hydra.launcher.jobs_per_gpu=1"]) == (self.config.jobs_per_gpu == 1) for each in overrides
        )
        self.launched.append((self.config.n_jobs, self.config.jobs_per_gpu, names))
        return [self.result(name) for name in names]

    def result(self, name: str) -> JobReturn:
        if "large" in name and (self.config.jobs_per_gpu > 1 or "too" in name):
            return JobReturn(status=JobStatus.FAILED, _return_value=torch.OutOfMemoryError("CUDA out of memory"))
        if "wrong" in name:
            return JobReturn(status=JobStatus.FAILED, _return_value=RunError("the loss is nan"))
        return JobReturn(status=JobStatus.COMPLETED)


def test_a_job_without_enough_memory_runs_again_alone(
    machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    launched: list[tuple[int | None, int, list[str]]] = []
    ended: list[int] = []
    monkeypatch.setattr(grid, "end_workers", lambda: ended.append(len(launched)))
    config = sweep_config(None, jobs_per_gpu=4)
    names = ("model=tiny", "model=large", "model=wrong", "model=too_large")
    jobs = [Job((name,), (name,), RunFolder(tmp_path / name), described(config)) for name in names]
    runner = Runner(config, tmp_path, lambda each: Launcher(each, launched))
    runner.run(jobs, 0)
    assert launched == [(None, 4, list(names)), (1, 1, ["model=large"]), (1, 1, ["model=too_large"])]
    assert ended == [1, 3]  # idle workers keep their GPU memory
    assert list(runner.errors) == [tmp_path / "model=wrong", tmp_path / "model=too_large"]
    assert "model=large had too little GPU memory next to other jobs; it runs again alone" in caplog.text


def described(config: DictConfig) -> DictConfig:
    """Return a config with what the record of a failed job names."""
    keys = dict.fromkeys(("dropout", "context_length", "seed", "optimized_metric", "model", "data"), 1)
    choices = {"runtime": {"choices": {"task": "names", "model": "tiny", "experiment": None}}}
    return OmegaConf.merge(config, keys, {"hydra": choices})


CROWDED = """
import torch
from hydra.core.hydra_config import HydraConfig
from lightning.pytorch import Callback


class Crowded(Callback):
    def on_train_batch_start(self, trainer, *_):
        if trainer.global_step == 2 and HydraConfig.get().launcher.jobs_per_gpu > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
"""


# Slow: it starts three worker processes; the test above checks what is launched again.
@pytest.mark.slow
def test_a_job_without_enough_memory_is_finished_in_a_process_of_its_own(
    machine: None, scripts: Scripts, tiny_training: list[str]
) -> None:
    (scripts.folder / "crowded.py").write_text(CROWDED)
    sweep = ["-m", *tiny_training, "trainer.accelerator=auto", "trainer.max_steps=3", "seed=1,2", "sweep.name=crowd"]
    sweep += [
        "hydra/launcher=joblib",
        "hydra.launcher.jobs_per_gpu=2",
        "+callbacks.crowded={_target_: crowded.Crowded}",
    ]
    done = scripts.run("train", *sweep)
    assert done.returncode == 0, done.stderr
    assert "2 at a time, 2 on each of 2 GPUs" in done.stdout
    assert done.stdout.count("had too little GPU memory next to other jobs; it runs again alone") == 2
    found = [RunFolder(scripts.folder / "logs" / "sweeps" / "crowd" / f"seed-{seed}").read() for seed in (1, 2)]
    assert [(record["status"], record["steps"]) for record in found] == [("finished", 3), ("finished", 3)]


def test_a_killed_worker_loses_only_its_own_job() -> None:
    killed = partial(exec, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    done = partial(exec, "")
    try:
        results = launchers.run_in_workers([done, killed, done, killed, done], 2)  # type: ignore[list-item]
        assert [isinstance(each, JobReturn) for each in results] == [False, True, False, True, False]
        assert [each.status for each in (results[1], results[3])] == [JobStatus.FAILED] * 2
        with pytest.raises(RunError, match=r"its process was killed \(SIGKILL\(-9\)\), perhaps because the memory"):
            _ = results[1].return_value
    finally:
        launchers.end_workers()
    assert not launchers.IDLE


def test_an_interrupted_job_ends_the_others() -> None:
    interrupted = partial(exec, "from firstlight.errors import Interrupted; raise Interrupted(15)")
    waiting = partial(exec, "import time; time.sleep(60)")
    started_at = time.monotonic()
    with pytest.raises(Interrupted) as error:
        launchers.run_in_workers([interrupted, waiting, waiting], 2)  # type: ignore[list-item]
    assert (error.value.signal_number, error.value.exit_code) == (15, 143)
    assert time.monotonic() - started_at < 50
    assert not launchers.IDLE
