"""The data that W&B received from a run, read from the file of an offline run."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TASKS = ("sentiment", "stars", "names", "shakespeare", "review_text", "translation")
# These have the network, the data modules and the callbacks of stars and of names.
ALIKE = ("sentiment", "shakespeare", "review_text")
OF_EVERY_TASK = pytest.mark.parametrize(
    "task", [pytest.param(task, marks=pytest.mark.slow) if task in ALIKE else task for task in TASKS]
)


@dataclass
class Run:
    """The data that W&B received from a run."""

    folder: Path
    files: Path
    records: list[dict[str, Any]]

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [record[kind] for record in self.records if record["type"] == kind]

    @property
    def config(self) -> dict[str, Any]:
        told = [run["config"] for run in self.all("run")] + self.all("config")  # first what an agent has told
        return {key: value for config in told for key, value in config["update"].items()}

    @property
    def summary(self) -> dict[str, Any]:
        return {key: value for summary in self.all("summary") for key, value in summary.get("update", {}).items()}

    def history(self, key: str) -> list[tuple[int, Any]]:
        """Return (step, value) of every line that has the key."""
        items = [line["item"] for line in self.all("history")]
        return [(item["trainer/global_step"], item[key]) for item in items if key in item]

    def table(self, key: str) -> dict[str, Any]:
        """Return the columns and the data of the last table with that name."""
        (path,) = {value for _, value in self.history(f"{key}.path")[-1:]}
        return json.loads((self.files / path).read_text(encoding="utf-8"))

    @property
    def metrics(self) -> dict[str, Any]:
        return json.loads((self.folder / "metrics.json").read_text(encoding="utf-8"))


def read_run(file: Path) -> Run:
    wandb = Path(sys.executable).with_name("wandb")
    environment = os.environ | {"WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false"}
    done = subprocess.run(
        [wandb, "leet", "inspect", "--json", file],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    records = [json.loads(line) for line in done.stdout.splitlines() if line]
    return Run(file.parents[2], file.parent / "files", records)


def runs_below(folder: Path) -> list[Run]:
    """Return all runs below a folder, in the order of their folders."""
    files = folder.rglob("wandb/offline-run-*/run-*.wandb")
    return sorted(map(read_run, files), key=lambda run: str(run.folder))


def no_key(folder: Path) -> dict[str, str]:
    """Return the environment of a machine without a W&B login. W&B stores its files in the folder.

    It does not list the installed packages, which takes half a second for each run.
    """
    directories = {f"WANDB_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "CACHE", "DATA")}
    switched_off = {"WANDB_ERROR_REPORTING": "false", "WANDB_X_SAVE_REQUIREMENTS": "false"}
    return {"NETRC": str(folder / "none")} | switched_off | directories
