"""Jobs at the same time on one machine: each has its own GPU, or the sweep reports before its start why not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from omegaconf import DictConfig, OmegaConf

from firstlight.errors import UserError
from firstlight.sweeps import launchers
from firstlight.sweeps.launchers import ONE_BY_ONE, PARALLEL, check_gpus, jobs_at_a_time
from tests_support import ROOT, Scripts, environment

WORKER = """
import os, sys
from pathlib import Path
from firstlight.errors import RunError
from firstlight.sweeps.launchers import claim_gpu

for line in sys.stdin:
    try:
        claim_gpu(Path(sys.argv[1]), int(line))
        print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
    except RunError as error:
        print(error, flush=True)
"""


class Worker:
    """A process that claims a GPU on request."""

    def __init__(self, folder: Path, visible: str | None) -> None:
        env = {name: value for name, value in environment().items() if name != "CUDA_VISIBLE_DEVICES"}
        env["PYTHONPATH"] = str(ROOT / "src")
        if visible is not None:
            env["CUDA_VISIBLE_DEVICES"] = visible
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def claim(self, count: int) -> str:
        """Return the GPUs that the process sees after it has claimed one of so many, or its error."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[Worker]]:
    started: list[Worker] = []
    yield started
    for worker in started:
        worker.kill()
        for stream in (worker.process.stdin, worker.process.stdout):
            assert stream is not None
            stream.close()


@pytest.mark.parametrize(("visible", "names"), [(None, ["0", "1"]), ("7,GPU-3", ["7", "GPU-3"])])
def test_every_worker_has_a_gpu_of_its_own_for_as_long_as_it_lives(
    visible: str | None, names: list[str], tmp_path: Path, workers: list[Worker]
) -> None:
    workers += [Worker(tmp_path, visible) for _ in range(3)]
    first, second, third = workers
    assert [first.claim(2), second.claim(2)] == names
    assert third.claim(2) == f"other jobs of {tmp_path} use all 2 GPUs; run fewer jobs at a time"
    assert [second.claim(2), first.claim(2)] == names[::-1]  # their next jobs stay where they are
    first.kill()
    assert third.claim(2) == names[0]
    assert second.claim(2) == names[1]


def test_where_there_is_no_gpu_none_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(launchers, "CLAIMED", [])
    launchers.claim_gpu(tmp_path, 0)
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    assert not list(tmp_path.iterdir())


def sweep_config(num_jobs: int, *, accelerator: str = "auto", devices: int = 1, launcher: str = PARALLEL) -> DictConfig:
    trainer = {"accelerator": accelerator, "devices": devices}
    return OmegaConf.create({"trainer": trainer, "hydra": {"launcher": {"_target_": launcher, "n_jobs": num_jobs}}})


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five cores and two GPUs."""
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.parametrize(("num_jobs", "at_a_time"), [(-1, 5), (-2, 4), (3, 3)])
@pytest.mark.parametrize("accelerator", ["auto", "gpu", "cuda"])
def test_more_jobs_at_a_time_than_gpus_are_refused(
    num_jobs: int, at_a_time: int, accelerator: str, machine: None
) -> None:
    with pytest.raises(UserError) as caught:
        check_gpus(sweep_config(num_jobs, accelerator=accelerator))
    assert str(caught.value) == (
        f"hydra.launcher.n_jobs={num_jobs} means {at_a_time} jobs at a time, and the machine has 2 GPUs; "
        f"set hydra.launcher.n_jobs=2, or trainer=cpu"
    )


@pytest.mark.parametrize("wish", [pytest.param("seed=1,2,3", marks=pytest.mark.slow), "hparams_search=optuna"])
def test_it_is_said_before_the_first_job(wish: str, machine: None, scripts: Scripts, tiny_training: list[str]) -> None:
    sweep = ["-m", *tiny_training, "trainer.accelerator=auto", "hydra/launcher=joblib", "hydra.launcher.n_jobs=3", wish]
    done = scripts.run("train", *sweep)
    assert done.returncode == 2
    assert done.stderr == (
        "error: hydra.launcher.n_jobs=3 means 3 jobs at a time, and the machine has 2 GPUs; "
        "set hydra.launcher.n_jobs=2, or trainer=cpu\n"
    )
    assert not (scripts.folder / "logs" / "sweeps").exists()


@pytest.mark.parametrize(
    "config",
    [
        sweep_config(2),
        sweep_config(-4),
        sweep_config(3, accelerator="cpu"),
        sweep_config(3, devices=2),  # each job uses all GPUs
        sweep_config(3, launcher=ONE_BY_ONE),
    ],
    ids=["as many", "but three cores", "cpu", "two each", "one by one"],
)
def test_jobs_that_do_not_crowd_the_gpus_are_let_through(config: DictConfig, machine: None) -> None:
    check_gpus(config)


def test_without_gpus_any_number_of_jobs_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    check_gpus(sweep_config(97))


def test_jobs_at_a_time_are_counted_as_joblib_does(machine: None) -> None:
    assert [jobs_at_a_time(number) for number in (-7, -5, -2, -1, 1, 11)] == [1, 1, 4, 5, 1, 11]
