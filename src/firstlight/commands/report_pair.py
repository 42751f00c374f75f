"""`report --compare A B`: why one run is better than another, on the terminal and as a page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from firstlight.errors import UserError
from firstlight.files.atomic import write_atomically
from firstlight.lab.reports.all_runs import Configuration, direction_of, with_settings
from firstlight.lab.reports.changed_predictions import A, B
from firstlight.lab.reports.pair import Pair, pair
from firstlight.lab.reports.saved_predictions import SavedPredictions
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
    load = SavedPredictions(HERE)
    settings = [Configuration(run.path).settings | _seeds(run) for run in found]
    result = pair(
        (first, second),
        (settings[0], settings[1]),
        (load(first), load(second)),
        _classes(found),
        direction_of(runs),
        metric,
    )
    from firstlight.lab.reports.pair_page import pair_page

    write_atomically(folder / PAGE, pair_page(result))
    show(result, folder / PAGE)
    return folder / PAGE, load


def _finished(name: str, folder: RunFolder) -> Run:
    run = read_run(folder, folder.path.as_posix())
    if not run.is_counted:
        raise UserError(f"--compare {name}: the run is {run.status} ({run.why}); name finished runs")
    return run


def _seeds(folder: RunFolder) -> dict[str, Any]:
    seed = folder.read().get("seed")
    return {} if seed is None else {"seed": seed}


def _classes(found: Sequence[RunFolder]) -> list[str]:
    """Return the names of the classes of the first run; [] for another kind of network."""
    data = found[0].read().get("data")
    classes = data.get("classes") if isinstance(data, dict) else None
    return [str(name) for name in classes] if isinstance(classes, list) else []


def show(found: Pair, page: Path) -> None:
    """Print the sentences and the tables, and where the page is."""
    from firstlight.console import Console

    console = Console()
    for name, run in ((A, found.first), (B, found.second)):
        say(f"{name}  {run.folder}")
    for sentence in found.sentences:
        console.print(sentence)
    for each in found.tables:
        console.print(each.on_terminal())
    if found.first.is_sample or found.second.is_sample:
        console.print(SAMPLE_NOTE, style="bold")
    console.print(f"The page is {page}", soft_wrap=True)
