"""Jobs of a sweep on a Ray cluster. A job whose node is lost starts again on another one, and resumes."""

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from hydra.core.utils import JobReturn
from omegaconf import DictConfig

from firstlight.errors import UserError
from firstlight.files.atomic import write_atomically
from firstlight.invocation import install_command
from firstlight.sweeps import remote
from firstlight.version import PACKAGE

SECONDS_TO_CONNECT = 10
JOBS_FILE = ".ray.json"  # in the folder of a sweep


def check_cluster(options: DictConfig) -> None:
    """Connect to the cluster. Raises UserError if it does not answer, or has no node with what a job needs."""
    refuse_too_much(connected(options), requirements(options))


def launch(config: DictConfig, jobs: Sequence[Sequence[str]]) -> list[JobReturn]:
    """Run jobs on the cluster, and return their results.

    Raises UserError if a node of the cluster does not see the folder of the sweep.
    """
    options = config.hydra.launcher
    ray = connected(options)
    sweep = Path(config.hydra.sweep.dir).absolute()
    errors: dict[int, str | None] = {}
    try:
        write_atomically(sweep / JOBS_FILE, remote.description(config, jobs, [[each] for each in range(len(jobs))]))
        refuse_other_disks(ray, sweep / JOBS_FILE)
        run = resolve_name(f"{remote.MODULE}:run_on_worker")
        task = ray.remote(max_calls=1, max_retries=options.retries, **requirements(options))(run)
        given = str(sweep / JOBS_FILE), str(Path.cwd()), options.num_gpus > 0
        waiting = {task.remote(number, *given): number for number in range(len(jobs))}
        while waiting:
            (done, *_), _ = ray.wait(list(waiting), num_returns=1)
            number = waiting.pop(done)
            try:
                errors[number] = ray.get(done)
            except ray.exceptions.RayError as error:  # its worker or its node was lost more often than it is retried
                errors[number] = " ".join(str(error).split())
    finally:
        ray.shutdown()
    return [remote.result(sweep, overrides, errors[number]) for number, overrides in enumerate(jobs)]


def requirements(options: DictConfig) -> dict[str, Any]:
    """Return what a job needs, as arguments of `ray.remote`."""
    memory = {} if options.memory_gb is None else {"memory": int(options.memory_gb * 2**30)}
    counts = {"num_cpus": options.num_cpus, "num_gpus": options.num_gpus}
    return {**counts, **memory, "resources": dict(options.resources)}


def connected(options: DictConfig) -> Any:
    """Return Ray, connected to a cluster. Raises UserError if it is not installed or the cluster does not answer."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before the import
    try:
        import ray
    except ImportError:
        raise UserError(f"hydra/launcher=ray needs Ray: {install_command('ray')}") from None
    if ray.is_initialized():
        return ray
    host, _, port = str(options.address).rpartition(":")
    if port.isdigit():  # Ray itself tries a wrong address for minutes
        try:
            socket.create_connection((host, int(port)), timeout=SECONDS_TO_CONNECT).close()
        except OSError as error:
            raise UserError(
                f"hydra.launcher.address={options.address} does not answer ({error.strerror or error})"
            ) from error
    source = [] if "site-packages" in PACKAGE.parts else [str(PACKAGE.parent)]  # of a checkout
    passed = {name: value for name in ("PYTHONPATH", "FIRSTLIGHT_DATA") if (value := os.environ.get(name))}
    passed["PYTHONPATH"] = os.pathsep.join([*source, *passed.get("PYTHONPATH", "").split(os.pathsep)]).strip(os.pathsep)
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if options.address is None:
        quiet["include_dashboard"] = False
    try:
        ray.init(address=options.address or "local", runtime_env={"env_vars": passed}, **quiet)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        raise UserError(f"hydra.launcher.address={options.address}: {' '.join(str(error).split())}") from error
    return ray


def refuse_too_much(ray: Any, wanted: dict[str, Any]) -> None:
    """Raise UserError if no node of the cluster has what a job needs: Ray would wait for it without end."""
    counts = {"CPU": wanted["num_cpus"], "GPU": wanted["num_gpus"], "memory": wanted.get("memory", 0)}
    needed = counts | wanted["resources"]
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    for name, amount in needed.items():
        most = max(node.get(name, 0) for node in nodes)
        if amount > most:
            raise UserError(
                f"hydra.launcher: a job needs {amount:g} {name}, and a node of the cluster has at most {most:g}"
            )


def refuse_other_disks(ray: Any, file: Path) -> None:
    """Raise UserError if a node does not see a file that this process has just written."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as OnNode

    content = file.read_text(encoding="utf-8")
    look = ray.remote(num_cpus=0)(content_of)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    places = [OnNode(node["NodeID"], soft=False) for node in nodes]
    answers = [look.options(scheduling_strategy=place).remote(str(file)) for place in places]
    for node, answer in zip(nodes, answers, strict=True):
        if ray.get(answer) != content:
            raise UserError(
                f"hydra/launcher=ray: the node {node['NodeName']} does not see {file.parent}; set paths.log_dir to a "
                "folder that all nodes share"
            )


def content_of(path: str) -> str | None:
    """Return the content of a file on the node that calls this function; None if it does not exist there."""
    return Path(path).read_text(encoding="utf-8") if Path(path).is_file() else None
