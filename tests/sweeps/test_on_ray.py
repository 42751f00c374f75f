"""What keeps the jobs of a sweep from running on a Ray cluster. tests/clusters has sweeps on a real one."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firstlight.commands.job import run
from firstlight.errors import UserError
from firstlight.sweeps.on_ray import refuse_too_much
from firstlight.sweeps.remote import environment, refusal

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


def test_a_machine_runs_jobs_only_with_the_same_folders_and_versions(tmp_path, capsys) -> None:
    file = tmp_path / "sweep" / "multirun.yaml"
    file.parent.mkdir()
    file.write_text("é\n", encoding="utf-8")
    given = {
        "environment": environment(),
        "folder": str(tmp_path),
        "sweep": str(file.parent),
        "sweep_file": "é\n",
        "stop_at_first_failure": False,
        "jobs": [["hydra.sweep.subdir=seed-1"]],
    }
    assert refusal(given) is None
    before, here, absent, shared = Path.cwd(), os.uname().nodename, str(tmp_path / "absent"), "that all machines share"
    for other, reason in (
        (
            {"environment": "firstlight 9.8 on Python 3.9"},
            f"firstlight 9.8 on Python 3.9 started the sweep, and {here} has {environment()}; "
            "install the same versions on all machines",
        ),
        ({"folder": absent}, f"{here} does not see {absent}; start the sweep in a folder {shared}"),
        ({"sweep": absent}, f"{here} does not see {absent}; set paths.log_dir to a folder {shared}"),
        ({"sweep_file": "e\n"}, f"{here} does not see {file.parent}; set paths.log_dir to a folder {shared}"),
    ):
        assert run(given | other, 0) == reason  # also on a node that has joined the cluster after the start
        assert capsys.readouterr().err == f"error: seed-1: {reason}\n"
    assert Path.cwd() == before
