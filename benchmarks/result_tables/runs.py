"""The runs of a plan: trainings, baselines and evaluations of other runs, each in its own folder."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from result_tables.plan import Line, Plan

ROOT = Path(__file__).parents[2]
Record = dict[str, Any]

COMMAND = "command.txt"  # in the folder of a baseline or a sweep


class MeasurementError(Exception):
    """A run that a record requires is missing, unfinished or has other settings. The message says what to do."""


@dataclass(frozen=True)
class Run:
    """A training, a baseline or an evaluation. place: the place of its folder below `folders`, and of its record."""

    line: Line
    seed: int | None
    place: Path
    folders: Path

    @property
    def folder(self) -> Path:
        """The folder of a training or of a baseline; for an evaluation, that of the evaluated run."""
        if self.line.evaluate is None:
            return self.folders / self.place
        return self.folders / self.line.of / (self.place.name if self.seed is not None else "")

    @property
    def command(self) -> str:
        """The command as a user types it."""
        if self.line.train is not None:
            return f"python src/train.py {self.line.train} seed={self.seed}"
        if self.line.folds is not None and not self.line.against:
            return f"python src/train.py -m {self.line.folds}"
        if self.line.folds is not None:
            return f"python src/baseline.py {self.line.of}"
        if self.line.sweep is not None:
            return f"python src/train.py {self.line.sweep}"
        if self.line.baseline is not None:
            return f"python src/baseline.py {self.line.baseline}"
        return f"python src/evaluate.py logs/results/{self.line.of}/{self.place.name} {self.line.evaluate}"

    @property
    def typed(self) -> list[str]:
        """The arguments of the command, with the values of variables such as FIRSTLIGHT_DATA."""
        return [os.path.expandvars(each) for each in shlex.split(self.command)[2:]]

    def is_finished(self) -> bool:
        """Return whether the folder has a finished run. A baseline of another command does not count.

        Raises MeasurementError if it has another command's training.
        """
        record = self.read()
        if self.line.train is not None and record:
            typed = [each for each in record.get("overrides", []) if not each.startswith("resume=")]
            self._refuse_other(typed == self.typed)
        if self.line.baseline is not None and self._started() != self.command:
            return False
        return record.get("status") == "finished"

    def refuse_other_sweep(self) -> None:
        """Raise MeasurementError if the folder has the jobs of another command."""
        self._refuse_other(self._started() in (None, self.command))

    def _refuse_other(self, is_same: bool) -> None:
        if not is_same:
            raise MeasurementError(f"{self.folder} has a run of another command; remove it to measure {self.command}")

    def _started(self) -> str | None:
        """Return the command that was started in the folder; None if none was."""
        file = self.folder / COMMAND
        return file.read_text(encoding="utf-8").strip() if file.is_file() else None

    def read(self) -> Record:
        """Return the content of metrics.json, or {} if the file does not exist."""
        file = self.results_folder / "metrics.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    @property
    def results_folder(self) -> Path:
        """The folder with metrics.json. A baseline's command makes it below the folder of its line."""
        if self.line.baseline is None:
            return self.folder
        found = sorted(self.folder.glob("counted/*/baseline/*/predictions"))
        found += sorted(self.folder.glob("counted/*/baseline/*/losses"))
        return found[-1].parent if found else self.folder / "counted"

    def measure(self) -> bool:
        """Run the training or the baseline, and print a line. Return whether it succeeded."""
        print(f"{time.strftime('%H:%M:%S')} {self.command}", flush=True)
        if self.line.evaluate is not None:
            print(f"this requires the finished run in {self.folder}", flush=True)
            return False
        if self.line.folds is not None:
            options = [self.line.of, *([f"{self.line.of} {self.line.also}"] if self.line.also else [])]
            counted = [[*shlex.split(each), "--log-dir", str(self.folder)] for each in options]
            done = all(self._call([str(ROOT / "src" / "baseline.py"), *each]) for each in counted)
            if not self.line.against:
                trained = [str(ROOT / "src" / "train.py"), *self.typed, f"hydra.sweep.dir={self.folder / 'sweep'}"]
                done = done and self._call(trained)
        elif self.line.sweep is not None:
            train = [str(ROOT / "src" / "train.py"), *self.typed]
            done = self._call([*train, f"hydra.sweep.dir={self.folder}"])
            for place, cell in enumerate(self.line.more):
                where = [f"sweep.name={self.folder.name}_more_{place}", f"hydra.sweep.dir={self.folder}/more-{place}"]
                done = self._call([*train, *cell.split(), *where]) and done
        else:
            done = self._train() if self.line.train is not None else self._count()
        if not done:
            print(f"failed: {self.folder}/output.txt", flush=True)
        return done

    def _train(self) -> bool:
        there = (self.folder / "checkpoints" / "last.ckpt").is_file()
        own = [f"resume={self.folder}"] if there else [*self.typed, f"hydra.run.dir={self.folder}"]
        return self._call([str(ROOT / "src" / "train.py"), *own])

    def _count(self) -> bool:
        logs = self.folder / "counted"
        shutil.rmtree(logs, ignore_errors=True)
        return self._call([str(ROOT / "src" / "baseline.py"), *self.typed, "--log-dir", str(logs)])

    def _call(self, arguments: list[str]) -> bool:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.line.train is None:  # a training has its command in metrics.json
            (self.folder / COMMAND).write_text(f"{self.command}\n", encoding="utf-8")
        with (self.folder / "output.txt").open("a") as output:
            command = [sys.executable, *arguments]
            done = subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=False)  # noqa: S603
        return done.returncode == 0

    def evaluate(self, options: list[str]) -> Path:
        """Evaluate the finished run as evaluate.py does, in this process. Return the folder of the results."""
        import tyro

        from firstlight.commands.evaluate import EvaluateOptions, evaluate

        parsed = tyro.cli(EvaluateOptions, args=[str(self.folder), *options])
        with (self.folder / "output.txt").open("a") as output, redirect_stdout(output):
            return evaluate(parsed)


def runs_of(plan: Plan, section: str, line: Line, folders: Path) -> list[Run]:
    """Return the runs of a line: one per seed, one for a baseline, none for lines that need no run of their own."""
    place = Path(section, line.name)
    if line.baseline is not None or line.sweep is not None or line.folds is not None:
        return [Run(line, None, place, folders)]
    seeds = line.seeds
    if line.evaluate is not None:
        source, name = line.of.split("/")
        seeds = plan.sections[source].line(name).seeds
    elif line.train is None:
        return []
    return [Run(line, seed, place / f"seed-{seed}", folders) for seed in seeds]
