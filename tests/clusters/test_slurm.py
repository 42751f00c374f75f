"""Sweeps on a real Slurm of two nodes: what happens to jobs there changes nothing in their results."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from cluster_sweep import Sweep
from slurm_cluster import Slurm

from tests_support import ROOT, Scripts, some_names, wait_until

pytestmark = [pytest.mark.clusters, pytest.mark.timeout(900)]
ON_SLURM = ("hydra/launcher=slurm", "hydra.launcher.partition=main")


@pytest.fixture
def on_slurm(
    slurm: Slurm, sweep: list[str], quiet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sweep]:
    monkeypatch.setenv("SLURM_CONF", str(slurm.configuration))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "src"))
    started = Sweep(tmp_path, [*sweep, *ON_SLURM], quiet)
    yield started
    for parent in started.parents:
        parent.kill()
    slurm("scancel", "--me", "--full")
    slurm.wait_until(lambda: not slurm("squeue", "-h").strip(), 120)


def test_a_job_that_is_preempted_twice_goes_on(on_slurm: Sweep, slurm: Slurm) -> None:
    parent = on_slurm.start("seed=1,2")
    for step in (50, 200):
        on_slurm.wait_for_training(1, step)
        slurm("sbatch", "--partition=urgent", "--nodes=2", "--output=/dev/null", "--wrap", "sleep 1")
        slurm.wait_until(lambda: on_slurm.record(1)["status"] == "interrupted")
        for seed in (1, 2):
            slurm.run_again_at_once(on_slurm.task(seed))
    on_slurm.end(parent)
    on_slurm.assert_as_quiet(1, 2)


def test_a_requeued_job_loses_no_step(on_slurm: Sweep, slurm: Slurm) -> None:
    parent = on_slurm.start("seed=1,2")
    on_slurm.wait_for_training(1)
    slurm("scontrol", "requeue", on_slurm.task(1))
    slurm.wait_until(lambda: on_slurm.record(1)["status"] == "interrupted")
    assert on_slurm.record(1)["steps"] >= on_slurm.steps(1)
    slurm.run_again_at_once(on_slurm.task(1))
    on_slurm.end(parent)
    on_slurm.assert_as_quiet(1)


def test_a_canceled_job_stays_canceled_until_the_same_command(on_slurm: Sweep, slurm: Slurm) -> None:
    parent = on_slurm.start("seed=1,2")
    on_slurm.wait_for_training(1)
    slurm("scancel", task := on_slurm.task(1))
    shown = on_slurm.end(parent, code=1)
    assert f"Slurm ended its task {task}: CANCELLED" in shown
    on_slurm.assert_as_quiet(2)
    on_slurm.end(on_slurm.start("seed=1,2"))
    on_slurm.assert_as_quiet(1, 2)


def test_the_same_command_follows_the_jobs_of_a_terminated_one(on_slurm: Sweep) -> None:
    first = on_slurm.start("seed=1,2,3")
    on_slurm.wait_for_training(1)
    os.kill(first.pid, signal.SIGTERM)
    first.communicate()
    shown = on_slurm.end(on_slurm.start("seed=1,2,3"))
    assert "Slurm has 3 of the jobs already" in shown
    assert "Slurm job " not in shown, "a job was submitted twice"
    on_slurm.assert_as_quiet(1, 2, 3)


def test_twelve_jobs_with_a_killed_parent_preempted_jobs_and_a_lost_node(on_slurm: Sweep, slurm: Slurm) -> None:
    seeds = "seed=" + ",".join(map(str, range(1, 13)))
    first = on_slurm.start(seeds)
    on_slurm.wait_for_training(1)
    on_slurm.wait_for_training(2)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    slurm("sbatch", "--partition=urgent", "--nodes=2", "--output=/dev/null", "--wrap", "sleep 1")
    slurm.wait_until(lambda: all(on_slurm.record(seed)["status"] == "interrupted" for seed in (1, 2)))
    second = on_slurm.start(seeds)
    on_slurm.wait_for_training(3)
    slurm.start_node(slurm.lose_node_of(on_slurm.task(3)))
    assert "12 finished, 0 failed" in on_slurm.end(second)
    on_slurm.assert_as_quiet(*range(1, 13))


def test_many_small_jobs_in_two_tasks(on_slurm: Sweep, slurm: Slurm) -> None:
    many = ("trainer.max_steps=2", "seed=" + ",".join(map(str, range(40))), "hydra.launcher.jobs_per_task=20")
    shown = on_slurm.end(on_slurm.start(*many))
    assert "40 finished, 0 failed" in shown
    array = re.search(r"Slurm job (\d+): 40 jobs", shown)
    assert array
    assert sorted(task for task in slurm.tasks() if task.startswith(f"{array[1]}_")) == [
        f"{array[1]}_0",
        f"{array[1]}_1",
    ]


def test_a_command_that_does_not_wait_is_collected_by_the_same_command(on_slurm: Sweep) -> None:
    shown = on_slurm.end(on_slurm.start("seed=1,2", "hydra.launcher.wait=false"))
    assert "Slurm job " in shown
    assert "2 finished" in on_slurm.end(on_slurm.start("seed=1,2"))
    on_slurm.assert_as_quiet(1, 2)


TWO_NODES = (
    *("trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=1", "trainer.num_nodes=2"),
    *("data.batch_size=16", "hydra.launcher.nodes=2"),
    # n1 and n2 are no names of hosts
    "hydra.launcher.setup=['export MASTER_ADDR=127.0.0.1','export GLOO_SOCKET_IFNAME=lo']",
)


@pytest.fixture(scope="session")
def alike(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return further overrides of a run, in which the batches of all processes have the same number of tokens."""
    path = tmp_path_factory.mktemp("alike") / "names.txt"
    path.write_text("".join(f"{name}\n" for name in some_names(6000).split() if len(name) == 6))
    return [f"data.path={path}", "dropout=0", "trainer.max_steps=200"]


