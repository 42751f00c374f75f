"""Tests of `report --learning-curves`: where lines cross, on simulated sets, and what it prints and refuses."""

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from firstlight.lab.reports.significance import crossings
from firstlight.lab.reports.verdicts import by_unit, compare, crossing_text, verdicts
from run_folders import a_row, make_baseline, make_run
from tests_support import Scripts

SIZES = (1000, 3000, 10_000, 30_000)
SETS, DEVIATION = 200, 0.005


def simulated_text(gap: Callable[[float], float], random: np.random.Generator, *, is_baseline: bool) -> str:
    """Return what a report says of a network and another line, whose true difference is a function of log10 rows."""
    compared = []
    for size in SIZES:
        first, second = random.normal([[0.8 + gap(math.log10(size))], [0.8]], DEVIATION, (2, 3))
        network = [a_row(value=value, keys={"seed": seed}) for seed, value in enumerate(first)]
        other = [a_row(value=value, keys={"seed": seed}) for seed, value in enumerate(second)]
        counted = [a_row(value=0.8, is_baseline=True)] if is_baseline else other
        compared.append(compare(by_unit(network), by_unit(counted), "val/accuracy", lambda _: None))
    return crossing_text("small", "tfidf", dict(zip(SIZES, verdicts(compared, falls=False), strict=True)))


@pytest.mark.parametrize("is_baseline", [True, False])
def test_a_planted_crossing_is_found_and_its_interval_has_it(is_baseline: bool) -> None:
    random, planted, covered, found = np.random.default_rng(1), 6000, 0, 0
    for _ in range(SETS):
        text = simulated_text(lambda size: 0.12 * (size - math.log10(planted)), random, is_baseline=is_baseline)
        if places := re.search(r"rows: ([\d,]+) \[([\d,]+), ([\d,]+)\]\.$", text):
            _, low, high = (int(place.replace(",", "")) for place in places.groups())
            found, covered = found + 1, covered + (low <= planted <= high)
    assert found >= 0.8 * SETS
    assert covered >= 0.95 * found


@pytest.mark.parametrize("gap", [0.0, 0.008])
def test_no_crossing_is_claimed_where_there_is_none(gap: float) -> None:
    random = np.random.default_rng(2)
    texts = [simulated_text(lambda _: gap, random, is_baseline=True) for _ in range(SETS)]
    assert sum("cross at this number" in text for text in texts) <= 0.05 * SETS
    false = [text for text in texts if "at all 4 sizes" in text and (gap == 0 or "small is worse" in text)]
    assert len(false) <= 0.05 * SETS
    assert any(text.startswith("It is undecided whether small and tfidf cross.") for text in texts)


def test_lines_that_stay_apart_do_not_cross_in_this_range() -> None:
    text = simulated_text(lambda _: 0.2, np.random.default_rng(3), is_baseline=True)
    apart = "The lines do not cross from 1,000 to 30,000 training rows."
    assert text == f"small is better than tfidf at all 4 sizes. {apart}"


def test_the_interval_of_a_crossing_by_hand() -> None:
    (found,) = crossings([10, 100, 1000], [-1.0, 0.0, 1.0], [0.5, 0.5, 0.5])
    assert (found.value, found.low, found.high) == pytest.approx((100, 10**1.5, 10**2.5), rel=0.01)
    assert [round(each.value) for each in crossings([1, 100, 10_000], [1, -1, 1], [0, 0, 0])] == [10, 1000]
    assert crossings([10, 100, 1000], [-1.0, 0.4, 0.3], [0.5, 0.5, 0.5]) == []


def test_the_report_has_the_curves_and_what_has_one_size_has_no_line(tmp_path: Path) -> None:
    folder = tmp_path / "curve"
    for size, accuracy in ((1000, 0.6), (3000, 0.7), (9000, 0.8)):
        data = {"source": "sample", "path": "p", "fingerprint": "f", "rows": {"train": size, "validation": 100}}
        limit = [f"data.max_train_rows={size}"] if size < 9000 else []
        for seed in (1, 2, 3):
            metrics = {"val/accuracy": accuracy + 0.001 * seed}
            make_run(folder, f"{size}-{seed}", *limit, f"seed={seed}", seed=seed, data=data, metrics=metrics)
        metrics = {"val/accuracy": 1.4 - accuracy}
        make_baseline(folder, f"counted/{size}", overrides=["task=stars", *limit], data=data, metrics=metrics)
    make_run(folder, "wide", "model=wide", model="wide", data=data, metrics={"val/accuracy": 0.1})
    done = Scripts(tmp_path).succeed("report", "curve", "--learning-curves")
    assert "tiny and tfidf cross at this number of training rows: 2,9" in done.stdout
    assert "wide has one number of training rows, and no line." in done.stdout
    page, markdown = ((folder / f"report.{kind}").read_text(encoding="utf-8") for kind in ("html", "md"))
    assert page.count('<img class="figure" alt="learning_curves') == 1
    assert "## Learning curves of stars (GENERATED SAMPLE)" in markdown
    assert re.search(r"\| 9,000 +\| 0\.6 +\| 0\.802 ± 0\.0025 +\|", markdown)


@pytest.mark.parametrize(
    ("tasks", "options", "message"),
    [
        (("stars",), [], "no setting has two numbers of training rows; train a sweep over several, such as data.max"),
        (("stars", "movies"), [], "movies and stars cannot be compared; name the folder of one sweep"),
    ],
)
def test_runs_of_one_size_and_of_two_tasks_are_refused(tmp_path: Path, tasks, options, message) -> None:
    for task in tasks:
        make_run(tmp_path / "runs", task, task=task)
    done = Scripts(tmp_path).run("report", "runs", "--learning-curves", *options)
    assert (done.returncode, message in done.stderr) == (2, True)
    assert done.stderr.startswith("error: --learning-curves: ")
