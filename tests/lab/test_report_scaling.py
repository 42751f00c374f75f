"""Tests of `report --scaling`: which runs it fits, what it prints and writes, and its errors."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstlight.lab.reports import scaling_law
from firstlight.lab.reports.all_runs import found_runs
from firstlight.lab.reports.scaling import best_of_each, final_point, scaling
from firstlight.lab.reports.scaling_law import ScalingLaw
from firstlight.lab.reports.scaling_text import tables
from firstlight.runs.folder import SAMPLE_NOTE
from run_folders import make_run
from tests_support import Scripts

LAW = ScalingLaw(irreducible=1.2, size_factor=40, size_exponent=0.45, data_factor=900, data_exponent=0.5)
SIZES = {"2k": 2_900, "9k": 10_400, "37k": 39_300, "113k": 117_000}
BUDGETS = (250, 500, 1000)
TOKENS = 1024  # of a step
EXCESS = 1.02  # of the losses before the decay


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling_law, "DRAWS", 8)


def loss_of(size: int, steps: int) -> float:
    """Return the law's loss, higher or lower by 0.2%."""
    return float(LAW.loss(size, steps * TOKENS)) * (1 + 0.002 * (-1) ** (size % 7 + steps // 250))


def lines_of(size: int, steps: int) -> list[dict[str, Any]]:
    """Return a history with a constant rate that decays in the last fifth of the steps."""
    lines: list[dict[str, Any]] = []
    for step in range(124, steps, 125):
        moment = {"step": step, "seconds": step / 100, "epoch": 0}
        lines.append(moment | {"lr-AdamW": 0.01 if step < 0.8 * steps else 0.001})
        early = EXCESS * float(LAW.loss(size, (step + 1) * TOKENS))
        lines.append(moment | {"val/loss": loss_of(size, steps) if step == steps - 1 else early})
    return lines


def make_cell(folder: Path, name: str, steps: int, **changes: Any) -> Path:
    """Make the run of a size and a budget. changes: keys of its record that differ."""
    size = SIZES[name]
    record = {
        "task": "shakespeare",
        "optimized_metric": "val/loss",
        "metrics": {"val/loss": loss_of(size, steps)},
        "parameters": size,
        "embedding_parameters": size // 5,
        "steps": steps,
        "tokens": steps * TOKENS,
        "flops": round(6.6 * size * steps * TOKENS),
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


def test_a_held_out_size_is_predicted_and_the_law_and_both_figures_are_in_the_report(grid: Path) -> None:
    done = Scripts(grid.parent).run("report", grid.name, "--scaling", "--hold-out", "113k")
    assert done.returncode == 0, done.stderr
    assert "fitted to 9 runs of 2,900 to 39,300 parameters N" in done.stdout
    assert "are 1.10 to 1.10 times 6 N D" in done.stdout
    predicted = re.search(r"Held out and predicted: 3 runs. The prediction is off by ([0-9.]+)%", done.stdout)
    assert predicted is not None
    assert float(predicted[1]) < 3
    page, markdown = ((grid / f"report.{kind}").read_text(encoding="utf-8") for kind in ("html", "md"))
    assert page.count('<img class="figure" alt="scaling_f') == 2
    assert "<h2>Held out: predicted and measured</h2>" in page
    assert "![scaling\\_fit.png](scaling_fit.png)" in markdown or "![scaling_fit.png](scaling_fit.png)" in markdown
    assert "### Compute-optimal frontier" in markdown
    assert {path.name for path in grid.glob("*.png")} == {"scaling_fit.png", "scaling_frontier.png"}


def test_losses_before_the_decay_are_fitted_too_each_once_and_with_a_factor_of_their_own(grid: Path) -> None:
    found = scaling(found_runs(grid), None, lambda _: False, "")
    assert list(found.others) == ["N without embeddings", "with 24 losses before the decay"]  # at 125, …, 750 steps
    law = found.others["with 24 losses before the decay"].law
    assert law.excess == pytest.approx(EXCESS, rel=0.005)
    assert law.size_exponent == pytest.approx(LAW.size_exponent, rel=0.05)
    without = found.others["N without embeddings"].law
    assert without.size_factor == pytest.approx(found.fit.law.size_factor * 0.8**without.size_exponent, rel=0.02)


def test_rows_of_the_frontier_outside_the_measured_range_are_marked(grid: Path) -> None:
    found = scaling(found_runs(grid), None, lambda _: False, "")
    first = found.points[0]
    small, large = replace(first, parameters=100, tokens=1e4), replace(first, parameters=10**7, tokens=1e8)
    found = replace(found, points=[*found.points, small, large])
    (frontier,) = (each for each in tables(found) if each.title == "Compute-optimal frontier")
    optima = [found.fit.law.optimum(float(row[0])) for row in frontier.rows]
    inside = [100 <= size <= 10**7 and 1e4 <= tokens <= 1e8 for size, tokens in optima]
    assert [not row[-1].endswith(" (extrapolated)") for row in frontier.rows] == inside
    assert 0 < sum(inside) < len(inside)


def test_the_best_of_several_runs_of_one_cell_is_fitted(grid: Path) -> None:
    points = [final_point(run, "val/loss") for run in found_runs(grid)]
    worse = replace(points[4], loss=points[4].loss + 0.2)
    kept, notes = best_of_each([worse, *points])
    assert sorted(each.loss for each in kept) == sorted(each.loss for each in points)
    assert notes == ["Not fitted: 1 run with the size, budget and seed of a better one."]


def test_a_law_of_generated_data_is_fitted_and_says_so(tmp_path: Path) -> None:
    fill(tmp_path / "grid", data={"source": "sample", "fingerprint": "f"})
    done = Scripts(tmp_path).run("report", "grid", "--scaling")
    assert done.returncode == 0, done.stderr
    assert "fitted to 12 runs" in done.stdout
    assert SAMPLE_NOTE in done.stdout
    assert "GENERATED SAMPLE" in (tmp_path / "grid" / "report.html").read_text(encoding="utf-8")


def test_losses_that_do_not_fall_with_more_tokens_have_no_frontier(tmp_path: Path) -> None:
    for size in SIZES:
        for steps in BUDGETS:
            loss = loss_of(SIZES[size], 500) + steps * 1e-5
            lines = [{"step": steps - 1, "seconds": 1.0, "epoch": 0, "val/loss": loss}]
            make_cell(tmp_path / "grid", size, steps, metrics={"val/loss": loss}, lines=lines)
    done = Scripts(tmp_path).run("report", "grid", "--scaling")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "no compute-optimal size, because the loss does not fall with more training tokens in these runs" in text
    assert {path.name for path in (tmp_path / "grid").glob("*.png")} == {"scaling_fit.png"}


def refused(folder: Path, message: str, *options: str) -> None:
    """Check that the report of a folder ends with an error of one line."""
    done = Scripts(folder.parent).run("report", folder.name, *options)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


@pytest.mark.parametrize(
    ("sizes", "budgets", "message"),
    [
        (("2k", "9k"), BUDGETS, "the finished runs have 2 sizes (2,900, 10,400); a fit requires 3"),
        (tuple(SIZES), (250, 500), "the finished runs have 2 budgets of tokens (256,000, 512,000); a fit requires 3"),
    ],
)
def test_too_few_sizes_or_budgets_are_an_error(
    tmp_path: Path, sizes: tuple[str, ...], budgets: tuple[int, ...], message: str
) -> None:
    refused(fill(tmp_path / "few", sizes, budgets), message, "--scaling")


OTHERS: dict[str, dict[str, Any]] = {
    "have 2 different tasks, such as other and scale-113k_steps-1000; name the folder": {"task": "names"},
    "have 2 different data (fingerprints), such as": {"data": {"source": "local", "fingerprint": "g"}},
    "have 2 different kinds of data (data.source=sample and real), such as": {"data": {"source": "sample"}},
    "other: has no val/loss; it recorded val/accuracy": {"lines": [{"step": 249, "seconds": 1, "val/accuracy": 0.5}]},
    "other: val/loss was last measured at step 125 of 250": {"lines": lines_of(SIZES["2k"], 250)[:-2]},
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
        (
            ["--scaling", "--hold-out", "1m"],
            "--hold-out 1m: no finished run has these values; there are 113k, 2k, 37k, 9k",
        ),
        (["--scaling", "--hold-out", "seed=1"], "have 0 sizes without --hold-out seed=1 (none); a fit requires 3"),
        (["--scaling", "--metric", "val/accuracy"], "--metric val/accuracy must be one of val/loss"),
    ],
)
def test_a_wrong_option_is_an_error_of_one_line(grid: Path, options: list[str], message: str) -> None:
    refused(grid, message, *options)
