"""Measure every number of RESULTS.md: python benchmarks/results.py (--help lists all options). It takes hours.

results.yaml lists the measurements. Each one has its own folder below logs/results/. Finished runs are used unchanged,
interrupted runs are resumed, and the page is written again after each run. All choices were made on validation, in
other runs. The test split is read here, with the final settings.
"""

import json
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from omegaconf import OmegaConf

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "logs" / "results"
PERCENT = {"accuracy"}
RISES = {"accuracy", "bleu"}  # for all other metrics, lower is better


@dataclass
class Options:
    """Options of the measurements and of the page."""

    only: tuple[str, ...] = ()
    """The sections of results.yaml to measure, in this order. By default all of them."""
    seeds: int | None = None
    """The largest number of seeds of each line."""
    table_only: bool = False
    """Write the page from finished runs, without training."""
    plan: Path = ROOT / "benchmarks" / "results.yaml"
    """The file with the measurements."""
    folder: Path = RESULTS
    """The folder of the runs."""
    page: Path = ROOT / "RESULTS.md"
    """The page to write."""


def main() -> None:
    """Run the missing measurements, and write the page."""
    options = tyro.cli(Options)
    plan: Any = OmegaConf.to_container(OmegaConf.load(options.plan))
    sections: dict[str, Any] = plan["sections"]
    if unknown := [name for name in options.only if name not in sections]:
        sys.exit(f"--only {unknown[0]}: the sections are {', '.join(sections)}")
    failed = 0
    for name in options.only or sections:
        for run in runs_of_section(sections[name], options.folder / name):
            if not options.table_only and is_wanted(run, options.seeds) and not run.is_finished():
                failed += not run.measure()
                options.page.write_text(page(plan, options.folder), encoding="utf-8")
    options.page.write_text(page(plan, options.folder), encoding="utf-8")
    if failed:
        sys.exit(f"{failed} of the runs failed; repeat the command to try them again")


@dataclass(frozen=True)
class Run:
    """A training or a baseline, in its own folder."""

    command: str  # as the user types it
    seed: int | None
    folder: Path

    def is_finished(self) -> bool:
        """Return whether the run is complete."""
        return self.record().get("status") == "finished"

    def record(self) -> dict[str, Any]:
        """Return the content of metrics.json, or {} if the file does not exist."""
        file = self.folder / "metrics.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    def measure(self) -> bool:
        """Run the training or the baseline, and print a line. Return whether it succeeded."""
        print(f"{time.strftime('%H:%M:%S')} {self.command}", flush=True)
        done = self._train() if self.seed is not None else self._count()
        if not done:
            print(f"failed: {self.folder}/output.txt", flush=True)
        return done

    def _train(self) -> bool:
        typed = shlex.split(self.command)[2:]
        there = (self.folder / "checkpoints" / "last.ckpt").is_file()
        own = [f"resume={self.folder}"] if there else [*typed, f"hydra.run.dir={self.folder}"]
        return self._call([str(ROOT / "src" / "train.py"), *own])

    def _count(self) -> bool:
        logs = self.folder / "counted"
        shutil.rmtree(logs, ignore_errors=True)
        done = self._call([str(ROOT / "src" / "baseline.py"), *shlex.split(self.command)[2:], "--log-dir", str(logs)])
        for file in logs.glob("*/baseline/*/metrics.json"):
            shutil.copy(file, self.folder)
        return done

    def _call(self, arguments: list[str]) -> bool:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "output.txt").open("a") as output:
            command = [sys.executable, *arguments]
            done = subprocess.run(command, cwd=ROOT, stdout=output, stderr=output, check=False)  # noqa: S603
        return done.returncode == 0


def is_wanted(run: Run, seeds: int | None) -> bool:
    """Return whether a run is among the first `seeds` seeds."""
    return seeds is None or run.seed is None or run.seed <= seeds


def runs_of(line: dict[str, Any], folder: Path) -> list[Run]:
    """Return the runs of a line of results.yaml: one per seed, one for a baseline, none for published results."""
    if "baseline" in line:
        return [Run(f"python src/baseline.py {line['baseline']}", None, folder / line["name"])]
    if "train" not in line:
        return []
    typed = f"python src/train.py {line['train']}"
    return [Run(f"{typed} seed={seed}", seed, folder / line["name"] / f"seed-{seed}") for seed in line["seeds"]]


def runs_of_section(section: dict[str, Any], folder: Path) -> list[Run]:
    """Return the runs of all lines of a section, then those of its ablation."""
    return [run for line in [*section["lines"], *section.get("ablation", [])] for run in runs_of(line, folder)]


