"""Whether two runs have the same weights, histories and results, to the last bit."""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import torch


def assert_same_run(whole: Path, other: Path) -> None:
    for name in ("last", "best"):
        assert digest(whole, name) == digest(other, name), f"the weights of {name}.ckpt differ"
    assert curve(whole) == curve(other), "the histories differ"
    assert table(whole) == table(other), "the CSV files differ"
    results = [json.loads((run / "metrics.json").read_text())["metrics"] for run in (whole, other)]
    assert results[0] == results[1], "the results differ"


def digest(run: Path, name: str) -> str:
    """Return the hash of all weights of a checkpoint."""
    weights = torch.load(run / "checkpoints" / f"{name}.ckpt", weights_only=True)["state_dict"]
    found = hashlib.sha256()
    for key, value in sorted(weights.items()):
        found.update(key.encode() + value.contiguous().numpy().tobytes())
    return found.hexdigest()


def curve(run: Path) -> list[dict[str, Any]]:
    """Return the history without seconds and without the learning rate, which Lightning's monitor may skip."""
    lines = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    kept = [{key: value for key, value in line.items() if is_compared(key)} for line in lines]
    return [line for line in kept if line.keys() > {"step", "epoch"}]


def table(run: Path) -> list[dict[str, str]]:
    """Return the rows of csv/metrics.csv in the same way, without empty cells."""
    (path,) = (run / "csv").rglob("metrics.csv")
    with path.open(newline="") as file:
        rows = [
            {key: value for key, value in row.items() if value and is_compared(key)} for row in csv.DictReader(file)
        ]
    return [row for row in rows if row.keys() > {"step", "epoch"}]


def is_compared(key: str) -> bool:
    return "second" not in key and not key.startswith("lr-")
