"""Runs and their folders as a training writes them, made without a training."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firstlight.runs.summary import Run

CLASSES = ("bad", "so-so", "good")
NASTY = "</script><img src=x onerror=\"document.title='broken'\"><b>bold</b>"
COUNTS = [[5, 1, 0], [2, 3, 4], [0, 7, 11]]


def a_row(name: str = "", value: float = 0.5, **changes: Any) -> Run:
    """Return a finished run as a report reads it. changes: fields of `Run`, and keys that differ or are added."""
    keys = {"task": "stars", "model": "tiny", "dropout": 0.1, "seed": 1} | changes.pop("keys", {})
    metric = changes.setdefault("optimized_metric", "val/accuracy")
    given = {"status": "finished", "source": "local", "metrics": {metric: value}} | changes
    return Run(name or "-".join(map(str, keys.values())), keys=keys, **given)


def falls(metric: str) -> bool:
    """Return whether lower values of a metric are better, as `boards` asks."""
    return metric.endswith("loss")


def fill(folder: Path) -> Path:
    """Write runs of two tasks, one of them on generated data, with a failed job, a damaged run and a baseline."""
    value = {("tiny", 0): 0.31, ("tiny", 0.2): 0.37, ("small", 0): 0.53, ("small", 0.2): 0.47}
    for (model, dropout), mean in value.items():
        for seed in (1, 2):
            accuracy = mean + 0.01 * (2 * seed - 3)
            make_run(
                folder,
                f"sweeps/grid/dropout-{dropout}_model-{model}_seed-{seed}",
                *(f"model={model}", f"dropout={dropout}", f"seed={seed}", "optimizer.lr=1e-3"),
                model=model,
                dropout=dropout,
                seed=seed,
                counts=COUNTS,
                metrics={"val/accuracy": accuracy, "val/loss": 1.7 - accuracy, "test/accuracy": accuracy - 0.1},
                parameters=1009 if model == "tiny" else 20_011,
                flops=int((1e9 if model == "tiny" else 3e10) * (1 + seed)),
                lines=a_history(11, scale=1 + mean),
            )
    make_run(folder, "sweeps/grid/seed-3", "optimizer.lr=1e30", seed=3, status="failed", reason=NASTY, metrics={})
    broken = make_run(folder, "stars/runs/now")
    (broken / "metrics.json").write_text("")
    make_baseline(folder, "stars/baseline/then", metrics={"val/accuracy": 0.43, "val/loss": 1.3}, parameters=503)
    names = {"task": "names", "optimized_metric": "val/loss", "metrics": {"val/loss": 2.25}, "source": "sample"}
    make_run(folder, "names/runs/one", "data.source=sample", texts=f"né\n\n{NASTY}", **names)
    return folder


def make_run(folder: Path, name: str, *overrides: str, **changes: Any) -> Path:
    """Make a finished run below a folder, and return its folder. changes: keys of metrics.json that differ.

    lines: the lines of the history; counts: of the confusion matrix; texts: the text samples.
    """
    lines, counts, texts = changes.pop("lines", None), changes.pop("counts", None), changes.pop("texts", None)
    path = folder / name
    (path / ".hydra").mkdir(parents=True)
    record = a_record(*overrides, **changes)
    (path / "metrics.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    write_history(path, a_history() if lines is None else lines)
    if counts is not None:
        write_confusion(path, counts)
    if texts is not None:
        (path / "samples").mkdir()
        (path / "samples" / "00000010.txt").write_text(texts, encoding="utf-8")
    return path


def make_baseline(folder: Path, name: str, **changes: Any) -> Path:
    """Make the folder of a baseline, which has no .hydra and a smaller record."""
    path = folder / name
    path.mkdir(parents=True)
    less = {"model": "tfidf", "dropout": None, "context_length": None, "run_key": None, "steps": None}
    record = a_record(**(less | {"tokens_per_second": None} | changes)) | {"chosen": {"C": 1.0}, "tried": {}}
    (path / "metrics.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    return path


def a_record(*overrides: str, **changes: Any) -> dict[str, Any]:
    """What metrics.json says of a finished run; source: where its data was from."""
    source = changes.pop("source", "local")
    record = {
        "task": "stars",
        "model": "tiny",
        "experiment": None,
        "dropout": 0.1,
        "context_length": 23,
        "seed": 1,
        "tags": [],
        "overrides": list(overrides),
        "status": "finished",
        "reason": None,
        "optimized_metric": "val/accuracy",
        "data": {"source": source, "path": "somewhere", "fingerprint": "f"},
        "parameters": 1009,
        "steps": 31,
        "seconds": {"start_up": 0.5, "fit": 7.0, "test": 0.3},
        "tokens_per_second": 211.0,
        "threads": 1,
        "checkpoint": "checkpoints/best.ckpt",
        "metrics": {"val/accuracy": 0.5, "val/loss": 1.25},
        "run_key": "k",
    }
    return record | changes


def a_history(count: int = 7, scale: float = 1.0) -> list[dict[str, Any]]:
    """Return lines of a history with falling losses."""
    lines: list[dict[str, Any]] = []
    for index in range(count):
        moment = {"step": 5 * index + 4, "seconds": 0.5 * index + 0.25, "epoch": 0}
        lines.append(moment | {"train/loss": scale / (index + 1)})
        lines.append(moment | {"val/loss": 1.1 * scale / (index + 1), "val/accuracy": 1 - 0.5 / (index + 1)})
    return lines


def write_history(run: Path, lines: Sequence[dict[str, Any]]) -> None:
    (run / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def write_confusion(run: Path, counts: Sequence[Sequence[int]], classes: Sequence[str] = CLASSES) -> Path:
    """Write the table that classifier/metrics.py writes, and return its path."""
    path = run / "confusion_matrix" / "validation.csv"
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["true", "predicted", "count", "share_of_true"])
        for true, row in zip(classes, counts, strict=True):
            for predicted, count in zip(classes, row, strict=True):
                writer.writerow([true, predicted, count, count / max(1, sum(row))])
    return path
