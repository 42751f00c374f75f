"""Cross-validation: the trainings and the baselines of all folds, their record, and what the page shows of it.

The record has the test metric of each run, and the sentences and tables of the report, because the predictions of all
texts are too large for the repository.
"""

import json

from firstlight.lab.reports.all_runs import SavedPredictions, direction_of, found_runs
from firstlight.lab.reports.folds import cross_validation
from firstlight.runs.summary import SEED
from result_tables.plan import Line
from result_tables.runs import MeasurementError, Record, Run


def expected_runs(line: Line) -> int:
    """Return the number of trainings and baselines of a line."""
    words = dict(word.partition("=")[::2] for word in (line.folds or "").split())
    return int(words["folds"]) * (words["seed"].count(",") + 2)


def folds_record(run: Run) -> Record:
    """Return the record of the finished runs of a line. Raises MeasurementError without one."""
    runs = [each for each in found_runs(run.folder) if each.is_counted]
    if not runs:
        raise MeasurementError(f"{run.folder} has no finished run")
    section = cross_validation(runs, SavedPredictions(run.folder, "test"), direction_of(runs))
    metric = str(runs[0].optimized_metric).replace("val/", "test/")
    first = json.loads((run.folder / runs[0].folder / "metrics.json").read_text(encoding="utf-8"))
    return {
        "command": run.command,
        "missing": expected_runs(run.line) - len(runs),
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


def part_of(record: Record, line: Line) -> str:
    """Return what the page shows of a cross-validation."""
    parts = [f"{line.title}: `{record['command']}` and `python src/baseline.py {line.of}`."]
    if record["missing"]:
        parts.append(f"{record['missing']} of {expected_runs(line)} runs wait.")
    parts += record["sentences"]
    for table in record["tables"]:
        rows = [table["headers"], ["---"] * len(table["headers"]), *table["rows"]]
        parts.append("\n".join("| " + " | ".join(row) + " |" for row in rows))
    return "\n\n".join(parts)
