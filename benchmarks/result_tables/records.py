"""Records: what the page needs of a run, as a small JSON file that is part of the repository.

A record has the command, the metrics, the parameters, the training data seen, the processor time, the commit, the
versions and the data. For each evaluation it has what paired tests need, the units: whether each text was classified
correctly (one bit per text), the sums of the loss over 100 blocks of a text, or the counts of BLEU over 100 blocks of
sentences.
"""

import csv
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from firstlight.runs.folder import write_atomically
from firstlight.runs.predictions import Predictions, read_predictions
from result_tables.folds import folds_record, waiting_runs
from result_tables.runs import MeasurementError, Record, Run
from result_tables.sweeps import jobs_of, sweep_record, with_fits

BLOCKS = 100  # of a text, or of sentences, in a record
LIST = re.compile(r"\[[^][{}]*\]")  # without lists or objects in it
STAGES = {"validation": "val", "test": "test", "other": "other"}  # the names of splits in the metrics of a run
TRANSLATIONS = {"translation": "bleu", "translation_beam4": "bleu_beam4"}  # columns of translations.csv


def file_of(run: Run, measured: Path) -> Path:
    """Return the file of the record of a run. measured: the folder of all records."""
    return measured / run.place.with_name(f"{run.place.name}.json")


def read_record(run: Run, measured: Path) -> Record | None:
    """Return the record of a run; None if there is none, or only one of another command."""
    file = file_of(run, measured)
    record = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    return record if record and record["command"] == run.command else None


def missing_runs(run: Run, measured: Path) -> int:
    """Return how many trainings or counts a record lacks: 0 or 1, or the number of jobs of a sweep."""
    record = read_record(run, measured)
    if run.line.folds is not None:
        return waiting_runs(run.line, record)
    if run.line.sweep is None:
        return int(record is None)
    return len(jobs_of(run.line).keys() - (set() if record is None else record["jobs"].keys()))


def write_record(run: Run, evaluations: Sequence[str], measured: Path) -> None:
    """Make the record of a finished run. It is evaluated if its folder lacks what it predicted for each text."""
    if run.line.folds is not None:
        pooled = folds_record(run)
        refuse_other_source(run, pooled["data"])
        _write(pooled, file_of(run, measured))
        return
    if run.line.sweep is not None:
        record = sweep_record(run, read_record(run, measured))
        if record is None:
            raise MeasurementError(f"{run.folder} has no finished job")
        refuse_other_source(run, record["data"])
        _write(with_fits(record, run.line), file_of(run, measured))
        return
    found = run.read()
    if run.line.baseline is not None:
        evaluated = {name: of_baseline(run, found, name) for name in evaluations}
    elif run.line.evaluate is not None:
        folder = run.evaluate(run.typed[1:])
        evaluated = {name: of_folder(folder) for name in evaluations}
    else:
        evaluated = {name: of_training(run, found, name) for name in evaluations}
    if lacking := [name for name, each in evaluated.items() if each["units"] is None]:
        raise MeasurementError(f"{run.folder} has no predictions for {lacking[0]}; remove it to measure again")
    data = {key: found["data"].get(key) for key in ("source", "fingerprint", "rows", "tokens")}
    refuse_other_source(run, data)
    refuse_other_data(run, data, measured)
    git = found.get("git") or {}
    record = {
        "command": run.command,
        "seed": run.seed,
        "parameters": found["parameters"],
        "tokens_seen": found["tokens"],
        "processor_minutes": round(found["seconds"]["fit_processor"] / 60, 2),
        "commit": git.get("commit"),
        "modified": git.get("modified"),
        "versions": found["versions"],
        "run_key": found.get("run_key"),
        "data": {key: value for key, value in data.items() if value is not None},
        "references": found.get("references"),
        "evaluations": evaluated,
    }
    _write(record, file_of(run, measured))


def refuse_other_source(run: Run, data: Record) -> None:
    """Raise MeasurementError for numbers of generated data, which must not stand beside those of real data.

    The data of a line with `generated` must be generated.
    """
    if data["source"] == "sample" and not run.line.generated:
        raise MeasurementError(
            f"{run.folder} was trained on generated data, because the real data was not found; set FIRSTLIGHT_DATA, "
            "and remove the folder to measure again"
        )
    if data["source"] != "sample" and run.line.generated:
        raise MeasurementError(
            f"{run.folder} was trained on real data ({data['source']}), and its line in the plan has generated: true; "
            "remove one of them"
        )


def refuse_other_data(run: Run, data: Record, measured: Path) -> None:
    """Raise MeasurementError if another seed of the line was measured on other data."""
    for line_run in (replace(run, seed=seed, place=run.place.with_name(f"seed-{seed}")) for seed in run.line.seeds):
        other = read_record(line_run, measured) if run.seed is not None else None
        if other is not None and other["data"].get("fingerprint") != data["fingerprint"]:
            raise MeasurementError(
                f"{run.folder} has other data than {file_of(line_run, measured)}; measure all seeds on the same data"
            )


def _write(record: Record, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, ensure_ascii=False)
    write_atomically(file, LIST.sub(lambda found: " ".join(found[0].split()), text) + "\n")  # a list is one line


