"""Jobs of a sweep on a Ray cluster. A job whose node is lost starts again on another one, and resumes."""

import os
import socket
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from hydra.core.utils import JobReturn
from omegaconf import DictConfig

from firstlight.errors import UserError
from firstlight.invocation import install_command
from firstlight.runs.folder import SWEEP_FILE
from firstlight.sweeps import remote
from firstlight.version import PACKAGE

SECONDS_TO_CONNECT = 10
MOST_WAITED_FOR = 1000  # of the jobs; each call of ray.wait looks at all of them


def check_cluster(options: DictConfig) -> None:
    """Connect to the cluster. Raises UserError if it does not answer, or has no node with what a job needs."""
    refuse_too_much(connected(options), requirements(options))


def launch(config: DictConfig, jobs: Sequence[Sequence[str]]) -> list[JobReturn]:
    """Run jobs on the cluster, and return their results.

    Raises UserError if a node of the cluster cannot run them.
    """
    options = config.hydra.launcher
    ray = connected(options)
    sweep = Path(config.hydra.sweep.dir).absolute()
    shared = {"sweep_file": (sweep / SWEEP_FILE).read_text(encoding="utf-8")}
    errors: dict[int, str | None] = {}
    try:
        described = ray.put(remote.description(config, jobs, []) | shared)
        refuse_other_nodes(ray, described)
        run = resolve_name(f"{remote.MODULE}:run")
        task = ray.remote(max_calls=1, max_retries=options.retries, **requirements(options))(run)
        waiting = {task.remote(described, number): number for number in range(len(jobs))}
        while waiting:
            (done, *_), _ = ray.wait(list(islice(waiting, MOST_WAITED_FOR)), num_returns=1)
            number = waiting.pop(done)
            try:
                errors[number] = ray.get(done)
            except ray.exceptions.RayError as error:  # its worker or its node was lost more often than it is retried
                errors[number] = " ".join(str(error).split())
                (sweep / remote.FAILURE).touch()
    finally:
        ray.shutdown()
    return [remote.result(sweep, overrides, errors[number]) for number, overrides in enumerate(jobs)]


def requirements(options: DictConfig) -> dict[str, Any]:
    """Return what a job needs, as arguments of `ray.remote`."""
    memory = {} if options.memory_gb is None else {"memory": int(options.memory_gb * 2**30)}
    counts = {"num_cpus": options.num_cpus, "num_gpus": options.num_gpus}
    return {**counts, **memory, "resources": dict(options.resources or {})}


def connected(options: DictConfig) -> Any:
    """Return Ray, connected to a cluster. Raises UserError if it is not installed or the cluster does not answer."""
    bounds = {"RAY_gcs_server_port_wait_time_s": "1", "RAY_py_gcs_connect_timeout_s": str(SECONDS_TO_CONNECT)}
    before = {"RAY_USAGE_STATS_ENABLED": "0", **(bounds if options.address else {})}  # else Ray tries for minutes
    os.environ |= before | os.environ  # Ray reads them when it is imported
    try:
        import ray
    except ImportError:
        raise UserError(f"hydra/launcher=ray needs Ray: {install_command('ray')}") from None
    if ray.is_initialized():
        return ray
    host, _, port = str(options.address).rpartition(":")
    if "://" in host:
        problem = f"hydra.launcher.address={options.address}: a sweep starts on a machine of the cluster"
        raise UserError(f"{problem}; start it there with hydra.launcher.address=auto, or use `ray job submit`")
    if port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=SECONDS_TO_CONNECT).close()
        except OSError as error:
            why = error.strerror or error
            raise UserError(f"hydra.launcher.address={options.address} does not answer ({why})") from error
    source = [] if "site-packages" in PACKAGE.parts else [str(PACKAGE.parent)]  # of a clone
    passed = {name: value for name in ("PYTHONPATH", "FIRSTLIGHT_DATA") if (value := os.environ.get(name))}
    passed["PYTHONPATH"] = os.pathsep.join([*source, *passed.get("PYTHONPATH", "").split(os.pathsep)]).strip(os.pathsep)
    passed["OMP_NUM_THREADS"] = str(max(1, int(options.num_cpus)))
    if not options.num_gpus:
        passed["CUDA_VISIBLE_DEVICES"] = ""  # which Ray leaves as it is
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
    needed = {name: amount for name, amount in (counts | wanted["resources"]).items() if amount}
    nodes = [{name: node["Resources"].get(name, 0) for name in needed} for node in ray.nodes() if node["Alive"]]
    if not any(all(amount <= node[name] for name, amount in needed.items()) for node in nodes):
        most = {name: max(node[name] for node in nodes) for name in needed}
        problem = f"a job needs {in_words(needed)}, and a node of the cluster has at most {in_words(most)}"
        raise UserError(f"hydra.launcher: {problem}")


def in_words(amounts: dict[str, float]) -> str:
    """Return amounts of resources, such as `2 CPU, 0.1 GPU`. Ray counts memory in bytes."""
    in_gb = {name: amount / 2**30 if name == "memory" else amount for name, amount in amounts.items()}
    return ", ".join(f"{amount:g} {'GB of ' * (name == 'memory')}{name}" for name, amount in in_gb.items())


def refuse_other_nodes(ray: Any, described: Any) -> None:
    """Raise UserError if a node cannot run jobs. described: a reference of Ray to their description."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as OnNode

    look = ray.remote(num_cpus=0)(remote.refusal)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    places = [OnNode(node["NodeID"], soft=False) for node in nodes]
    answers = [look.options(scheduling_strategy=place).remote(described) for place in places]
    for node, answer in zip(nodes, answers, strict=True):
        try:
            reason = ray.get(answer)
        except ray.exceptions.RayError as error:
            reason = f"{node['NodeName']} cannot run firstlight: {str(error).strip().splitlines()[-1].strip()}"
        if reason:
            raise UserError(f"hydra/launcher=ray: {reason}")
