"""Tests of `report --scaling`: which runs it fits, what it prints and writes, and its errors."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstlight.errors import UserError
from firstlight.lab.reports import scaling_law
from firstlight.lab.reports.all_runs import gather
from firstlight.lab.reports.scaling import scaling, sentences, tables
from firstlight.lab.reports.scaling_law import ScalingLaw
from firstlight.runs.folder import SAMPLE_NOTE
from run_folders import make_run
from tests_support import Scripts

LAW = ScalingLaw(irreducible=1.2, size_factor=40, size_exponent=0.45, data_factor=900, data_exponent=0.5)
SIZES = {"2k": 2_900, "9k": 10_400, "37k": 39_300, "113k": 117_000}
BUDGETS = (250, 500, 1000)
TOKENS = 1024  # of a step


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling_law, "DRAWS", 8)


def loss_of(size: int, steps: int) -> float:
    """Return the law's loss, higher or lower by 0.2%."""
    return float(LAW.loss(size, steps * TOKENS)) * (1 + 0.002 * (-1) ** (size % 7 + steps // 250))


def lines_of(size: int, steps: int) -> list[dict[str, Any]]:
    """Return a history with a validation in the middle and one at the end."""
    losses = {steps // 2 - 1: 2 * loss_of(size, steps), steps - 1: loss_of(size, steps)}
    return [{"step": step, "seconds": 1.0, "epoch": 0, "val/loss": loss} for step, loss in losses.items()]


def make_cell(folder: Path, name: str, steps: int, **changes: Any) -> Path:
    """Make the run of a size and a budget. changes: keys of its record that differ."""
    size = SIZES[name]
    record = {
        "task": "shakespeare",
        "optimized_metric": "val/loss",
        "metrics": {"val/loss": loss_of(size, steps)},
        "parameters": size,
        "steps": steps,
        "tokens": steps * TOKENS,
        "lines": lines_of(size, steps),
    }
    return make_run(
        folder, f"scale-{name}_steps-{steps}", f"scale={name}", f"trainer.max_steps={steps}", **record | changes
    )


def fill(
    folder: Path, sizes: tuple[str, ...] = tuple(SIZES), budgets: tuple[int, ...] = BUDGETS, **changes: Any
) -> Path:
    for name in sizes:
        for steps in budgets:
            make_cell(folder, name, steps, **changes)
    return folder


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("grid"))


def test_a_held_out_size_is_predicted_and_the_law_and_its_figure_are_in_the_report(grid: Path) -> None:
    done = Scripts(grid.parent).succeed("report", grid.name, "--scaling", "--hold-out", "113k")
    assert "fitted to 9 runs of 2,900 to 39,300 parameters N" in done.stdout
    predicted = re.search(r"Held out and predicted: 3 runs. The prediction is off by ([0-9.]+)%", done.stdout)
    assert float(predicted[1]) < 3
    page, markdown = ((grid / f"report.{kind}").read_text(encoding="utf-8") for kind in ("html", "md"))
    assert page.count('<img class="figure" alt="scaling_fit') == 1
    assert "<h2>Held out: predicted and measured</h2>" in page
    assert "![scaling\\_fit.png](scaling_fit.png)" in markdown or "![scaling_fit.png](scaling_fit.png)" in markdown
    assert "### Compute-optimal frontier" in markdown
    assert {path.name for path in grid.glob("*.png")} == {"scaling_fit.png"}


def test_runs_with_more_compute_are_held_out_and_the_guess_of_no_change_is_beside_the_prediction(grid: Path) -> None:
    every = scaling(gather(grid), None, lambda _: False, "").points
    limit = sorted(point.compute for point in every)[-3]
    found = scaling(gather(grid), None, lambda _: False, f"C>{limit}")
    assert len(found.held_out) == 2
    assert min(point.compute for point in found.held_out) > limit >= max(point.compute for point in found.points)
    errors = []
    for point in found.held_out:
        fits = [each for each in found.points if each.parameters <= point.parameters and each.tokens <= point.tokens]
        errors.append(100 * (min(each.loss for each in fits) / point.loss - 1))
    assert sentences(found)[-1].endswith(f"tokens would be off by {np.mean(errors):.2f}%.")
    with pytest.raises(UserError, match=r"^--hold-out C>much: much is not a number; write one such as C>1e12$"):
        scaling(gather(grid), None, lambda _: False, "C>much")


def test_rows_of_the_frontier_outside_the_measured_range_are_marked(grid: Path) -> None:
    found = scaling(gather(grid), None, lambda _: False, "")
    first = found.points[0]
    small, large = replace(first, parameters=100, tokens=10**4), replace(first, parameters=10**7, tokens=10**8)
    found = replace(found, points=[*found.points, small, large])
    (frontier,) = (each for each in tables(found) if each.title == "Compute-optimal frontier")
    optima = [found.fit.law.optimum(float(row[0])) for row in frontier.rows]
    inside = [100 <= size <= 10**7 and 1e4 <= tokens <= 1e8 for size, tokens in optima]
    assert [not row[-1].endswith(" (extrapolated)") for row in frontier.rows] == inside
    assert 0 < sum(inside) < len(inside)


def test_the_best_run_of_each_cell_is_fitted_and_a_law_of_generated_data_says_so(tmp_path: Path) -> None:
    sample = {"source": "sample", "fingerprint": "f"}
    fill(tmp_path / "grid", data=sample)
    worse = make_cell(tmp_path, "2k", 250, data=sample, lines=[{"step": 249, "seconds": 1, "val/loss": 9.0}])
    worse.rename(tmp_path / "grid" / "worse")
    done = Scripts(tmp_path).succeed("report", "grid", "--scaling")
    assert "fitted to 12 runs" in done.stdout
    assert "Its error is 0." in done.stdout
    assert "Not fitted: 1 run with the size, budget and seed of a better one." in done.stdout
    assert SAMPLE_NOTE in done.stdout
    assert "GENERATED SAMPLE" in (tmp_path / "grid" / "report.html").read_text(encoding="utf-8")


def test_losses_that_do_not_fall_with_more_tokens_have_no_frontier(tmp_path: Path) -> None:
    for size in SIZES:
        for steps in BUDGETS:
            loss = loss_of(SIZES[size], 500) + steps * 1e-5
            lines = [{"step": steps - 1, "seconds": 1.0, "epoch": 0, "val/loss": loss}]
            make_cell(tmp_path / "grid", size, steps, metrics={"val/loss": loss}, lines=lines)
    done = Scripts(tmp_path).succeed("report", "grid", "--scaling")
    text = " ".join(done.stdout.split())
    assert "no compute-optimal size, because the loss does not fall with both N and D in these runs" in text
    assert "Compute-optimal frontier" not in text


def refused(folder: Path, message: str, *options: str) -> None:
    """Check that the report of a folder ends with an error of one line."""
    assert message in Scripts(folder.parent).refuse("report", folder.name, *options)


def test_too_few_budgets_are_an_error(tmp_path: Path) -> None:
    folder = fill(tmp_path / "few", tuple(SIZES), (250, 500))
    refused(folder, "the finished runs have 4 sizes and 2 budgets of tokens; a fit requires 3 of each", "--scaling")


OTHERS: dict[str, dict[str, Any]] = {
    "other (names) and scale-113k_steps-1000 (shakespeare) cannot be compared; name the folder": {"task": "names"},
    "other (shakespeare, data g) and": {"data": {"source": "local", "fingerprint": "g"}},
    "other (shakespeare, GENERATED SAMPLE) and": {"data": {"source": "sample"}},
    "other: has no val/loss; it recorded val/accuracy": {"lines": [{"step": 249, "seconds": 1, "val/accuracy": 0.5}]},
    "other: val/loss was last measured at step 125 of 250": {"lines": lines_of(SIZES["2k"], 250)[:-1]},
    "other: does not record its parameters, steps and tokens; train it again": {"tokens": None},
}


@pytest.mark.parametrize("message", OTHERS)
def test_a_run_that_cannot_be_compared_is_an_error(tmp_path: Path, message: str) -> None:
    fill(tmp_path / "grid")
    make_cell(tmp_path / "more", "2k", 250, **OTHERS[message]).rename(tmp_path / "grid" / "other")
    refused(tmp_path / "grid", message, "--scaling")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--hold-out", "2k"], "--hold-out 2k: requires --scaling; add it"),
        (["--scaling", "--hold-out", "1m"], "--hold-out 1m: no finished run has these values; there are 113k, 2k"),
        (["--scaling", "--hold-out", "seed=1"], "have 0 sizes and 0 budgets of tokens without --hold-out seed=1"),
        (["--scaling", "--metric", "val/accuracy"], "--metric val/accuracy must be one of val/loss"),
    ],
)
def test_a_wrong_option_is_an_error_of_one_line(grid: Path, options: list[str], message: str) -> None:
    refused(grid, message, *options)
