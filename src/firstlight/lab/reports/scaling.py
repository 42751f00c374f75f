"""Sections of a report about size: the scaling law of a sweep over sizes and budgets, and learning curves over rows."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from firstlight.errors import UserError
from firstlight.lab.reports.boards import Direction, Group, boards, notes_of, short_name, swept_keys
from firstlight.lab.reports.tables import Section, Table, spread_text
from firstlight.lab.reports.verdicts import Load, by_unit, compare, crossing_text, verdicts
from firstlight.runs.summary import SAMPLE_MARK, SEED, Run, shown

if TYPE_CHECKING:
    from firstlight.lab.reports.scaling_law import ScalingFit, ScalingLaw
    from firstlight.lab.reports.significance import Estimate

FEWEST = 3  # sizes and budgets
UNITS = {"loss": "nats per token", "bits_per_character": "bits per character"}  # of the metrics that the law describes
FIGURE = "scaling_fit.png"
COEFFICIENTS = {  # the attribute of the law with the value of each
    "E": "irreducible",
    "A": "size_factor",
    "α": "size_exponent",
    "B": "data_factor",
    "β": "data_exponent",
    "a of N* ∝ C^a": "size_share",
}
FRONTIER = 6  # rows of the table
ROWS = "data.max_train_rows"


@dataclass(frozen=True)
class Point:
    """The final validation loss of a run, N and D."""

    run: Run
    parameters: int
    tokens: int
    loss: float

    @property
    def size(self) -> str:
        """The value that names the size: of `scale`, else of `model`, else the number of parameters."""
        named = self.run.keys.get("scale", self.run.keys.get("model"))
        return f"{self.parameters:,}" if named is None else shown(named)

    @property
    def compute(self) -> int:
        """C, the floating-point operations of the training, about 6 N D."""
        return 6 * self.parameters * self.tokens


@dataclass(frozen=True, eq=False)
class Scaling:
    """The fit of a scaling law to a sweep.

    points: the losses to which the law was fitted; held_out: those that were not. left_out: the number of runs with the
    size, budget and seed of a better one.
    """

    metric: str
    points: list[Point]
    held_out: list[Point]
    fit: "ScalingFit"
    left_out: int

    def error(self, point: Point) -> float:
        """Return the relative error of the law for a point, in percent."""
        return 100 * (float(self.fit.law.loss(point.parameters, point.tokens)) / point.loss - 1)


def scaling(runs: Sequence[Run], metric: str | None, hold_out: Callable[[Run], bool], name: str) -> Scaling:
    """Fit the law to the finished runs of a sweep.

    metric: a validation loss; None: val/loss. hold_out: whether a run is left out of the fit and predicted. name: how
    the user named the held-out runs; "" for none. A name such as C>1e12 is all runs with more compute.

    Raises UserError if the runs cannot be compared, or if they have too few sizes or budgets.
    """
    metric = metric or "val/loss"
    counted = checked(runs, metric)
    every = best_of_each([final_point(run, metric) for run in counted])
    limit = _limit(name)
    is_above = [hold_out(each.run) if limit is None else each.compute > limit for each in every]
    held_out = [point for point, is_out in zip(every, is_above, strict=True) if name and is_out]
    points = [point for point in every if point not in held_out]
    if name and not held_out:
        values = ", ".join(sorted({point.size for point in every}))
        raise UserError(f"--hold-out {name}: no finished run has these values; there are {values}")
    sizes, budgets = {point.parameters for point in points}, {point.tokens for point in points}
    if min(len(sizes), len(budgets)) < FEWEST:
        where = f" without --hold-out {name}" if name else ""
        problem = f"the finished runs have {len(sizes)} sizes and {len(budgets)} budgets of tokens{where}"
        raise UserError(f"--scaling: {problem}; a fit requires {FEWEST} of each")
    from firstlight.lab.reports.scaling_law import fit_scaling_law  # imports SciPy

    parameters, tokens, losses = zip(*((point.parameters, point.tokens, point.loss) for point in points), strict=True)
    return Scaling(metric, points, held_out, fit_scaling_law(parameters, tokens, losses), len(counted) - len(every))


def _limit(name: str) -> float | None:
    """Return the compute in a name such as C>1e12; None for other names. Raises UserError for one that is no number."""
    if not name.startswith("C>"):
        return None
    try:
        return float(name[2:])
    except ValueError:
        raise UserError(f"--hold-out {name}: {name[2:]} is not a number; write one such as C>1e12") from None


def checked(runs: Sequence[Run], metric: str) -> list[Run]:
    """Return the finished trainings. Raises UserError if their losses cannot be compared."""
    counted = [run for run in runs if run.is_counted and not run.is_baseline]
    if not counted:
        raise UserError("--scaling: no run has finished; train a sweep, such as experiment=scaling/names")
    if not (metric.startswith("val/") and metric.rpartition("/")[2] in UNITS):
        raise UserError(f"--metric {metric}: a scaling law describes a loss; choose val/loss or val/bits_per_character")
    kinds: dict[str, Run] = {}
    for run, note in zip(counted, notes_of(counted), strict=True):
        kinds.setdefault(", ".join(filter(None, (run.task, SAMPLE_MARK * run.is_sample, note))), run)
    if len(kinds) > 1:
        one, two = [f"{run.folder} ({kind})" for kind, run in kinds.items()][:2]
        raise UserError(f"--scaling: {one} and {two} cannot be compared; name the folder of one sweep")
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
        problem = f"{metric} was last measured at step {curve.steps[-1] + 1:,} of {run.steps:,}"
        raise UserError(f"{run.folder}: {problem}, before the schedule had ended; train it again")
    loss = curve.values[-1]
    if not math.isfinite(loss) or loss <= 0:
        raise UserError(f"{run.folder}: {metric} is {loss} at the end; move this run out of the folder")
    return Point(run, run.parameters, run.tokens, loss)


def best_of_each(points: Sequence[Point]) -> list[Point]:
    """Return the lowest loss of each size, budget and seed, sorted by size and budget."""
    best: dict[tuple[int, int, str], Point] = {}
    for point in sorted(points, key=lambda point: point.loss):
        best.setdefault((point.parameters, point.tokens, shown(point.run.keys.get(SEED))), point)
    return sorted(best.values(), key=lambda point: (point.parameters, point.tokens))


def section_of(found: Scaling, folder: Path) -> Section:
    """Return the section of a report, and draw its figure below a folder."""
    return Section("Scaling law", sentences(found), list(tables(found)), [draw(found, folder)])


def sentences(found: Scaling) -> list[str]:
    """Return what the fit says, the law first."""
    law = found.fit.law
    sizes, errors = [point.parameters for point in found.points], [abs(found.error(point)) for point in found.points]
    grows = found.fit.interval(lambda each: each.size_share)
    text = [
        f"{_formula(law)}, fitted to {len(found.points)} runs of {min(sizes):,} to {max(sizes):,} parameters N. "
        f"Its error is {fmean(errors):.2f}% on average and {max(errors):.2f}% at most.",
        f"Compute-optimal: N* grows as C^{interval_text(grows, 2)}, and D* as C^{1 - grows.value:.2f}; C = 6 N D."
        if law.has_optimum
        else "There is no compute-optimal size, because the loss does not fall with both N and D in these runs.",
    ]
    if found.held_out:
        predicted = [found.fit.prediction(point.parameters, point.tokens) for point in found.held_out]
        inside = sum(each.low <= point.loss <= each.high for each, point in zip(predicted, found.held_out, strict=True))
        count, mean = len(predicted), fmean(abs(found.error(point)) for point in found.held_out)
        seen = f"{inside} of {count} measured losses are in its 95% interval"
        text.append(f"Held out and predicted: {count} runs. The prediction is off by {mean:.2f}% on average; {seen}.")
        if guesses := [(guess, point.loss) for point in found.held_out if (guess := _last_loss(found, point))]:
            error = fmean(100 * abs(guess / loss - 1) for guess, loss in guesses)
            simplest = "The lowest fitted loss with at most as many parameters and tokens"
            text[-1] += f" {simplest} would be off by {error:.2f}%."
    if found.left_out:
        runs = "1 run" if found.left_out == 1 else f"{found.left_out} runs"
        text.append(f"Not fitted: {runs} with the size, budget and seed of a better one.")
    return text


def _last_loss(found: Scaling, point: Point) -> float | None:
    """Return the lowest fitted loss with at most the parameters and tokens of a point: the guess of no change."""
    fits = [each for each in found.points if each.parameters <= point.parameters and each.tokens <= point.tokens]
    return min((each.loss for each in fits), default=None)


def _formula(law: "ScalingLaw") -> str:
    return (
        f"L(N, D) = {law.irreducible:.3f} + {law.size_factor:.4g} / N^{law.size_exponent:.3f} + "
        f"{law.data_factor:.4g} / D^{law.data_exponent:.3f}"
    )


def tables(found: Scaling) -> Iterator[Table]:
    """Yield the tables of the coefficients, the frontier, the held-out runs and the fitted runs."""
    rows = [(name, interval_text(found.fit.interval(attrgetter(each)), 3)) for name, each in COEFFICIENTS.items()]
    yield Table("Coefficients", ("coefficient", "value [95% interval]"), rows)
    if found.fit.law.has_optimum:
        columns = ("C in FLOP", "N*", "D*", "loss [95% interval]")
        yield Table("Compute-optimal frontier", columns, list(_frontier(found)))
    headers = ("size", "N", "D", "predicted [95% interval]", "measured", "relative error")
    for title, points in (("Held out: predicted and measured", found.held_out), ("Fitted and measured", found.points)):
        if points:
            yield Table(title, headers, [_row(found, point) for point in points])


def _frontier(found: Scaling) -> Iterator[list[str]]:
    """Yield the rows of the frontier. Those outside the sizes and budgets of the fit are marked."""
    sizes, budgets = [point.parameters for point in found.points], [point.tokens for point in found.points]
    computes = [point.compute for point in (*found.points, *found.held_out)]
    low, high = math.log(min(computes)), math.log(max(computes))
    for place in range(FRONTIER):
        compute = math.exp(low + (high - low) * place / (FRONTIER - 1))
        size, tokens = found.fit.law.optimum(compute)
        loss = found.fit.interval(lambda law, compute=compute: float(law.loss(*law.optimum(compute))))  # type: ignore[misc]
        is_inside = min(sizes) <= size <= max(sizes) and min(budgets) <= tokens <= max(budgets)
        shown_loss = interval_text(loss, 3) + ("" if is_inside else " (extrapolated)")
        yield [f"{compute:.1e}", _rounded(size), _rounded(tokens), shown_loss]


def _row(found: Scaling, point: Point) -> list[str]:
    predicted = found.fit.prediction(point.parameters, point.tokens)
    name, size = f"{point.size}, seed {shown(point.run.keys.get(SEED))}", f"{point.parameters:,}"
    losses = interval_text(predicted, 3), f"{point.loss:.3f}", f"{found.error(point):+.2f}%"
    return [name, size, _rounded(point.tokens), *losses]


def interval_text(estimate: "Estimate", digits: int) -> str:
    """Return an estimate with its interval, such as `0.523 [0.507, 0.541]`; large numbers with 3 significant digits."""

    def text(value: float) -> str:
        return f"{value:.{digits}f}" if abs(value) < 100 else _rounded(value)

    return f"{text(estimate.value)} [{text(estimate.low)}, {text(estimate.high)}]"


def _rounded(value: float) -> str:
    """Return a number with three significant digits, such as 4,100,000 or 38,700; a very large one as 1e+30."""
    return f"{value:.0e}" if value >= 1e15 else f"{float(f'{value:.3g}'):,.0f}"


def draw(found: Scaling, folder: Path) -> Path:
    """Draw the losses and the law below a folder, and return the path of the figure."""
    import numpy as np

    from firstlight.figures import plot_scaling_fit, save
    from firstlight.figures.style import mark_sample

    points = [*found.points, *found.held_out]
    size, tokens, loss = np.array([(each.parameters, each.tokens, each.loss) for each in points], dtype=float).T
    law, held_out = found.fit.law, np.arange(len(points)) >= len(found.points)
    unit, title = f"validation loss ({UNITS[found.metric.rpartition('/')[2]]})", f"Scaling law of {points[0].run.task}"
    formula = re.sub(r"\^(-?[\d.]+)", r"^{\1}", f"${_formula(law)}$")  # with braces around exponents, it is mathtext
    figure = plot_scaling_fit(size, tokens, loss, law.loss, held_out=held_out, unit=unit, title=title, formula=formula)
    if points[0].run.is_sample:
        mark_sample(figure)
    return save(figure, folder / FIGURE)


def learning_curves(runs: Sequence[Run], metric: str | None, falls: Direction, load: Load, folder: Path) -> Section:
    """Return the section on a metric against the number of training rows, and draw its figure below a folder.

    Each setting and each baseline with several numbers of rows is a line. The best one at the largest number of rows is
    compared with the others. metric: a validation metric; None: the one that most runs optimized. Raises UserError if
    the runs cannot be compared, or no setting has two numbers of rows.
    """
    keys = dict.fromkeys((*swept_keys([run for run in runs if run.is_counted]), ROWS))
    found = [board for board in boards(runs, falls, metric, [*keys]) if any(group.counted for group in board.groups)]
    if len(found) > 1:
        problem = f"{found[0].name} and {found[1].name} cannot be compared"
        raise UserError(f"--learning-curves: {problem}; name the folder of one sweep")
    every: dict[str, dict[int, Group]] = {}
    for group in sorted((each for board in found for each in board.groups if each.counted), key=_training_rows):
        name = short_name({key: value for key, value in group.keys.items() if key != ROWS})
        every.setdefault(name, {})[_training_rows(group)] = group
    lines = {name: line for name, line in every.items() if len(line) > 1}
    if not lines:
        remedy = f"train a sweep over several, such as {ROWS}=1000,3000,10000"
        raise UserError(f"--learning-curves: no setting has two numbers of training rows; {remedy}")
    measured, sizes = str(found[0].metric), sorted({size for line in lines.values() for size in line})
    first = min((name for name in lines if sizes[-1] in lines[name]), key=lambda name: lines[name][sizes[-1]].rank or 0)
    pairs = [(name, size) for name in lines if name != first for size in lines[name] if size in lines[first]]
    units = {name: {size: by_unit(group.counted) for size, group in line.items()} for name, line in lines.items()}
    compared = [compare(units[first][size], units[name][size], measured, load) for name, size in pairs]
    judged = verdicts(compared, falls=found[0].falls)
    text = [f"{name} has one number of training rows, and no line." for name in every if name not in lines]
    for name in (name for name in lines if name != first):
        at = {size: verdict for (other, size), verdict in zip(pairs, judged, strict=True) if other == name}
        text.append(crossing_text(first, name, at))
    spreads = {name: {size: group.spreads[measured] for size, group in line.items()} for name, line in lines.items()}
    rows = [[f"{size:,}", *(spread_text(spreads[name].get(size)) for name in lines)] for size in sizes]
    table, title = Table(measured, ["training rows", *lines], rows), f"Learning curves of {found[0].name}"
    from firstlight.figures import plot_learning_curves, save

    points = {name: [(n, each.mean, each.half_width) for n, each in line.items()] for name, line in spreads.items()}
    dashed = [name for name in lines if all(group.counted[0].is_baseline for group in lines[name].values())]
    figure = plot_learning_curves(points, unit=measured, dashed=dashed, title=title)
    return Section(title, text, [table], [save(figure, folder / "learning_curves.png")])


def _training_rows(group: Group) -> int:
    return group.counted[0].sizes.get("train", 0)
