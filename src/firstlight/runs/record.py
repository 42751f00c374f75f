"""The record of a run, metrics.json, from its start to its end."""

import hashlib
import os
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from socket import gethostname
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from firstlight.invocation import CHECKOUT
from firstlight.runs import trackio_logger, wandb_logger
from firstlight.runs.folder import RunFolder
from firstlight.runs.identity import description
from firstlight.runs.named import find_run, is_searched
from firstlight.runs.targets import own_sources
from firstlight.version import PACKAGE, __version__

LIBRARIES = ("torch", "lightning", "hydra-core", "torchmetrics", "tokenizers", "datasets", "numpy")


def record_of_start(config: DictConfig, folder: RunFolder) -> dict[str, Any]:
    """Return the record of a run that starts now, the content of its metrics.json. A value that is not known is None.

    A resumed run keeps the seconds of its earlier parts.
    """
    hydra = HydraConfig.get()
    before = folder.read() if folder.is_run() and config.resume else {}
    fit_before = (before.get("seconds") or {}).get("fit") or 0.0
    return {
        **description(config, hydra.runtime.choices),
        "tags": list(config.tags),
        "overrides": list(hydra.overrides.task),
        "host": gethostname(),
        "process_id": os.getpid(),
        "status": "running",
        "reason": None,
        "optimized_mode": config.optimized_mode,
        "init_from": before.get("init_from") or (config.init_from if before else _source_of(config)),
        **dict.fromkeys(("data", "teacher", "parameters", "steps", "total_steps")),
        "seconds": dict.fromkeys(("start_up", "fit_processor", "test")) | {"fit": fit_before},
        **dict.fromkeys(("tokens", "flops", "tokens_per_second")),
        "threads": torch.get_num_threads(),
        "versions": dict(versions()),
        "git": git_state(),
        "code": hash_of_code(config),
        **dict.fromkeys(("checkpoint", "checkpoint_step")),
        "metrics": {},
    }


def _source_of(config: DictConfig) -> str | None:
    """Return the folder that init_from means."""
    name = config.init_from
    return str(find_run(name, Path(config.paths.log_dir)).path) if name and is_searched(name) else name


def finish(folder: RunFolder, record: dict[str, Any], status: str, reason: str | None = None) -> None:
    """Write how the run ended into its folder, and send it to W&B and Trackio."""
    record["status"], record["reason"] = status, " ".join(reason.split()) if reason else None
    folder.write(record)
    finish_loggers(record)


def finish_loggers(record: dict[str, Any]) -> None:
    """Close the runs of W&B and Trackio in this process, with the status of the record."""
    wandb_logger.finish(record)
    trackio_logger.finish(record)


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python, this package and the libraries that a result depends on."""
    own = {"python": sys.version.split()[0], "firstlight": __version__}
    return own | {name: version(name) for name in LIBRARIES}


def hash_of_code(config: DictConfig) -> str:
    """Return a hash of the source of this package and of the user's own classes that config names."""
    hashes = [hash_of_source(path) for path in (PACKAGE, *own_sources(config))]
    return "c" + hashlib.sha256("".join(hashes).encode()).hexdigest()[:12]


@cache
def hash_of_source(path: Path) -> str:
    """Return the hash of a module's file, or of all Python files below a package's folder."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        digest.update(str(file.relative_to(path)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def git_state() -> dict[str, Any] | None:
    """Return the commit of the code and whether files differ from it; None outside a repository.

    Pages (*.md) and the records of benchmarks/results.py, which are written between two runs, do not count.
    The repository is the clone of firstlight, or where firstlight is installed, the one of the current folder.
    """
    root = CHECKOUT or Path.cwd()
    command = ["git", "-C", str(root), "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    command += ["--", ":/", ":(top,exclude)*.md", ":(top,exclude)benchmarks/measured"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid")), None)
    return {"commit": commit, "modified": any(not line.startswith("#") for line in lines)}
