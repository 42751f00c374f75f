"""What the fit of a scaling law says, in sentences and tables."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from firstlight.lab.reports.scaling import Point, Scaling, value_of_size
from firstlight.lab.reports.tables import Section, Table
from firstlight.runs.summary import SEED, shown

if TYPE_CHECKING:
    from firstlight.lab.reports.scaling_law import ScalingLaw
    from firstlight.lab.reports.significance import Estimate

COEFFICIENTS: "tuple[tuple[str, Callable[[ScalingLaw], float]], ...]" = (
    ("E", lambda law: law.irreducible),
    ("A", lambda law: law.size_factor),
    ("α", lambda law: law.size_exponent),
    ("B", lambda law: law.data_factor),
    ("β", lambda law: law.data_exponent),
)
FRONTIER = 6  # rows of the table
LARGEST_WRITTEN = 1e15


def section_of(found: Scaling, images: Sequence[Path]) -> Section:
    """Return the section of a report. images: the figures."""
    return Section("Scaling law", sentences(found), tables(found), images)


def sentences(found: Scaling) -> list[str]:
    """Return what the fit says, the law first."""
    law, fit = found.fit.law, found.fit
    grows = fit.interval(lambda each: each.size_share)
    sizes = [point.parameters for point in found.points]
    errors = [abs(fitted_error(found, point)) for point in found.points]
    text = [
        f"L(N, D) = {law.irreducible:.3f} + {law.size_factor:.4g} / N^{law.size_exponent:.3f} + "
        f"{law.data_factor:.4g} / D^{law.data_exponent:.3f}, fitted to {len(found.points)} runs of {min(sizes):,} to "
        f"{max(sizes):,} parameters N. Its error is {100 * sum(errors) / len(errors):.2f}% on average and "
        f"{100 * max(errors):.2f}% at most.",
        f"Compute-optimal: N* grows as C^{interval_text(grows, 2)}, and D* as C^{1 - grows.value:.2f}; C = 6 N D."
        if has_frontier(law)
        else f"There is no compute-optimal size, because the loss does not fall with more {_flat(law)} in these runs.",
    ]
    if ratio := flops_text(found.points):
        text.append(ratio)
    if found.held_out:
        off = [fitted_error(found, point) for point in found.held_out]
        inside = sum(is_inside(found, point) for point in found.held_out)
        text.append(
            f"Held out and predicted: {len(off)} runs. The prediction is off by "
            f"{100 * sum(map(abs, off)) / len(off):.2f}% on average; {inside} of {len(off)} measured "
            "losses are in its 95% interval."
        )
    return [*text, *found.notes]


def has_frontier(law: "ScalingLaw") -> bool:
    """Return whether a law has a size with the lowest loss for each compute."""
    return not (law.is_flat_in_size or law.is_flat_in_data)


def _flat(law: "ScalingLaw") -> str:
    named = {"parameters": law.is_flat_in_size, "training tokens": law.is_flat_in_data}
    return " or ".join(name for name, is_flat in named.items() if is_flat)


def fitted_error(found: Scaling, point: Point) -> float:
    """Return the relative error of the predicted loss of a point."""
    return float(found.fit.law.loss(point.parameters, point.tokens)) / point.loss - 1


def is_inside(found: Scaling, point: Point) -> bool:
    """Return whether the loss of a point is in the interval of its prediction."""
    predicted = found.fit.prediction(point.parameters, point.tokens)
    return predicted.low <= point.loss <= predicted.high


def flops_text(points: Sequence[Point]) -> str:
    """Return how 6 N D compares with the operations that the runs counted; "" if they counted none."""
    ratios = [point.run.flops / (6 * point.parameters * point.tokens) for point in points if point.run.flops]
    if not ratios:
        return ""
    return (
        f"The operations of matrix products that the runs counted, attention included, are {min(ratios):.2f} to "
        f"{max(ratios):.2f} times 6 N D, where N has all trained parameters."
    )


def tables(found: Scaling) -> list[Table]:
    """Return the tables of the coefficients, the fits that differ, the frontier, the grid and the held-out runs."""
    fits = {"final losses, N with embeddings (the fit)": found.fit, **found.others}
    rows = [
        [
            name,
            *(interval_text(fit.interval(value), 3) for _, value in COEFFICIENTS),
            interval_text(fit.interval(lambda law: law.size_share), 2),
        ]
        for name, fit in fits.items()
    ]
    made = [Table("Coefficients [95% interval]", ("fit", *(name for name, _ in COEFFICIENTS), "N* ∝ C^"), rows)]
    if has_frontier(found.fit.law):
        columns = ("C in FLOP", "N*", "D*", "loss [95% interval]")
        made.append(Table("Compute-optimal frontier", columns, _frontier(found)))
    if found.held_out:
        predicted = ("run", "N", "D", "predicted [95% interval]", "measured", "relative error")
        rows = [_held_out(found, each) for each in found.held_out]
        made.append(Table("Held out: predicted and measured", predicted, rows))
    headers = ("size", "N", "N without embeddings", "D", f"{found.metric} (seeds)", "fitted", "relative error")
    made.append(Table("Measured and fitted", headers, _measured(found)))
    return made


def _frontier(found: Scaling) -> list[list[str]]:
    """Return the rows of the frontier. Those outside the sizes and budgets of the fit are marked."""
    sizes, budgets = [point.parameters for point in found.points], [point.tokens for point in found.points]
    computes = [6 * point.parameters * point.tokens for point in (*found.points, *found.held_out)]
    low, high = math.log(min(computes)), math.log(max(computes))
    rows = []
    for place in range(FRONTIER):
        compute = math.exp(low + (high - low) * place / (FRONTIER - 1))
        size, tokens = found.fit.law.optimum(compute)
        loss = found.fit.interval(lambda law, compute=compute: float(law.loss(*law.optimum(compute))))  # type: ignore[misc]
        is_inside = min(sizes) <= size <= max(sizes) and min(budgets) <= tokens <= max(budgets)
        shown_loss = interval_text(loss, 3) + ("" if is_inside else " (extrapolated)")
        rows.append([f"{compute:.1e}", _rounded(size), _rounded(tokens), shown_loss])
    return rows


def _held_out(found: Scaling, point: Point) -> list[str]:
    predicted = found.fit.prediction(point.parameters, point.tokens)
    seed = f", seed {shown(point.run.keys.get(SEED))}"
    return [
        value_of_size(point.run) + seed,
        f"{point.parameters:,}",
        _rounded(point.tokens),
        interval_text(predicted, 3),
        f"{point.loss:.3f}",
        f"{100 * fitted_error(found, point):+.2f}%",
    ]


def _measured(found: Scaling) -> list[list[str]]:
    cells: dict[tuple[int, float], list[Point]] = {}
    for point in found.points:
        cells.setdefault((point.parameters, point.tokens), []).append(point)
    rows = []
    for (size, tokens), points in sorted(cells.items()):
        loss, fitted = sum(each.loss for each in points) / len(points), float(found.fit.law.loss(size, tokens))
        embedded = points[0].run.embedding_parameters
        rows.append(
            [
                value_of_size(points[0].run),
                f"{size:,}",
                "–" if embedded is None else f"{size - embedded:,}",
                _rounded(tokens),
                f"{loss:.3f} ({len(points)})",
                f"{fitted:.3f}",
                f"{100 * (fitted / loss - 1):+.2f}%",
            ]
        )
    return rows


def interval_text(estimate: "Estimate", digits: int) -> str:
    """Return an estimate with its interval, such as `0.523 [0.507, 0.541]`; large numbers with 3 significant digits."""

    def text(value: float) -> str:
        return f"{value:.{digits}f}" if abs(value) < 100 else f"{value:,.0f}" if abs(value) < 1e5 else f"{value:.1e}"

    return f"{text(estimate.value)} [{text(estimate.low)}, {text(estimate.high)}]"


def _rounded(value: float) -> str:
    """Return a number with three significant digits, such as 4,100,000 or 38,700; a very large one as 1e+30."""
    if value >= LARGEST_WRITTEN:
        return f"{value:.0e}"
    return f"{float(f'{value:.3g}'):,.0f}"
