"""What keeps the jobs of a sweep from running on a Ray cluster. tests/clusters has sweeps on a real one."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firstlight.commands.job import run_on_worker
from firstlight.errors import UserError
from firstlight.sweeps.on_ray import refusal, refuse_too_much
from firstlight.version import __version__

GB = 2**30


def cluster(*nodes: dict[str, float], lost: dict[str, float] | None = None) -> Any:
    found = [{"Alive": True, "Resources": each} for each in nodes]
    return SimpleNamespace(nodes=lambda: [*found, {"Alive": False, "Resources": lost or {}}])


def wanted(cpus: float = 1, gpus: float = 0, **more: Any) -> dict[str, Any]:
    return {"num_cpus": cpus, "num_gpus": gpus, "resources": {}} | more


def test_a_job_must_fit_on_one_node_that_is_alive() -> None:
    nodes = {"CPU": 64.0, "memory": 8 * GB}, {"CPU": 2.0, "GPU": 1.0, "memory": 2 * GB, "disk": 1.0}
    refuse_too_much(cluster(*nodes), wanted(2, 0.1, memory=2 * GB, resources={"disk": 1}))
    refuse_too_much(cluster(*nodes), wanted(64, memory=8 * GB))
    with pytest.raises(UserError) as error:
        refuse_too_much(cluster(*nodes, lost={"CPU": 4, "GPU": 4}), wanted(3, 1, memory=GB // 2))
    needed, there = "3 CPU, 1 GPU, 0.5 GB of memory", "64 CPU, 1 GPU, 8 GB of memory"
    assert str(error.value) == f"hydra.launcher: a job needs {needed}, and a node of the cluster has at most {there}"


def test_a_node_runs_jobs_only_with_the_same_folders_and_version(tmp_path: Path) -> None:
    file = tmp_path / "sweep" / "multirun.yaml"
    file.parent.mkdir()
    file.write_text("é\n", encoding="utf-8")
    given = {"folder": str(tmp_path), "file": str(file), "content": "é\n", "version": __version__}
    assert refusal(**given) is None
    absent, shared = str(tmp_path / "absent"), "that all nodes share"
    for other, reason in (
        ({"version": "9.8"}, f"has firstlight {__version__}, and the sweep 9.8; install one version on all nodes"),
        ({"folder": absent}, f"does not see {absent}; start the sweep in a folder {shared}"),
        ({"file": f"{absent}/a"}, f"does not see {absent}; set paths.log_dir to a folder {shared}"),
        ({"content": "e\n"}, f"does not see {file.parent}; set paths.log_dir to a folder {shared}"),
    ):
        assert refusal(**given | other) == reason


def test_a_job_on_a_node_that_joined_later_with_another_version_is_not_run(tmp_path: Path) -> None:
    before = Path.cwd()
    reason = run_on_worker("", 0, (str(tmp_path), "", "", "9.8"))
    assert reason == f"the node {os.uname().nodename} has firstlight {__version__}, and the sweep 9.8; " + (
        "install one version on all nodes"
    )
    assert Path.cwd() == before
