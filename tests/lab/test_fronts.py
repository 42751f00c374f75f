"""A search with several objectives is reported by its Pareto front."""

import math
import operator
from pathlib import Path

import numpy as np

from firstlight.lab.reports.all_runs import SavedPredictions
from firstlight.lab.reports.boards import boards
from firstlight.lab.reports.findings import judged
from firstlight.lab.reports.page import content
from firstlight.lab.reports.run_rows import run_rows
from firstlight.lab.reports.text import markdown
from firstlight.runs.summary import Run
from firstlight.runs.trials import front_of, on_front

OBJECTIVES = {"val/accuracy": "maximize", "parameters": "minimize"}


def trial(number: int, accuracy: float, parameters: int, status: str = "finished") -> Run:
    keys = {"task": "stars", "seed": 1, "optimizer.lr": number / 10}
    found = {"metrics": {"val/accuracy": accuracy}, "optimized_metric": "val/accuracy", "parameters": parameters}
    why = "" if status == "finished" else "pruned at step 3"
    return Run(f"trial-{number}", status, why, keys=keys, objectives=OBJECTIVES, **found)  # type: ignore[arg-type]


TRIALS = [trial(1, 0.5, 100), trial(2, 0.7, 900), trial(3, 0.6, 900), trial(4, 0.6, 400), trial(5, 0.9, 1, "pruned")]


def test_a_point_is_on_the_front_unless_another_one_is_nowhere_worse_and_somewhere_better() -> None:
    points = [(1, 9), (2, 5), (3, 6), (2, 5), (1, 10)]
    assert on_front(points, [True, True]) == [True, True, False, True, False]
    assert on_front(points, [True, False]) == [False, False, False, False, True]
    assert on_front([(1, 1, 1), (1, 1, 2), (2, 0, 2)], [True, True, True]) == [True, False, True]


def test_the_front_of_many_points_is_that_of_each_pair() -> None:
    random = np.random.default_rng(5)
    for count, goals in ((300, [True, False]), (300, [False, True, True]), (50, [True])):
        points = random.integers(0, 30, (count, len(goals))).tolist()
        lowered = [[value if low else -value for value, low in zip(point, goals, strict=True)] for point in points]
        beaten = [any(other != point and all(map(operator.le, other, point)) for other in lowered) for point in lowered]
        assert on_front(points, goals) == [not each for each in beaten]
    assert on_front([(1, math.nan), (2, 5), (1, 5)], [True, True]) == [False, False, True]


def test_the_front_has_the_finished_trials_that_no_other_one_beats() -> None:
    front = front_of(TRIALS)
    assert [run.folder for run in front.best] == ["trial-2", "trial-4", "trial-1"]
    assert [run.folder for run in front.others] == ["trial-3"]
    assert front_of([Run("single", "finished", keys={"task": "stars"})]) is None


def test_tables_and_the_page_show_the_front() -> None:
    (board,) = boards(TRIALS, lambda _: False)
    assert judged(board, lambda _: None).finding == (
        "stars: 3 of 4 trials are on the Pareto front of val/accuracy and parameters, from 0.7 and 900 to 0.5 and 100."
    )
    _, _, below = markdown("title", [], [board], TRIALS).partition("### Pareto front of val/accuracy and parameters")
    rows = [line.split(" | ") for line in below.splitlines() if line.startswith("| lr")]
    assert [row[0] for row in rows] == ["| lr 0.2", "| lr 0.4", "| lr 0.1"]
    assert [row[1:3] for row in rows] == [["0.7", "900"], ["0.6", "400"], ["0.5", "100"]]
    listed = {row["folder"]: row.get("on_pareto_front") for row in run_rows([board], TRIALS)}
    assert listed == {"trial-1": True, "trial-2": True, "trial-3": False, "trial-4": True, "trial-5": None}
    drawn = content([board], TRIALS, lambda _: False, SavedPredictions(Path()))["boards"][0]["front"]
    assert [each["values"] for each in drawn["on"]] == [[0.7, 900], [0.6, 400], [0.5, 100]]
    assert [each["values"] for each in drawn["others"]] == [[0.6, 900]]