def page(plan: dict[str, Any], folder: Path) -> str:
    """Return the content of RESULTS.md."""
    parts = [plan["preface"].strip()]
    for name, section in plan["sections"].items():
        parts.append(f"## {section['title']}\n{section['text'].strip()}")
        parts.append(table(section["lines"], section, folder / name))
        if aims := [verdict(line, section, folder / name) for line in section["lines"] if "aim" in line]:
            parts.append("\n".join(aims))
        if "ablation" in section:
            parts.append(section["ablation_text"].strip())
            parts.append(table(section["ablation"], section, folder / name))
        if "notes" in section:
            parts.append(section["notes"].strip())
    sections = plan["sections"].items()
    records = [run.record() for name, section in sections for run in runs_of_section(section, folder / name)]
    commits = sorted({commit for record in records if (commit := commit_of(record))})
    versions: dict[str, str] = next((record["versions"] for record in records if "versions" in record), {})
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    parts.append(f"## How it was measured\n{plan['machine'].strip()} {named}; commits {', '.join(commits)}.")
    return "\n\n".join(parts) + "\n"


def commit_of(record: dict[str, Any]) -> str:
    """Return the commit of the code of a run, with a + if files were modified."""
    git = record.get("git") or {}
    return f"`{git['commit'][:7]}{'+' if git['modified'] else ''}`" if git.get("commit") else ""


def table(lines: list[dict[str, Any]], section: dict[str, Any], folder: Path) -> str:
    """Return the table of some lines, including those that are not measured."""
    metric = section["metric"]
    splits = section["splits"]
    rows = [["", "command", "parameters", section["unit"], *(f"{split} {metric}" for split in splits), "training"]]
    rows.append(["---"] * len(rows[0]))
    for line in lines:
        runs = runs_of(line, folder)
        records = [run.record() for run in runs if run.is_finished()]
        shown = f"`{runs[0].command}`" if runs else "–"
        if "published" in line:
            given = line["published"]
            values = [given.get(key, "–") for key in ("parameters", "seen", *splits)]
            rows.append([line["title"], shown, *values, "–"])
        elif not records:
            rows.append([line["title"], shown, *["not measured"] * (len(rows[0]) - 2)])
        else:
            found = [[measured(record, split, metric) for record in records] for split in splits]
            values = [spread(each, metric, is_seeded="train" in line) for each in found]
            seconds = [spent for record in records if (spent := record.get("seconds", {}).get("fit_processor"))]
            spent = f"{statistics.mean(seconds) / 60:.1f} min" if seconds else "–"
            rows.append([line["title"], shown, counted(records[0]), seen(records[0], section["unit"]), *values, spent])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def measured(record: dict[str, Any], split: str, metric: str) -> float | None:
    """Return a metric of a run, or None if the run does not have it."""
    short = {"validation": "val"}.get(split, split)
    return record["metrics"].get(f"{short}/{metric}")


def spread(values: list[float | None], metric: str, *, is_seeded: bool = True) -> str:
    """Return mean ± standard deviation (number of seeds) as a text. Shares are percentages."""
    found = [100 * value if metric in PERCENT else value for value in values if value is not None]
    if not found:
        return "–"
    digits = 1 if metric in RISES else 3
    sign = "%" if metric in PERCENT else ""
    if len(found) == 1:
        return f"{found[0]:.{digits}f}{sign}{' (1)' if is_seeded else ''}"
    return f"{statistics.mean(found):.{digits}f} ± {statistics.stdev(found):.{digits}f}{sign} ({len(found)})"


def counted(record: dict[str, Any]) -> str:
    """Return the number of parameters of a model as a text."""
    return f"{record['parameters']:,}" if record.get("parameters") else "–"


def seen(record: dict[str, Any], unit: str) -> str:
    """Return the amount of training data as a text: rows, or tokens in all epochs together."""
    if unit.endswith("rows"):
        return f"{record['data']['rows']['train']:,}"
    return f"{record['tokens'] / 1e6:.2f} million" if record.get("tokens") else "–"


def verdict(line: dict[str, Any], section: dict[str, Any], folder: Path) -> str:
    """Return a sentence that says whether the aim of a line was reached."""
    aim, metric = line["aim"], section["metric"]
    records = [run.record() for run in runs_of(line, folder) if run.is_finished()]
    values = [value for record in records if (value := measured(record, aim["split"], metric)) is not None]
    goal = f"Aim of `{line['train']}`: {aim['split']} {metric} {aim['text']}"
    if not values:
        return f"{goal}; not measured."
    mean = statistics.mean(values)
    reached = mean >= aim["value"] if metric in RISES else mean <= aim["value"]
    return f"{goal}; {spread(list(values), metric)}: {'reached' if reached else '**not reached**'}."


if __name__ == "__main__":
    main()
