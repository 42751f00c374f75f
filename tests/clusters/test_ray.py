"""Sweeps on a real Ray of two nodes: what happens to nodes there changes nothing in the results."""

import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_sweep import Sweep
from ray_cluster import CAN_MOUNT, RayCluster

from firstlight.version import PACKAGE, __version__
from tests_support import wait_until

pytestmark = [pytest.mark.clusters, pytest.mark.timeout(900)]


@pytest.fixture
def on_ray(ray: RayCluster, sweep: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sweep]:
    for name in ("RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, ray.environment[name])
    overrides = [*sweep, "hydra/launcher=ray", f"hydra.launcher.address={ray.address}"]
    started = Sweep(tmp_path, overrides, tmp_path)
    yield started
    for parent in started.parents:
        parent.kill()


@pytest.fixture
def story(on_ray: Sweep, quiet: Path) -> Sweep:
    """Return a sweep on Ray whose runs are compared with those of a quiet one."""
    on_ray.quiet = quiet
    return on_ray


def test_twelve_jobs_with_a_killed_parent_and_a_lost_node(story: Sweep, ray: RayCluster) -> None:
    seeds = "seed=" + ",".join(map(str, range(1, 13)))
    first = story.start(seeds)
    wait_until(lambda: story.steps(1) >= 50, first, seconds=400)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    second = story.start(seeds)
    wait_until(lambda: sum(story.steps(seed) >= 50 for seed in range(1, 13)) >= 3, second, seconds=400)
    ray.kill_node("second")
    ray.start_second()
    assert "12 finished, 0 failed" in story.end(second)
    story.assert_as_quiet(*range(1, 13))


SEEN = """
import os
from lightning.pytorch import Callback

class Seen(Callback):
    def on_train_start(self, trainer, module):
        with open("seen.txt", "a") as file:
            print(os.environ["CUDA_VISIBLE_DEVICES"], file=file)
"""


@pytest.mark.parametrize(("num_gpus", "seen"), [(0, ""), (1, "0")])
def test_a_job_sees_its_share_of_the_gpus_and_has_a_thread_for_each_core(
    num_gpus: int, seen: str, on_ray: Sweep, tmp_path: Path
) -> None:
    (tmp_path / "own_callbacks.py").write_text(SEEN)
    share = (f"hydra.launcher.num_gpus={num_gpus}", "threads=null")
    short = ("trainer.max_steps=2", "trainer.accelerator=cpu", "+callbacks.seen._target_=own_callbacks.Seen")
    on_ray.end(on_ray.start("seed=1,2", *share, *short))
    assert (tmp_path / "seen.txt").read_text() == f"{seen}\n{seen}\n"
    assert [on_ray.record(seed)["threads"] for seed in (1, 2)] == [1, 1]  # the nodes were started with three


@pytest.mark.skipif(not CAN_MOUNT, reason="only root on Linux can hide a folder from a node")
def test_a_node_without_the_folder_or_with_another_version_is_refused(
    story: Sweep, ray: RayCluster, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    with ray.mounted("second", tmp_path / "logs", "-t", "tmpfs", "none"):
        shown = story.end(story.start("seed=1,2"), code=2)
    assert f"does not see {story.folder}; set paths.log_dir to a folder that all machines share" in shown
    assert shown.splitlines()[-1].startswith("error: ")
    of_package = PACKAGE / "version.py"
    other = tmp_path / "version.py"
    other.write_text(of_package.read_text().replace(__version__, "9.8.7"))
    with ray.mounted("second", of_package, "--bind", str(other)):
        shown = story.end(story.start("seed=1,2"), code=2)
    assert re.search(
        f"firstlight {__version__} on .* started the sweep, and .* has firstlight 9.8.7 on .*; install the", shown
    )
    assert shown.splitlines()[-1].startswith("error: ")
    story.end(story.start("seed=1,2"))
    story.assert_as_quiet(1, 2)


def test_a_port_that_does_not_belong_to_ray_is_refused_in_bounded_time(on_ray: Sweep) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        parent = on_ray.start("seed=1", f"hydra.launcher.address={address}")
        shown = on_ray.end(parent, code=2)  # Ray itself tries for six minutes
    assert shown.splitlines()[-1].startswith(f"error: hydra.launcher.address={address}: Failed to connect")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("hydra.launcher.num_gpus=2", "a job needs 1 CPU, 2 GPU, and a node of the cluster has at most 1 CPU, 1 GPU"),
        ("hydra.launcher.resources={fast_disk: 1}", "a node of the cluster has at most 1 CPU, 0 fast_disk"),
        ("hydra.launcher.address=127.0.0.1:9", "hydra.launcher.address=127.0.0.1:9 does not answer"),
        ("hydra.launcher.address=nosuch.invalid:6379", "nosuch.invalid:6379 does not answer"),
        ("hydra.launcher.address=nosuch", "hydra.launcher.address=nosuch: Invalid address format"),
        ("hydra.launcher.address='ray://127.0.0.1:10001'", "a sweep starts on a machine of the cluster"),
    ],
)
def test_what_the_cluster_cannot_do_is_refused_in_one_line(on_ray: Sweep, override: str, message: str) -> None:
    shown = on_ray.end(on_ray.start("seed=1,2", override), code=2)
    assert message in shown
    assert shown.count("\n") == 1, shown
    assert not list(on_ray.folder.glob("*/metrics.json"))
