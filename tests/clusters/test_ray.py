"""Sweeps on a real Ray of two nodes: what happens to nodes there changes nothing in the results."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_sweep import Sweep
from ray_cluster import RayCluster

pytestmark = [pytest.mark.clusters, pytest.mark.timeout(900)]


@pytest.fixture
def on_ray(
    ray: RayCluster, sweep: list[str], quiet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Sweep]:
    for name in ("RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, ray.environment[name])
    overrides = [*sweep, "hydra/launcher=ray", f"hydra.launcher.address={ray.address}"]
    started = Sweep(tmp_path, overrides, quiet)
    yield started
    for parent in started.parents:
        parent.kill()


def test_four_jobs_have_the_results_of_a_sweep_on_one_machine(on_ray: Sweep) -> None:
    assert "4 finished, 0 failed" in on_ray.end(on_ray.start("seed=1,2,3,4"))
    on_ray.assert_as_quiet(1, 2, 3, 4)


def test_jobs_of_a_lost_node_go_on_elsewhere(on_ray: Sweep, ray: RayCluster) -> None:
    parent = on_ray.start("seed=1,2")
    on_ray.wait_for_training(1)
    on_ray.wait_for_training(2)
    ray.kill_node("second")
    assert "2 finished, 0 failed" in on_ray.end(parent)
    on_ray.assert_as_quiet(1, 2)
    ray.start_node("second", f"--address={ray.address}")


def test_the_same_command_continues_after_its_parent_was_killed(on_ray: Sweep) -> None:
    first = on_ray.start("seed=1,2,3")
    on_ray.wait_for_training(1)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    on_ray.end(on_ray.start("seed=1,2,3"))
    on_ray.assert_as_quiet(1, 2, 3)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("hydra.launcher.num_gpus=1", "a job needs 1 GPU, and a node of the cluster has at most 0"),
        ("hydra.launcher.num_cpus=64", "a job needs 64 CPU, and a node of the cluster has at most 1"),
        ("hydra.launcher.address=127.0.0.1:9", "hydra.launcher.address=127.0.0.1:9 does not answer"),
    ],
)
def test_what_the_cluster_cannot_do_is_refused_in_one_line(on_ray: Sweep, override: str, message: str) -> None:
    shown = on_ray.end(on_ray.start("seed=1,2", override), code=2)
    assert message in shown
    assert not list(on_ray.folder.glob("*/metrics.json"))
