"""The losses of a sweep over sizes and budgets: which runs count for a scaling law, and the fit."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firstlight.errors import UserError
from firstlight.runs.summary import SEED, Run, shown

if TYPE_CHECKING:
    from firstlight.lab.reports.scaling_law import Losses, ScalingFit

FEWEST = 3  # sizes and budgets
LOSSES = ("loss", "bits_per_character")  # metrics that a sum of power laws describes
SAME_TEXTS = ("trainer.limit_val_batches", "model.causal")  # keys that must not differ, since the losses would
RATE = "lr-"  # the first part of the names of the curves of learning rates


@dataclass(frozen=True)
class Point:
    """A validation loss of a run, N and D. is_unfinished: whether the schedule of the rate had not ended."""

    run: Run
    parameters: int
    tokens: float
    loss: float
    is_unfinished: bool = False


@dataclass(frozen=True, eq=False)
class Scaling:
    """The fit of a scaling law to a sweep.

    points: the final losses to which the law was fitted; held_out: those that were not. others: further fits of the
    same sweep, by what is different. notes: sentences on what was left out.
    """

    task: str
    metric: str
    points: list[Point]
    held_out: list[Point]
    fit: "ScalingFit"
    others: dict[str, "ScalingFit"]
    notes: list[str]


def scaling(runs: Sequence[Run], metric: str | None, hold_out: Callable[[Run], bool], name: str) -> Scaling:
    """Fit the law to the finished runs of a sweep.

    metric: a validation loss; None: val/loss. hold_out: whether a run is left out of the fit and predicted. name: how
    the user named the held-out runs; "" for none.

    Raises UserError if the runs cannot be compared, or if they have too few sizes or budgets.
    """
    counted, metric = checked(runs, metric), metric or "val/loss"
    every, notes = best_of_each([final_point(run, metric) for run in counted])
    held_out = [each for each in every if name and hold_out(each.run)]
    points = [each for each in every if each not in held_out]
    if name and not held_out:
        values = ", ".join(sorted({value_of_size(each.run) for each in every}))
        raise UserError(f"--hold-out {name}: no finished run has these values; there are {values}")
    refuse_too_few(points, f" without --hold-out {name}" if name else "")
    from firstlight.lab.reports.scaling_law import fit_scaling_law  # imports SciPy

    fit = fit_scaling_law(losses_of(points))
    others: dict[str, ScalingFit] = {}
    if has_sizes_without_embeddings(points):
        others["N without embeddings"] = fit_scaling_law(losses_of(points, is_without_embeddings=True))
    if before := unfinished_points(points, metric):
        others[f"with {len(before)} losses before the decay"] = fit_scaling_law(losses_of([*points, *before]))
    return Scaling(str(points[0].run.task), metric, points, held_out, fit, others, notes)


def checked(runs: Sequence[Run], metric: str | None) -> list[Run]:
    """Return the finished trainings. Raises UserError if their losses cannot be compared."""
    counted = [run for run in runs if run.is_counted and not run.is_baseline]
    if not counted:
        raise UserError("--scaling: no run has finished; train a sweep, such as experiment=scaling/names")
    if metric is not None and not (metric.startswith("val/") and metric.rpartition("/")[2] in LOSSES):
        raise UserError(f"--metric {metric}: a scaling law describes a loss; choose val/loss or val/bits_per_character")
    differences: tuple[tuple[str, Callable[[Run], object]], ...] = (
        ("tasks", lambda run: run.task),
        ("kinds of data (data.source=sample and real)", lambda run: run.is_sample),
        ("data (fingerprints)", lambda run: run.fingerprint),
        ("validation splits", lambda run: sorted(run.split.items(), key=str)),
        ("sizes of the validation split", lambda run: run.sizes.get("validation")),
        *((f"values of {key}", lambda run, key=key: run.apart.get(key)) for key in SAME_TEXTS),
    )
    for what, value in differences:
        found: dict[str, Run] = {}
        for run in counted:
            found.setdefault(str(value(run)), run)
        if len(found) > 1:
            one, two = list(found.values())[:2]
            raise UserError(
                f"--scaling: the runs have {len(found)} different {what}, such as {one.folder} and {two.folder}; "
                "name the folder of one sweep"
            )
    return counted


def final_point(run: Run, metric: str) -> Point:
    """Return the loss of a run after its last step. Raises UserError if the run did not record it."""
    curve = run.curves.get(metric)
    if curve is None or not curve.values:
        known = ", ".join(sorted(name for name in run.curves if name.startswith("val/"))) or "no validation"
        raise UserError(f"{run.folder}: has no {metric}; it recorded {known}")
    if run.parameters is None or not run.tokens or not run.steps:
        raise UserError(f"{run.folder}: does not record its parameters, steps and tokens; train it again")
    if curve.steps[-1] + 1 < run.steps:
        raise UserError(
            f"{run.folder}: {metric} was last measured at step {curve.steps[-1] + 1:,} of {run.steps:,}, before the "
            "schedule had ended; train it again"
        )
    loss = curve.values[-1]
    if not math.isfinite(loss) or loss <= 0:
        raise UserError(f"{run.folder}: {metric} is {loss} at the end; move this run out of the folder")
    return Point(run, run.parameters, float(run.tokens), loss)


def best_of_each(points: Sequence[Point]) -> tuple[list[Point], list[str]]:
    """Return the lowest loss of each size, budget and seed, with a sentence if there were several."""
    best: dict[tuple[int, float, str], Point] = {}
    for point in points:
        key = (point.parameters, point.tokens, shown(point.run.keys.get(SEED)))
        if key not in best or point.loss < best[key].loss:
            best[key] = point
    left = len(points) - len(best)
    runs = "1 run" if left == 1 else f"{left} runs"
    notes = [f"Not fitted: {runs} with the size, budget and seed of a better one."] if left else []
    return sorted(best.values(), key=lambda each: (each.parameters, each.tokens)), notes


def refuse_too_few(points: Sequence[Point], where: str) -> None:
    """Raise UserError if there are too few sizes or budgets."""
    for what, found in (
        ("sizes", {point.parameters for point in points}),
        ("budgets of tokens", {int(point.tokens) for point in points}),
    ):
        if len(found) < FEWEST:
            listed = ", ".join(f"{each:,}" for each in sorted(found)) or "none"
            raise UserError(
                f"--scaling: the finished runs have {len(found)} {what}{where} ({listed}); a fit requires {FEWEST}"
            )


def has_sizes_without_embeddings(points: Sequence[Point]) -> bool:
    """Return whether the numbers of parameters without embeddings are known, and enough for a fit."""
    if any(point.run.embedding_parameters is None for point in points):
        return False
    sizes = {point.parameters - (point.run.embedding_parameters or 0) for point in points}
    return len(sizes) >= FEWEST and min(sizes) > 0


def unfinished_points(points: Sequence[Point], metric: str) -> list[Point]:
    """Return the losses of earlier validations at the full learning rate, after the warm-up and before the decay.

    Before the decay, runs that differ only in the budget are equal, so that each loss counts once.
    """
    found: dict[tuple[int, int, float], Point] = {}
    for point in points:
        run = point.run
        rates = next((curve for name, curve in run.curves.items() if name.startswith(RATE)), None)
        if rates is None:
            continue
        highest = max(rates.values)
        full = [step for step, rate in zip(rates.steps, rates.values, strict=True) if rate == highest]
        curve = run.curves[metric]
        for step, loss in zip(curve.steps, curve.values, strict=True):
            if full and full[0] <= step <= full[-1] and math.isfinite(loss):
                tokens = point.tokens * (step + 1) / (run.steps or 1)
                found.setdefault((point.parameters, step, loss), Point(run, point.parameters, tokens, loss, True))
    return list(found.values())


def losses_of(points: Sequence[Point], *, is_without_embeddings: bool = False) -> "Losses":
    """Return points as arrays."""
    import numpy as np

    from firstlight.lab.reports.scaling_law import Losses

    sizes = [
        point.parameters - ((point.run.embedding_parameters or 0) if is_without_embeddings else 0) for point in points
    ]
    numbers = {folder: number for number, folder in enumerate(dict.fromkeys(point.run.folder for point in points))}
    unfinished = np.array([point.is_unfinished for point in points])
    return Losses(
        np.array(sizes, dtype=float),
        np.array([point.tokens for point in points]),
        np.array([point.loss for point in points]),
        np.array([numbers[point.run.folder] for point in points]),
        unfinished if unfinished.any() else None,
    )


def value_of_size(run: Run) -> str:
    """Return the value of a run that names its size: of `scale`, else of `model`, else its number of parameters."""
    named = run.keys.get("scale", run.keys.get("model"))
    return f"{run.parameters:,}" if named is None else shown(named)
