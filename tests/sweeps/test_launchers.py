"""Jobs at the same time on one machine: each has its own GPU, or the sweep reports before its start why not."""

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig, OmegaConf

from firstlight.commands.job import stand_alone
from firstlight.errors import Interrupted, RunError, UserError
from firstlight.sweeps import launchers, remote
from firstlight.sweeps.launchers import ONE_BY_ONE, PARALLEL, check_gpus, jobs_at_a_time, jobs_of_a_task
from firstlight.sweeps.slurm import script
from hydra_plugins.firstlight_launchers import SlurmJobsConfig


def test_workers_share_the_gpus_evenly_and_keep_theirs(machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for visible in ("", "7,GPU-3"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        gpus = launchers.gpus_of(sweep_config(None, jobs_per_gpu=2))
        assert gpus == (visible or "0,1").split(",")
    seen: Any = partial(os.getenv, "CUDA_VISIBLE_DEVICES")
    try:
        assert launchers.run_in_workers([seen] * 4, 4, gpus) == [*gpus, *gpus]
        assert sorted(launchers.run_in_workers([seen] * 4, 4, gpus)) == sorted([*gpus, *gpus])
    finally:
        launchers.end_workers()


@pytest.mark.parametrize(("jobs_per_gpu", "shares"), [(1, []), (8, [0.9 / 8])])
def test_each_of_several_jobs_has_its_share_of_the_memory(jobs_per_gpu, shares, machine, monkeypatch) -> None:
    limited: list[float] = []
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", limited.append)
    config = sweep_config(None, jobs_per_gpu=jobs_per_gpu)
    launchers.use_share(config, config.hydra)
    assert limited == shares
    assert config.threads is None


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
    "config", [sweep_config(None, accelerator="cpu", jobs_per_gpu=4), sweep_config(2, jobs_per_gpu=0)]
)
def test_jobs_that_cannot_share_gpus_are_refused(config: DictConfig, machine: None) -> None:
    with pytest.raises(UserError, match=r"^hydra.launcher.jobs_per_gpu=[04] must be at least 1, and above 1 it req"):
        check_gpus(config)


def on_slurm(jobs_per_task: int = 1, **options: int | None) -> DictConfig:
    config = sweep_config(None, launcher=launchers.SLURM)
    given = {"jobs_per_task": jobs_per_task, "nodes": 1, "tasks_per_node": 1, "gpus_per_node": None} | options
    config.hydra.launcher = OmegaConf.merge(SlurmJobsConfig, given)
    return config


def test_jobs_on_slurm_share_the_gpus_of_a_task() -> None:
    config = on_slurm(gpus_per_node=2, jobs_per_gpu=4)
    check_gpus(config)
    assert jobs_of_a_task(config) == 8
    assert jobs_of_a_task(on_slurm(gpus_per_node=2)) == 1  # which may use both
    written = script(config.hydra.launcher, Path("/sweep/.slurm/0.json"), num_tasks=3, at_a_time=8)
    for line in ("#SBATCH --array=0-2\n", "#SBATCH --ntasks-per-node=8\n", "#SBATCH --gpus-per-node=2\n"):
        assert line in written
    assert "exec srun --cpus-per-task=1 --kill-on-bad-exit=0 " in written


@pytest.mark.parametrize(
    "options", [{"gpus_per_node": None}, {"gpus_per_node": 1, "nodes": 2}, {"gpus_per_node": 2, "tasks_per_node": 2}]
)
def test_jobs_on_slurm_that_cannot_share_gpus_are_refused(options: dict[str, int | None]) -> None:
    with pytest.raises(UserError, match=r"^hydra.launcher.jobs_per_gpu=2 .*; set hydra.launcher.gpus_per_node to 1 or"):
        check_gpus(on_slurm(jobs_per_gpu=2, **options))


def test_a_process_of_a_shared_task_is_no_rank_and_has_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    slurm = {"SLURM_PROCID": "3", "SLURM_LOCALID": "3", "SLURM_NTASKS": "4", "CUDA_VISIBLE_DEVICES": "0,GPU-7"}
    with monkeypatch.context() as patch:
        for name, value in slurm.items():
            patch.setenv(name, value)
        assert stand_alone() == 3
        assert not slurm.keys() & os.environ.keys() - {"CUDA_VISIBLE_DEVICES"}
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-7"


OF_JOBLIB = {-7: 1, -5: 1, -2: 4, -1: 5, 1: 1, 11: 11}  # n_jobs: the number of jobs at a time on five cores


@pytest.mark.parametrize(
    ("config", "at_a_time"),
    [
        (sweep_config(-4), 2),
        (sweep_config(3), 2),
        (sweep_config(3, devices=2), 3),  # each job uses all GPUs
        (sweep_config(4, jobs_per_gpu=3), 4),
        (sweep_config(7, jobs_per_gpu=3), 6),
        (sweep_config(None, jobs_per_gpu=3), 6),
        *((sweep_config(number, accelerator="cpu"), jobs) for number, jobs in OF_JOBLIB.items()),
    ],
)
def test_jobs_at_a_time_fit_the_gpus_or_are_counted_as_by_joblib(config, at_a_time, machine) -> None:
    check_gpus(config)
    assert jobs_at_a_time(config) == at_a_time


@pytest.mark.parametrize(
    ("config", "at_a_time", "plan", "threads"),
    [
        (sweep_config(None, jobs_per_gpu=8), 16, "11 at a time", None),
        (sweep_config(None, accelerator="cpu"), 5, "5 at a time", 1),
        (sweep_config(None, accelerator="cpu", threads=2), 5, "5 at a time", 2),
        (sweep_config(3, accelerator="cpu"), 3, "3 at a time", None),  # each uses its share of the cores
        (sweep_config(None, launcher=ONE_BY_ONE), 2, "", None),
    ],
    ids=["gpus", "cores", "threads typed", "jobs typed", "one by one"],
)
def test_the_number_of_jobs_is_chosen_by_the_gpus_or_the_cores_and_reported(
    config, at_a_time, plan, threads, machine, monkeypatch
) -> None:
    assert jobs_at_a_time(config) == at_a_time
    assert launchers.plan_of(config, 11) == plan
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda _: None)
    launchers.use_share(config, config.hydra)
    assert config.threads == threads