@pytest.fixture(scope="session")
def one_process(sweep: list[str], alike: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of one process with twice the batch of each of two processes."""
    scripts = Scripts(tmp_path_factory.mktemp("one"))
    return scripts.train(*(each for each in sweep[1:] if not each.startswith("sweep.")), *alike, "data.batch_size=32")


def assert_as_one_process(one_process: Path, run: Path) -> None:
    one, two = (torch.load(each / "checkpoints" / "last.ckpt", weights_only=True) for each in (one_process, run))
    assert two["global_step"] == one["global_step"]
    for name, weights in one["state_dict"].items():
        torch.testing.assert_close(two["state_dict"][name], weights, rtol=0, atol=1e-5)
    one, two = (json.loads((each / "metrics.json").read_text())["metrics"] for each in (one_process, run))
    assert two["val/loss"] == pytest.approx(one["val/loss"], abs=1e-5)


def test_two_nodes_train_one_network_as_one_process_does(on_slurm: Sweep, alike: list[str], one_process: Path) -> None:
    on_slurm.end(on_slurm.start(*alike, *TWO_NODES))
    assert_as_one_process(one_process, on_slurm.folder / "job")
    assert "sync_dist" not in (on_slurm.folder / "job" / "output.txt").read_text()


@pytest.mark.parametrize("rank", [0, 1])
def test_the_death_of_a_rank_ends_all_and_the_same_command_resumes(
    on_slurm: Sweep, slurm: Slurm, alike: list[str], one_process: Path, rank: int
) -> None:
    folder = on_slurm.folder / "job"
    parent = on_slurm.start(*alike, *TWO_NODES)
    wait_until(lambda: (folder / "checkpoints" / "last.ckpt").is_file(), parent)
    (killed,) = (each for each in slurm.processes_of(f"n{rank + 1}") if is_rank(each, rank))
    os.kill(killed, signal.SIGKILL)
    slurm.wait_until(lambda: not slurm("squeue", "-h").strip(), 60)
    on_slurm.end(parent, code=1)
    on_slurm.end(on_slurm.start(*alike, *TWO_NODES))
    assert_as_one_process(one_process, folder)


def test_jobs_that_share_a_gpu_are_saved_and_requeued_together(on_slurm: Sweep, slurm: Slurm) -> None:
    shared = ("hydra.launcher.partition=shared", "hydra.launcher.gpus_per_node=1", "hydra.launcher.jobs_per_gpu=2")
    parent = on_slurm.start("seed=1,2,3", *shared)
    for seed in (1, 2):
        on_slurm.wait_for_training(seed)
    assert on_slurm.task(1) == on_slurm.task(2) != on_slurm.task(3)
    slurm("scancel", "--signal=USR2", task := on_slurm.task(1))  # to all processes, as before a time limit
    slurm.wait_until(lambda: all(on_slurm.record(seed)["status"] == "interrupted" for seed in (1, 2)))
    slurm.run_again_at_once(task)
    assert "3 finished, 0 failed" in on_slurm.end(parent)
    on_slurm.assert_as_quiet(1, 2, 3)


SLOW = """\
import time

from lightning.pytorch import Callback


class Slow(Callback):
    def on_train_batch_end(self, *_):
        time.sleep(0.25)
"""


def test_a_real_limit_of_a_minute_is_reached(on_slurm: Sweep, slurm: Slurm) -> None:
    """It takes minutes: a job trains for at least two, and Slurm has no shorter limit."""
    (on_slurm.scripts.folder / "slow.py").write_text(SLOW)
    limited = ("hydra.launcher.timeout_min=1", "hydra.launcher.signal_delay_s=5")
    parent = on_slurm.start("seed=1,2", "+callbacks.slow._target_=slow.Slow", *limited)
    while parent.poll() is None:
        for task in (task for task, state in slurm.tasks().items() if state == "PENDING"):
            slurm.start_if_pending(task)
        time.sleep(1)
    on_slurm.end(parent)
    on_slurm.assert_as_quiet(1, 2)
    for seed in (1, 2):
        assert "Interrupted at step" in (on_slurm.folder / f"seed-{seed}" / "output.txt").read_text()


FAIL = """\
from pathlib import Path

from lightning.pytorch import Callback


class Fail(Callback):
    def on_train_batch_end(self, trainer, *_):
        if trainer.default_root_dir.endswith("seed-1") and Path("fails").exists():
            raise RuntimeError("of this job alone")
"""


def test_after_a_failure_no_further_job_starts_if_that_is_chosen(on_slurm: Sweep) -> None:
    (on_slurm.scripts.folder / "fail.py").write_text(FAIL)
    (on_slurm.scripts.folder / "fails").touch()
    chosen = ("sweep.stop_at_first_failure=true", "hydra.launcher.array_parallelism=1")
    seeds = ("seed=1,2,3", "+callbacks.fail._target_=fail.Fail", *chosen)
    shown = on_slurm.end(on_slurm.start(*seeds), code=1)
    assert "1 of 3 jobs failed, the first in" in shown
    assert "of this job alone" in shown
    assert not on_slurm.record(2)
    assert not on_slurm.record(3)
    (on_slurm.scripts.folder / "fails").unlink()
    on_slurm.end(on_slurm.start(*seeds))
    on_slurm.assert_as_quiet(1, 2, 3)


def test_a_full_disk_of_one_job_does_not_disturb_the_others(on_slurm: Sweep) -> None:
    full = on_slurm.folder / "seed-2"
    full.mkdir(parents=True)
    mount = ("mount", "-t", "tmpfs", "-o", "size=200k", "none", str(full))
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk can be mounted only by root")
    try:
        shown = on_slurm.end(on_slurm.start("seed=1,2,3"), code=1)
        assert "1 of 3 jobs failed, the first in logs/sweeps/stories/seed-2: OSError: [Errno 28] No space left" in shown
        subprocess.run(["mount", "-o", "remount,size=100m", str(full)], check=True)
        on_slurm.end(on_slurm.start("seed=1,2,3"))
        on_slurm.assert_as_quiet(1, 2, 3)
    finally:
        subprocess.run(["umount", "--lazy", str(full)], check=True)


def test_another_version_on_a_node_is_one_line_and_the_same_command_runs_it_again(
    on_slurm: Sweep, tmp_path: Path
) -> None:
    for name in ("src", "conf"):
        shutil.copytree(ROOT / name, tmp_path / "other" / name)
    version = tmp_path / "other" / "src" / "firstlight" / "version.py"
    version.write_text(re.sub('__version__ = ".*"', '__version__ = "0.99.0"', version.read_text()))
    old = f"hydra.launcher.setup=['export PYTHONPATH={tmp_path}/other/src']"
    shown = on_slurm.end(on_slurm.start("seed=1,2", old), code=1)
    assert re.search(r"firstlight 0\.3\.\d+ on Python 3\.\d+ started the sweep, and \S+ has firstlight 0\.99\.0", shown)
    assert "Traceback" not in shown
    on_slurm.end(on_slurm.start("seed=1,2"))
    on_slurm.assert_as_quiet(1, 2)


def is_rank(process: int, rank: int) -> bool:
    variables = Path(f"/proc/{process}/environ").read_text().split("\0")
    return f"SLURM_PROCID={rank}" in variables and "srun" not in Path(f"/proc/{process}/cmdline").read_text()


@pytest.mark.parametrize("partition", ["closed", "nosuch"])
def test_a_partition_without_nodes_is_refused_and_nothing_is_written(on_slurm: Sweep, partition: str) -> None:
    shown = on_slurm.end(on_slurm.start("seed=1,2", f"hydra.launcher.partition={partition}"), code=2)
    assert f"hydra.launcher.partition={partition}: the partitions that accept jobs are main, shared, urgent" in shown
    assert not on_slurm.folder.exists()


def test_a_second_parent_is_refused_while_the_first_one_waits(on_slurm: Sweep) -> None:
    first = on_slurm.start("seed=1,2")
    on_slurm.wait_for_training(1)
    assert "another process runs this sweep" in on_slurm.end(on_slurm.start("seed=1,2"), code=2)
    on_slurm.end(first)
    on_slurm.assert_as_quiet(1)
