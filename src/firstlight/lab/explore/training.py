"""Figures of the curves of a training."""

from typing import TYPE_CHECKING

from firstlight.figures import Curve, plot_curves, style
from firstlight.kind.kind import Drawn, NothingToDrawError
from firstlight.kind.registry import KINDS
from firstlight.kind.subject import Subject
from firstlight.lit.losses import expected_loss

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]

UNITS = {"loss": "loss (nats)", "accuracy": "accuracy (share of correct predictions)", "bleu": "BLEU (0 to 100)"}
SECOND = ("accuracy", "perplexity", "bits_per_character")  # the first available one is drawn next to the loss
STAGES = {"train": ("training", style.ORANGE), "val": ("validation", style.BLUE)}  # labels and colors of the curves


def curves(subject: Subject) -> Drawn:
    """Return the figure of the loss, and of the optimized metric or the first available one of SECOND."""
    run = subject.run
    history = run.history
    there = {name.partition("/")[2] for name in history if name.startswith("val/")}
    optimized = str(subject.config.get("optimized_metric", "")).rpartition("/")[2]
    second = [name for name in (optimized, *SECOND) if name in there and name != "loss"]
    panels: dict[str, list[Curve]] = {}
    for metric in ["loss", *second[:1]]:
        if found := [curve for stage in STAGES if (curve := curve_of(history, stage, metric)) is not None]:
            panels[UNITS.get(metric, metric.replace("_", " "))] = found
    if not panels:
        raise NothingToDrawError(f"{run.folder.history_file.name} is missing or contains no loss")
    references = {}
    if KINDS[run.kind].cross_entropy:
        expected = expected_loss(len(run.metadata.get("class_names", ())), run.tokenizer.vocab_size)
        references = {UNITS["loss"]: (f"expected at initialization: {expected:.3f}", expected)}
    if not any(curve.label == STAGES["val"][0] for drawn in panels.values() for curve in drawn):
        note = "the training had no validation, so there is only its own curve"
        return Drawn(plot_curves(panels, title="Training", references=references), [note])
    return Drawn(plot_curves(panels, references=references))


def curve_of(history: "DataFrame", stage: str, metric: str) -> Curve | None:
    """Return the curve of a metric, or None. Training is that of the callback TrainingEvaluation if the run had it."""
    name = f"{stage}/{metric}"
    if stage == "train" and f"train/eval_{metric}" in history:
        name = f"train/eval_{metric}"
    if name not in history:
        return None
    points, (label, color) = history[["step", name]].dropna(), STAGES[stage]
    return Curve(label, points["step"].to_numpy(), points[name].to_numpy(), color)
