"""A sweep on a cluster, and its comparison with one that nothing disturbs."""

import json
from pathlib import Path
from typing import Any

from same_runs import assert_same_run
from tests_support import Process, Scripts, wait_until


class Sweep:
    """A sweep on the cluster, as a command that is started and can be started again."""

    def __init__(self, folder: Path, overrides: list[str], quiet: Path) -> None:
        self.scripts, self.overrides, self.quiet = Scripts(folder), overrides, quiet
        self.folder = folder / "logs" / "sweeps" / "stories"
        self.parents: list[Process] = []

    def start(self, *more: str) -> Process:
        self.parents.append(self.scripts.start("train", *self.overrides, *more))
        return self.parents[-1]

    def end(self, parent: Process, code: int = 0) -> str:
        out, error = parent.communicate(timeout=600)
        logs = "\n".join(path.read_text() for path in self.folder.glob(".slurm/*.txt"))
        assert parent.returncode == code, out + error + logs
        return out + error

    def record(self, seed: int) -> dict[str, Any]:
        path = self.folder / f"seed-{seed}" / "metrics.json"
        return json.loads(path.read_text()) if path.is_file() else {}

    def steps(self, seed: int) -> int:
        path = self.folder / f"seed-{seed}" / "history.jsonl"
        lines = (
            [each for each in path.read_text().splitlines(keepends=True) if each.endswith("\n")]
            if path.is_file()
            else []
        )
        return max((json.loads(each)["step"] for each in lines), default=0)

    def wait_for_training(self, seed: int, step: int = 50) -> None:
        wait_until(lambda: self.steps(seed) >= step, self.parents[-1])

    def task(self, seed: int) -> str:
        states = json.loads((self.folder / ".slurm" / "states.json").read_text())
        return str(states[f"seed-{seed}"][0])

    def assert_as_quiet(self, *seeds: int) -> None:
        for seed in seeds:
            assert self.record(seed)["status"] == "finished"
            assert_same_run(self.quiet / f"seed-{seed}", self.folder / f"seed-{seed}")