def of_training(run: Run, found: Record, name: str) -> Record:
    """Return an evaluation of a training: that of its end if it saved the predictions, else that of evaluate.py."""
    predictions = read_predictions(run.folder / "predictions" / f"{name}.npz")
    if predictions is not None and predictions.is_of_classes:  # evaluate.py also measures the calibration error
        metrics = of_folder(run.evaluate(["--split", name]))["metrics"] | metrics_of(found, STAGES[name])
        return {"metrics": metrics, "units": units_of_predictions(predictions)}
    split, *more = name.split("-")
    options = [part for each in more for part in ("--stride", each.removeprefix("stride"))]
    evaluated = of_folder(run.evaluate(["--split", split, *options]))
    if evaluated["units"] is None and predictions is not None:  # evaluate.py saves no losses of masked words
        evaluated["units"] = units_of_predictions(predictions)
    return evaluated


def of_folder(folder: Path) -> Record:
    """Return an evaluation that evaluate.py made. Its units are None if the folder has only the metrics."""
    found = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    metrics = {name.partition("/")[2]: value for name, value in found["metrics"].items()}
    units = None
    if (predictions := read_predictions(folder / "predictions.npz")) is not None:
        units = units_of_predictions(predictions)
    elif (folder / "translations.csv").is_file():
        units = units_of_translations(folder / "translations.csv")
    elif (folder / "losses.npy").is_file():
        units = units_of_losses(np.load(folder / "losses.npy"), found["data"]["fingerprint"], found["split"])
    return {"metrics": metrics, "units": units}


def of_baseline(run: Run, found: Record, name: str) -> Record:
    """Return an evaluation of a baseline. For n-grams, an evaluation with a stride reads the complete text."""
    split, *is_whole = name.split("-")
    stage = STAGES[split]
    predictions = read_predictions(run.results_folder / "predictions" / f"{split}.npz")
    if predictions is not None:
        return {"metrics": metrics_of(found, stage), "units": units_of_predictions(predictions)}
    metrics = metrics_of(found, stage)
    if not is_whole:
        metrics = {key.removeprefix("windowed_"): value for key, value in metrics.items() if "windowed_" in key}
    losses = np.load(run.results_folder / "losses" / f"{split}{'' if is_whole else '_windowed'}.npy")
    return {"metrics": metrics, "units": units_of_losses(losses, found["data"]["fingerprint"], split)}


def metrics_of(found: Record, stage: str) -> dict[str, float]:
    """Return the metrics of `val`, `test` or `other` without this prefix."""
    return {key.partition("/")[2]: value for key, value in found["metrics"].items() if key.startswith(f"{stage}/")}


def units_of_predictions(predictions: Predictions) -> Record:
    """Return the units of a classifier, or the blocks of rows of another network."""
    if predictions.is_of_classes:
        bits = np.packbits(predictions.correct.astype(bool)).tobytes().hex()
        return {"key": predictions.key, "count": len(predictions.correct), "correct": bits}
    return blocks(predictions.losses.astype(float), predictions.tokens, predictions.key)


def units_of_losses(losses: NDArray[np.float32], fingerprint: str, split: str) -> Record:
    """Return the blocks of a text. losses: (tokens,)."""
    key = f"{fingerprint} {split} {len(losses)}"
    return blocks(losses.astype(float), np.ones(len(losses), np.int64), key)


def blocks(losses: NDArray[np.float64], tokens: NDArray[np.int64], key: str) -> Record:
    """Return the sums of losses and tokens over at most BLOCKS blocks of units. losses, tokens: (units,)."""
    starts = _starts(len(losses))
    sums = [round(each, 3) for each in np.add.reduceat(losses, starts).tolist()]
    return {"key": key, "tokens": np.add.reduceat(tokens, starts).tolist(), "losses": sums}


def units_of_translations(file: Path) -> Record:
    """Return the counts of BLEU over blocks of sentences, for greedy translations and for those of a beam.

    A row has the numbers of matching n-grams of 1 to 4 tokens, those of all n-grams, and the lengths of the translation
    and of the reference.
    """
    from sacrebleu.metrics import BLEU

    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    references = [row["reference"] for row in rows]
    bleu = BLEU(effective_order=True)  # changes only the score of a sentence, which is not used
    units: Record = {"key": hashlib.sha256("\n".join(references).encode()).hexdigest()[:16]}
    for column, metric in TRANSLATIONS.items():
        if column in rows[0]:
            scores = [bleu.sentence_score(row[column], [row["reference"]]) for row in rows]
            counts = np.array([[*each.counts, *each.totals, each.sys_len, each.ref_len] for each in scores])
            units[metric] = np.add.reduceat(counts, _starts(len(counts))).astype(int).tolist()
    return units


def correct_of(units: Record) -> NDArray[np.bool_]:
    """Return whether each text was classified correctly, (texts,)."""
    packed = np.frombuffer(bytes.fromhex(units["correct"]), np.uint8)
    return np.unpackbits(packed, count=units["count"]).astype(bool)


def _starts(count: int) -> NDArray[np.int64]:
    return np.arange(0, count, -(-count // BLOCKS))
