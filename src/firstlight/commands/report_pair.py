"""`report --compare A B`: why one run is better than another, on the terminal and as a page."""

from dataclasses import replace
from pathlib import Path

from firstlight.errors import UserError
from firstlight.files.atomic import write_atomically
from firstlight.lab.reports.all_runs import Configuration, SavedPredictions, direction_of, with_settings
from firstlight.lab.reports.boards import board_of, common_metric
from firstlight.lab.reports.pair import A, B, pair
from firstlight.runs.folder import SAMPLE_NOTE, RunFolder
from firstlight.runs.gather import read_run
from firstlight.runs.named import find_run
from firstlight.runs.summary import Run
from firstlight.terminal_text import say

PAGE = "compare.html"
HERE = Path()


def compare_runs(names: tuple[str, str], folder: Path, metric: str | None) -> tuple[Path, SavedPredictions]:
    """Compare two runs, print the result and write the page below a folder.

    Return the path of the page, and the predictions that were read. Raises UserError.

    names: folders of runs, or `latest` and `best:<metric>`, which are searched below the folder.
    """
    found = [find_run(name, folder, lambda _: True) for name in names]
    runs = [_finished(name, run) for name, run in zip(names, found, strict=True)]
    if runs[0].task != runs[1].task:
        raise UserError(
            f"--compare {' '.join(names)}: the tasks are {runs[0].task} and {runs[1].task}; name two runs of one task"
        )
    if metric is not None and not all(metric in run.metrics for run in runs):
        common = sorted(runs[0].metrics.keys() & runs[1].metrics.keys())
        raise UserError(f"--metric {metric}: not measured by both runs; there are {', '.join(common) or 'none'}")
    if not folder.is_dir():
        raise UserError(f"{folder}: the folder does not exist; name the folder for {PAGE}, such as logs")
    first, second = with_settings(HERE, runs)
    metric, falls, load = metric or common_metric(runs) or "", direction_of(runs), SavedPredictions(HERE)
    settings = [Configuration(run.path).settings for run in found]
    classes = found[0].read()["data"]["classes"] if first.is_of_classes else []
    result = pair((first, second), settings, load, classes, falls, metric)
    notes = [f"{A}  {first.folder}", f"{B}  {second.folder}"]
    if first.is_sample or second.is_sample:
        notes.append(SAMPLE_NOTE)
    from firstlight.lab.reports.page import page

    named = [replace(run, keys=run.keys | {"run": name}, files=()) for name, run in ((A, first), (B, second))]
    board = board_of(named, falls, metric or None)
    write_atomically(
        folder / PAGE, page(f"{B} against {A}: {metric}", notes, [board], named, falls, load, result.html())
    )
    for line in notes:
        say(line)
    result.show()
    say(f"The page is {folder / PAGE}")
    return folder / PAGE, load


def _finished(name: str, folder: RunFolder) -> Run:
    run = read_run(folder, folder.path.as_posix())
    if not run.is_counted:
        raise UserError(f"--compare {name}: the run is {run.status} ({run.why}); name finished runs")
    return run
