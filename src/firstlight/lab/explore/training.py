"""Figures of the curves of one training, or of two trainings."""

from typing import Any

import numpy as np

from firstlight.figures import Curve, plot_curves, style
from firstlight.kind.results import Drawn, NothingToDrawError
from firstlight.kind.run import Run
from firstlight.kind.subject import Subject
from firstlight.runs.history import read_history
from firstlight.runs.identity import flat

UNITS = {
    "loss": "loss (nats)",
    "accuracy": "accuracy (share of correct predictions)",
    "perplexity": "perplexity",
    "bleu": "BLEU (0 to 100)",
    "bits_per_character": "bits per character",
}
SECOND = ("accuracy", "perplexity", "bits_per_character")  # the first available one is drawn next to the loss
PLACES = ("paths", "data.cache_dir", "tags", "trainer.default_root_dir", "callbacks", "logger")  # ignored differences
MOST_KEYS = 6  # keys in the note on the differences of two runs
SPLITS = {"train": "training", "val": "validation"}


def curves(subject: Subject) -> Drawn:
    """Return the figure of the loss and the optimized metric of a run."""
    history = history_of(subject.run)
    panels: dict[str, list[Curve]] = {}
    for metric in _metrics(subject, history):
        lines = [
            line
            for stage, color in (("train", style.ORANGE), ("val", style.BLUE))
            if (line := _curve(history, stage, metric, SPLITS[stage], color)) is not None
        ]
        if lines:
            panels[UNITS.get(metric, metric.replace("_", " "))] = lines
    if not panels:
        raise NothingToDrawError(f"{subject.run.folder.history_file} contains no loss")
    if not any(line.label == SPLITS["val"] for lines in panels.values() for line in lines):
        note = "the training had no validation, so there is only its own curve"
        return Drawn(plot_curves(panels, title="Training"), [note])
    return Drawn(plot_curves(panels))


def comparison(subject: Subject) -> Drawn:
    """Return the figure of the loss and the optimized metric of two runs."""
    assert subject.other is not None
    runs = (subject.run, subject.other)
    histories = [history_of(run) for run in runs]
    names, notes = names_of(*runs)
    panels: dict[str, list[Curve]] = {}
    for metric in _metrics(subject, histories[0]):
        lines = [
            line
            for history, name, color in zip(histories, names, (style.BLUE, style.VERMILION), strict=True)
            for stage in SPLITS
            if (line := _curve(history, stage, metric, f"{name}, {SPLITS[stage]}", color, dashed=stage == "train"))
            is not None
        ]
        if {line.color for line in lines} == {style.BLUE, style.VERMILION}:
            panels[UNITS.get(metric, metric.replace("_", " "))] = lines
    if not panels:
        raise NothingToDrawError(f"{runs[0].folder.path} and {runs[1].folder.path} have no metric in common")
    return Drawn(plot_curves(panels, title=f"{names[0]} against {names[1]}"), notes)


def history_of(run: Run) -> list[dict[str, Any]]:
    """Return the lines of a run's history. Raises NothingToDrawError if there are no metrics."""
    history = read_history(run.folder.history_file)
    if not any(name.startswith(("train/", "val/")) for line in history for name in line):
        raise NothingToDrawError(f"{run.folder.history_file} is missing or contains no metrics")
    return history


def names_of(first: Run, second: Run) -> tuple[list[str], list[str]]:
    """Return names of two runs, and notes. A name is a setting that differs, preferably dropout, or the folder."""
    configs = [flat(run.config) for run in (first, second)]
    differing = [
        key
        for key in configs[0]
        if key in configs[1] and configs[0][key] != configs[1][key] and not key.startswith(PLACES)
    ]
    keys = [key for key in differing if "." not in key or key.rpartition(".")[2] not in differing]
    if not keys:
        return [run.folder.path.name for run in (first, second)], []
    shown = "dropout" if "dropout" in keys else keys[0]
    others = ", ".join(keys[:MOST_KEYS]) + (f" and {len(keys) - MOST_KEYS} more" if len(keys) > MOST_KEYS else "")
    notes = [f"the runs differ in {others}"] if len(keys) > 1 else []
    return [f"{shown}={config[shown]}" for config in configs], notes


def _metrics(subject: Subject, history: list[dict[str, Any]]) -> list[str]:
    """Return the loss and a second metric: the optimized one, or the first available one of SECOND."""
    there = {name.partition("/")[2] for line in history for name in line if name.startswith("val/")}
    chosen = str(subject.config.get("optimized_metric", "")).rpartition("/")[2]
    second = [name for name in (chosen, *SECOND) if name in there and name != "loss"]
    return ["loss", *second[:1]]


def _curve(
    history: list[dict[str, Any]], stage: str, metric: str, label: str, color: str, *, dashed: bool = False
) -> Curve | None:
    """Return the curve of a metric, or None. Training is that of the callback TrainingEvaluation if the run had it."""
    name = f"{stage}/{metric}"
    if stage == "train" and any(f"train/eval_{metric}" in line for line in history):
        name = f"train/eval_{metric}"
    points = [(line["step"], line[name]) for line in history if name in line]
    if not points:
        return None
    steps, values = zip(*points, strict=True)
    return Curve(label, np.array(steps), np.array(values), color, dashed)