def test_little_memory_limits_the_number_of_jobs(machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    config = sweep_config(None, accelerator="cpu")
    for megabytes, expected in ((2_500, 2), (100, 1), (10**6, 5)):
        monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 2**20, "SC_PHYS_PAGES": megabytes}.get)
        assert jobs_at_a_time(config) == expected


def test_a_missing_launcher_is_one_line_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launchers, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"^hydra/launcher=joblib needs .*: pip install .*joblib"):
        launchers.runner_of_jobs()


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


def test_no_job_starts_after_a_failure_if_that_is_chosen() -> None:
    killed = partial(exec, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    slow: Any = partial(finished_after, 2)
    try:
        results = launchers.run_in_workers([slow, killed, slow, slow], 2, stops=True)  # type: ignore[list-item]
    finally:
        launchers.end_workers()
    assert [each.status for each in results] == [JobStatus.COMPLETED, *[JobStatus.FAILED] * 3]
    assert [str(each._return_value) == remote.NOT_STARTED for each in results] == [False, False, True, True]


def finished_after(seconds: float) -> JobReturn:
    time.sleep(seconds)
    return JobReturn(status=JobStatus.COMPLETED)


def test_an_interrupted_job_ends_the_others() -> None:
    interrupted = partial(exec, "from firstlight.errors import Interrupted; raise Interrupted(15)")
    waiting = partial(exec, "import time; time.sleep(60)")
    started_at = time.monotonic()
    with pytest.raises(Interrupted) as error:
        launchers.run_in_workers([interrupted, waiting, waiting], 2)  # type: ignore[list-item]
    assert (error.value.signal_number, error.value.exit_code) == (15, 143)
    assert time.monotonic() - started_at < 50
    assert not launchers.IDLE
