"""Cross-validation: the trainings and the baselines of all folds, their record, and what the page shows of it.

The record has the test metric of each run, and the sentences and tables of the report, because the predictions of all
texts are too large for the repository.
"""

import json
from statistics import fmean
from typing import NamedTuple

from firstlight.lab.reports.all_runs import SavedPredictions, direction_of, gather
from firstlight.lab.reports.folds import OF_DIFFERENCES, cross_validation
from firstlight.lab.reports.significance import LEVEL, corrected_folds
from firstlight.runs.summary import SEED
from result_tables.plan import Line
from result_tables.runs import MeasurementError, Record, Run


def expected_runs(line: Line) -> int:
    """Return the number of trainings and baselines of a line."""
    words = dict(word.partition("=")[::2] for word in (line.folds or "").split())
    seeds = 0 if line.against else words["seed"].count(",") + 1
    return int(words["folds"]) * (seeds + 1 + bool(line.also))


def waiting_runs(line: Line, record: Record | None) -> int:
    """Return how many of the trainings and baselines of a line its record lacks."""
    return expected_runs(line) - (len(record["runs"]) if record else 0)


def folds_record(run: Run) -> Record:
    """Return the record of the finished runs of a line. Raises MeasurementError without one."""
    runs = [each for each in gather(run.folder) if each.is_counted]
    if not runs:
        raise MeasurementError(f"{run.folder} has no finished run")
    section = cross_validation(runs, SavedPredictions(run.folder, "test"), direction_of(runs))
    metric = str(runs[0].optimized_metric).replace("val/", "test/")
    first = json.loads((run.folder / runs[0].folder / "metrics.json").read_text(encoding="utf-8"))
    return {
        "command": run.command,
        "commit": (first.get("git") or {}).get("commit"),
        "modified": (first.get("git") or {}).get("modified"),
        "versions": first["versions"],
        "data": {key: first["data"].get(key) for key in ("source", "fingerprint", "rows")},
        "runs": [
            [str(each.keys.get("model")), int(str(each.split["data.fold"])), each.keys.get(SEED), each.metrics[metric]]
            for each in runs
        ],
        "sentences": list(section.sentences[1:]),
        "tables": [{"headers": table.headers, "rows": table.rows} for table in section.tables],
    }


class Compared(NamedTuple):
    """A pair of settings. network, baseline: their results; the rest is that of the table of differences."""

    network: str
    baseline: str
    texts: str
    seeds: str
    row: list[str]


def compared(record: Record, baseline: str, against: Record | None = None) -> Compared:
    """Return how the network of a record differs from a baseline.

    against: the record of the networks, for a record that has only the baseline. Their predictions of texts are not
    kept, so that the results of the folds alone are compared, by the corrected resampled t test.
    """
    networks = against or record
    counted = {row[0]: row for row in record["tables"][0]["rows"]}[baseline]
    own = next(row for row in networks["tables"][0]["rows"] if row[3] != "–")
    if against is None:
        row = next(row for row in record["tables"][1]["rows"] if {row[0], row[2]} == {own[0], baseline})
        if row[0] != own[0]:  # the baseline is the first of the pair
            word, signs = {"better": "worse", "worse": "better"}.get(row[1], row[1]), str.maketrans("+-", "-+")
            t = row[5].removeprefix("-") if row[5].startswith("-") else f"-{row[5]}"
            row = [own[0], word, row[0], row[3].translate(signs), row[4], t, row[6]]
    else:
        first, second = (_of_folds(each, name) for each, name in ((networks, own[0]), (record, baseline)))
        found = corrected_folds(first, second, networks["data"]["rows"]["test"] / networks["data"]["rows"]["train"])
        value, t = found.estimate.value, found.estimate.value / found.standard_error
        word = "undecided" if found.p >= LEVEL else "better" if value > 0 else "worse"
        size = f"{100 * value:+.2f} ± {100 * found.estimate.half_width:.2f} points"
        row = [own[0], word, baseline, size, "–", f"{t:.2f}", f"{found.p:.2g}"]
    return Compared(own[4], counted[4], counted[1], own[3], row)


def _of_folds(record: Record, name: str) -> list[float]:
    """Return the results of a setting on each fold, the means over its seeds."""
    found: dict[int, list[float]] = {}
    for model, fold, _, value in record["runs"]:
        if model == name:
            found.setdefault(fold, []).append(value)
    return [fmean(found[fold]) for fold in sorted(found)]


def part_of(record: Record, line: Line, against: Record | None = None) -> str:
    """Return what the page shows of a cross-validation. against: as in `compared`."""
    parts = [f"{line.title}: `{record['command']}` and `python src/baseline.py {line.of}`."]
    if line.also:
        parts = [f"{parts[0].removesuffix('.')}, and again with `{line.also}`."]
    if line.against:
        parts = [f"{line.title}: `{record['command']}`."]
    if waiting := waiting_runs(line, record):
        parts.append(f"{waiting} of {expected_runs(line)} runs wait.")
    parts += record["sentences"]
    tables = list(record["tables"])
    if against is not None and not waiting:
        row = compared(record, tables[0]["rows"][0][0], against).row
        tables.append({"headers": [getattr(each, "name", each) for each in OF_DIFFERENCES], "rows": [row]})
    for table in tables:
        rows = [table["headers"], ["---"] * len(table["headers"]), *table["rows"]]
        parts.append("\n".join("| " + " | ".join(row) + " |" for row in rows))
    return "\n\n".join(parts)
