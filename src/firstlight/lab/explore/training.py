"""Figures of the curves of one training, or of two trainings."""

from typing import TYPE_CHECKING, NamedTuple

from firstlight.figures import Curve, plot_curves, style
from firstlight.kind.kind import Drawn, NothingToDrawError
from firstlight.kind.registry import KINDS
from firstlight.kind.run import Run
from firstlight.kind.subject import Subject
from firstlight.lit.losses import expected_loss
from firstlight.runs.identity import flat

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

UNITS = {
    "loss": "loss (nats)",
    "accuracy": "accuracy (share of correct predictions)",
    "bleu": "BLEU (0 to 100)",
}
SECOND = ("accuracy", "perplexity", "bits_per_character")  # the first available one is drawn next to the loss
PLACES = ("paths", "data.cache_dir", "tags", "trainer.default_root_dir", "callbacks", "logger")  # ignored differences
MOST_KEYS = 6  # keys in the note on the differences of two runs
SPLITS = {"train": "training", "val": "validation"}


class Line(NamedTuple):
    """A curve to draw, of whatever metric."""

    history: "DataFrame"
    stage: str
    label: str
    color: str
    is_dashed: bool = False


def curves(subject: Subject) -> Drawn:
    """Return the figure of the loss and the optimized metric of a run, or with --compare of two runs."""
    if subject.other is not None:
        return _of_two_runs(subject, subject.other)
    history = history_of(subject.run)
    lines = [Line(history, "train", SPLITS["train"], style.ORANGE), Line(history, "val", SPLITS["val"], style.BLUE)]
    panels = _panels(subject, lines)
    if not panels:
        raise NothingToDrawError(f"{subject.run.folder.history_file} contains no loss")
    run = subject.run
    references = {}
    if KINDS[run.kind].cross_entropy:
        expected = expected_loss(len(run.metadata.get("class_names", ())), run.tokenizer.vocab_size)
        references = {UNITS["loss"]: (f"expected at initialisation: {expected:.3f}", expected)}
    if not any(curve.label == SPLITS["val"] for drawn in panels.values() for curve in drawn):
        note = "the training had no validation, so there is only its own curve"
        return Drawn(plot_curves(panels, title="Training", references=references), [note])
    return Drawn(plot_curves(panels, references=references))


def _of_two_runs(subject: Subject, other: Run) -> Drawn:
    names, notes = names_of(subject.run, other)
    of_runs = zip((subject.run, other), names, (style.BLUE, style.VERMILION), strict=True)
    lines = [
        Line(history, stage, f"{name}, {split}", color, is_dashed=stage == "train")
        for history, name, color in ((history_of(run), name, color) for run, name, color in of_runs)
        for stage, split in SPLITS.items()
    ]
    panels = {
        unit: drawn for unit, drawn in _panels(subject, lines).items() if len({curve.color for curve in drawn}) == 2
    }
    if not panels:
        raise NothingToDrawError(f"{subject.run.folder.path} and {other.folder.path} have no metric in common")
    return Drawn(plot_curves(panels, title=f"{names[0]} against {names[1]}"), notes)


def history_of(run: Run) -> "DataFrame":
    """Return the history of a run. Raises NothingToDrawError if there are no metrics."""
    history = run.history
    if not any(name.startswith(("train/", "val/")) for name in history):
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


def _panels(subject: Subject, lines: list[Line]) -> dict[str, list[Curve]]:
    """Return the curves of the loss, and of the optimized metric or the first available one of SECOND, by unit."""
    there = {name.partition("/")[2] for name in lines[0].history if name.startswith("val/")}
    chosen = str(subject.config.get("optimized_metric", "")).rpartition("/")[2]
    second = [name for name in (chosen, *SECOND) if name in there and name != "loss"]
    panels = {}
    for metric in ["loss", *second[:1]]:
        if found := [curve for line in lines if (curve := curve_of(line, metric)) is not None]:
            panels[UNITS.get(metric, metric.replace("_", " "))] = found
    return panels


def curve_of(line: Line, metric: str) -> Curve | None:
    """Return the curve of a metric, or None. Training is that of the callback TrainingEvaluation if the run had it."""
    name = f"{line.stage}/{metric}"
    if line.stage == "train" and f"train/eval_{metric}" in line.history:
        name = f"train/eval_{metric}"
    if name not in line.history:
        return None
    points = line.history[["step", name]].dropna()
    return Curve(line.label, points["step"].to_numpy(), points[name].to_numpy(), line.color, line.is_dashed)
