"""Sweeps over sizes and budgets: their jobs, their records, and what the page shows of the scaling law.

The record of a sweep has the losses of each finished job, and the sentences and tables of the fits, because a bootstrap
takes too long to be repeated whenever the page is written.
"""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from firstlight.choices import listed
from firstlight.errors import UserError
from firstlight.files.regular import regular
from firstlight.lab.reports.scaling import draw, scaling, sentences, tables
from firstlight.lab.reports.tables import Table
from firstlight.runs.gather import run_of
from firstlight.runs.summary import Curve
from firstlight.runs.summary import Run as Row
from firstlight.sweeps.jobs import folder_name
from result_tables.plan import Line
from result_tables.runs import ROOT, Record, Run

LOSS = "val/loss"
KEPT = (  # of the record of a job
    *("task", "overrides", "seed", "status", "optimized_metric", "parameters", "steps"),
    *("tokens", "metrics", "run_key"),
)
IMAGES = Path("docs", "images")


def jobs_of(line: Line) -> dict[str, str]:
    """Return the folders of all jobs of a sweep by their names: as its experiment file lists them, and more seeds."""
    words = dict(word.partition("=")[::2] for word in (line.sweep or "").split())
    content: Any = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / "experiment" / f"{words['experiment']}.yaml"))
    swept = content["hydra"]["sweeper"]["params"]
    values = [[f"{key}={value}" for value in str(listed).split(",")] for key, listed in swept.items()]
    found = {name: name for name in (folder_name(each) for each in product(*values))}
    for place, cell in enumerate(line.more):
        *typed, seeds = cell.split()
        for seed in seeds.removeprefix("seed=").split(","):
            found[folder_name([*typed, f"seed={seed}"])] = f"more-{place}/seed-{seed}"
    return found


def missing_of(run: Run, known: Record | None = None) -> list[str]:
    """Return the jobs of a sweep that have not finished. known: the record of earlier jobs, which need no folder."""
    jobs = (known or {}).get("jobs", {})
    return [
        name
        for name, folder in jobs_of(run.line).items()
        if name not in jobs and _record_of(run.folder / folder).get("status") != "finished"
    ]


def sweep_record(run: Run, known: Record | None = None) -> Record | None:
    """Return the record of the finished jobs of a sweep; None if no job has finished. known: as in `missing_of`."""
    kept: dict[str, Any] = (known or {}).get("jobs", {})
    missing = missing_of(run, known)
    left = {name: folder for name, folder in jobs_of(run.line).items() if name not in missing and name not in kept}
    found = {name: _record_of(run.folder / folder) for name, folder in left.items()}
    if not found:
        return None if known is None else known | {"missing": missing}
    first = next(iter(found.values()))
    data = {key: first["data"].get(key) for key in ("source", "fingerprint", "tokens")}
    jobs = {name: _job(run.folder / left[name], record, data) for name, record in found.items()}
    git, minutes = first.get("git") or {}, sum(each["seconds"]["fit_processor"] for each in found.values()) / 60
    return {
        "command": run.command,
        "missing": missing,
        "commit": git.get("commit"),
        "modified": git.get("modified"),
        "versions": first["versions"],
        "processor_minutes": round((known or {}).get("processor_minutes", 0) + minutes, 1),
        "data": data,
        "jobs": kept | jobs,
    }


def with_fits(record: Record, line: Line) -> Record:
    """Return a record with what the page shows of its fits: with all sizes, and without the one that is held out.

    The figures of the fit with all sizes are drawn into IMAGES. Too few finished jobs show why there is no fit yet.
    """
    rows = rows_of(record)
    try:
        every = scaling(rows, LOSS, lambda _: False, "")
        draw(every, ROOT / IMAGES)
        fitted = [row for row in rows if not line.sizes or row.keys.get("scale") in line.sizes]
        held = scaling(fitted, LOSS, lambda row: row.keys.get("scale") == line.hold_out, line.hold_out)
        predicted = [each for each in tables(held) if each.title.startswith("Held out")]
        shown = {
            "sentences": sentences(every),
            "held_out": sentences(held),
            "tables": _plain([*predicted, *tables(every)]),
        }
    except UserError as error:
        shown = {"sentences": [f"There is no fit yet. {error}"], "tables": [], "held_out": []}
    return record | {"shown": shown}


def rows_of(record: Record) -> list[Row]:
    """Return the finished jobs of a record as rows of a report."""
    return [_row(name, job | {"data": record["data"]}) for name, job in record["jobs"].items()]


def part_of(record: Record, line: Line) -> str:
    """Return what the page shows of a sweep."""
    shown, size = record["shown"], len(record["jobs"]) + len(record["missing"])
    minutes = f"{record['processor_minutes']:.0f} minutes of processor time together"
    parts = [f"`{record['command']}`: {size} runs, {minutes}."]
    if record["missing"]:
        parts.append(f"{len(record['missing'])} of them wait: {', '.join(record['missing'])}.")
    if shown["tables"]:
        parts += [f"![The losses and the fit]({IMAGES}/scaling_fit.png)"]
    parts.append("\n".join(f"- {each}" for each in shown["sentences"]))
    if shown["held_out"]:
        left_out = line.hold_out if line.hold_out.startswith("C>") else f"scale={line.hold_out}"
        parts.append(f"Fitted{f' to {listed(line.sizes)}' if line.sizes else ''} without `{left_out}`:")
        parts.append("\n".join(f"- {each}" for each in shown["held_out"]))
    for table in shown["tables"]:
        rows = [table["headers"], ["---"] * len(table["headers"]), *table["rows"]]
        parts.append(f"{table['title']}:")
        parts.append("\n".join("| " + " | ".join(row) + " |" for row in rows))
    return "\n\n".join(parts)


def _record_of(folder: Path) -> Record:
    file = folder / "metrics.json"
    return json.loads(regular(file).read_text(encoding="utf-8")) if file.is_file() else {}


def _job(folder: Path, record: Record, data: Record) -> Record:
    """Return what is kept of a job: numbers of its record, and its validations."""
    if {key: record["data"].get(key) for key in data} != data:
        raise UserError(f"{folder}: was trained on other data than the other jobs; move the sweep's folder")
    lines = [json.loads(line) for line in regular(folder / "history.jsonl").read_text(encoding="utf-8").splitlines()]
    losses = [(line["step"], line[LOSS]) for line in lines if LOSS in line]
    return {key: record[key] for key in KEPT} | {
        "validated": [step for step, _ in losses],
        "losses": [round(loss, 6) for _, loss in losses],
    }


def _row(name: str, job: Record) -> Row:
    row = run_of(name, job)
    row.curves[LOSS] = Curve(job["validated"], [math.nan] * len(job["losses"]), job["losses"])
    return row


def _plain(found: list[Table]) -> list[Record]:
    return [{"title": each.title, "headers": list(each.headers), "rows": each.rows} for each in found]
