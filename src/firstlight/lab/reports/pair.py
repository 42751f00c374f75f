"""Why one run is better than another: their settings and results, and the predictions that changed.

Also whether one setting is better than another, and the command that trains the seeds that are missing for an answer.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from firstlight.errors import UserError
from firstlight.files.atomic import write_atomically
from firstlight.invocation import invocation
from firstlight.lab.reports.all_runs import Configuration, SavedPredictions, at, direction_of, read_small, with_settings
from firstlight.lab.reports.boards import Board, Direction, board_of, common_metric, notes_of, spread_of
from firstlight.lab.reports.page import page
from firstlight.lab.reports.tables import Section, Table, direction, duration, spread_text
from firstlight.lab.reports.verdicts import LEVEL, Load, by_unit, compare, difference_text, holm, over_texts, verdicts
from firstlight.runs.folder import SAMPLE_NOTE, SWEEP_FILE, RunFolder
from firstlight.runs.gather import read_run
from firstlight.runs.named import find_run
from firstlight.runs.summary import SEED, Run, Value, grouped, number, shown
from firstlight.terminal_text import say

if TYPE_CHECKING:
    from firstlight.runs.predictions import Predictions

    Sides = tuple[Predictions, Predictions]

A, B = "A", "B"  # the names of the two runs
CHANGE = f"{B} − {A}"
PAGE = "compare.html"
HERE = Path()
FEWEST_SEEDS = 3  # that are proposed where there is only one
LOOKS = 2  # at the seeds of two settings: before and after the seeds that were proposed

Runs = tuple[Run, Run]
Settings = Sequence[Mapping[str, Value]]  # of each run


def compare_runs(names: tuple[str, str], folder: Path, metric: str | None) -> Path:
    """Compare two runs, print the result, write the page below a folder and return its path. Raises UserError.

    names: folders of runs, or `latest` and `best:<metric>`, which are searched below the folder.
    """
    found = [find_run(name, folder, lambda _: True) for name in names]
    runs = [read_run(run, run.path.as_posix()) for run in found]
    for name, run in zip(names, runs, strict=True):
        if not run.is_counted:
            raise UserError(f"--compare {name}: the run is {run.status} ({run.why}); name finished runs")
    if runs[0].task != runs[1].task:
        problem = f"the tasks are {runs[0].task} and {runs[1].task}"
        raise UserError(f"--compare {' '.join(names)}: {problem}; name two runs of one task")
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
    named = [replace(run, keys=run.keys | {"run": name}, files=()) for name, run in ((A, first), (B, second))]
    board = board_of(named, falls, metric or None)
    whole = page(f"{B} against {A}: {metric}", notes, [board], named, falls, load, result.html())
    write_atomically(folder / PAGE, whole)
    for line in notes:
        say(line)
    result.show()
    say(f"The page is {folder / PAGE}")
    load.say_problems()
    return folder / PAGE


def decision(board: Board, names: Sequence[str], sides: Sequence[list[Run]], load: Load, folder: Path) -> list[str]:
    """Return the verdict on two settings in a few lines, and if it is undecided the command that would decide it.

    Whoever runs the command looks a second time, so each look has half of the level.

    names, sides: the name and the counted runs of each setting; folder: in which the folders of the runs are.
    """
    metric = board.metric or ""
    rest = [key for key in board.swept if any(len(_of_key(key, side)) > 1 for side in sides)]
    cells = [{cell for cell, _ in by_unit(side, rest)} for side in sides]
    common = cells[0] & cells[1] or cells[0] | cells[1]
    units = [{unit: runs for unit, runs in by_unit(side, rest).items() if unit[0] in common} for side in sides]
    sides = [[run for runs in each.values() for run in runs] for each in units]
    found = compare(units[0], units[1], metric, load)
    verdict, _ = verdicts([found] * LOOKS, falls=board.falls)
    tests = {f"{found.seeds:,} pairs of runs": found.over_seeds, "the validation texts": found.over_texts}
    tested = [f"p = {each.p:.2g} over {name}" for name, each in tests.items() if each]
    means = (f"{name} {spread_text(spread_of(side, metric))}" for name, side in zip(names, sides, strict=True))
    lines = [
        f"{board.name}, {direction(board)}: {' against '.join(means)}",
        f"{names[0]} against {names[1]}: {'; '.join([verdict.text(metric), *tested])}",
    ]
    lacking = FEWEST_SEEDS - found.seeds if verdict.lacks_seeds else 0
    if more := verdict.more_seeds or lacking:
        planned = "with which a difference of this size is found with a chance of 80%"
        chance = planned if verdict.more_seeds else "for a first test"
        lines.append(f"To train {more:,} more seed{'s' if more > 1 else ''}, {chance}:")
        lines += [f"  {command}" for command in _commands(sides, found.seeds // found.cells + more, folder)]
    return lines


def _commands(sides: Sequence[list[Run]], number: int, folder: Path) -> Iterator[str]:
    """Yield the commands that train two settings with a number of seeds in all.

    Jobs of a grid are added to their sweep, which skips the finished ones. Single runs and trials of a search get a
    sweep of their own, those of a trial below the folder of the search.
    """
    from firstlight.runs.overrides import SWEEP_NAME, key_of, value_of, with_seeds  # imports Hydra

    trained = [side for side in sides if not side[0].is_baseline]
    runs = [run for side in trained for run in side]
    known = sorted({int(shown(run.keys[SEED])) for run in runs})
    seeds = known + [known[-1] + 1 + extra for extra in range(number - len(known))]
    keys = sorted({key for run in runs for key in run.keys} - {SEED})
    places = {(folder / run.folder).parent for run in runs}
    sweep = read_small(min(places) / SWEEP_FILE) if len(places) == 1 else {}
    is_grid = bool(sweep) and at(sweep, "hydra.sweeper.n_trials") is None
    cells = grouped(runs, lambda run: run.values(keys))
    is_one = sum(_of_key(key, trained[0]) != _of_key(key, trained[-1]) for key in keys) < 2
    for part in ([runs] if is_one else trained) if is_grid else cells.values():
        own = [RunFolder(folder / run.folder).read()["overrides"] for run in part]
        given = [each for each in own[0] if key_of(each) != SWEEP_NAME]
        if is_grid:
            params = {key: f"{key}={value}" for key, value in (at(sweep, "hydra.sweeper.params") or {}).items()}
            typed, others = (at(sweep, f"hydra.overrides.{name}") for name in ("task", "hydra"))
            given = [*(params | {key_of(each): each for each in typed}).values(), *others]
        elif sweep:
            given.append(f"{SWEEP_NAME}={value_of(SWEEP_NAME, own[0])}/more-{Path(part[0].folder).name}")
        done = {int(shown(run.keys[SEED])) for run in part}
        yield f"{invocation('train')} -m {shlex.join(with_seeds(given, own, seeds, done))}"


def _of_key(key: str, runs: Sequence[Run]) -> set[str]:
    return {shown(run.keys.get(key)) for run in runs}


def pair(runs: Runs, settings: Settings, load: Load, classes: Sequence[str], falls: Direction, metric: str) -> Section:
    """Return the comparison of two finished runs of one task; the most important sentence is first.

    settings: those that decide what each run computes. load: returns the saved predictions of a run, or None. classes:
    the names of the classes of a classifier. metric: the metric that decides.
    """
    notes = list(notes_of(runs))
    apart = ", ".join(f"{name}: {note}" for name, note in zip((A, B), notes, strict=True) if note)
    sentences = [f"The numbers cannot be compared: {apart}."] if notes[0] != notes[1] else []
    sentences += _result(runs, load, metric, falls)
    tables = [Table("Settings that differ", ("key", A, B), _settings(runs, settings))]
    tables.append(Table("Results", ("", A, B, CHANGE), _results(runs)))
    one, two = map(load, runs)
    if one is None or two is None or one.key != two.key:
        sentences.append("No prediction is compared: the runs have not saved those of the same texts and tokens.")
    elif one.is_of_classes:
        assert one.predicted is not None and two.predicted is not None
        changed = int((one.predicted != two.predicted).sum())
        sentences.append(f"{changed:,} of {len(one.rows):,} predictions changed.")
        header = ("class", "texts", A, B, CHANGE, f"{B} is")
        tables.append(Table("Right predictions of each true class", header, list(_classes((one, two), classes))))
    else:
        sentences.append(_changed_tokens((one, two)))
    return Section("Comparison of two runs", sentences, [table for table in tables if table.rows])


def _result(runs: Runs, load: Load, metric: str, falls: Direction) -> list[str]:
    """Return which run is better by the metric, and whether the texts show it."""
    if not all(metric in run.metrics for run in runs):
        return []
    first, second = (run.metrics[metric] for run in runs)
    if first == second:
        return [f"{A} and {B} have the same {metric}, {number(first)}."]
    which = f"{B} is {'better' if (second < first) == falls(metric) else 'worse'} than {A}"
    values = f"{metric} is {number(second)} against {number(first)}"
    difference = over_texts(by_unit(runs[1:]), by_unit(runs[:1]), metric, load)
    if difference is None:
        return [f"{which}: {values}. Whether the texts show a difference cannot be tested."]
    if difference.p >= LEVEL:
        which = f"It is undecided whether {which},"
    size = difference_text(second - first, difference.estimate.half_width, metric)
    return [
        f"{which} by {size}: {values} (p = {difference.p:.2g} over the texts of this split).",
        "Two runs cannot tell settings from seeds: train several seeds of each and compare the groups.",
    ]


def _settings(runs: Runs, settings: Settings) -> list[list[str]]:
    both = [
        {**run.keys, **own, "data source": run.source, "data fingerprint": run.fingerprint}
        for run, own in zip(runs, settings, strict=True)
    ]
    rows = [[key, *(shown(each.get(key)) for each in both)] for key in dict.fromkeys([*both[0], *both[1]])]
    return [row for row in rows if row[1] != row[2]]


def _results(runs: Runs) -> list[list[str]]:
    names = sorted({name for run in runs for name in run.metrics}, key=lambda name: (not name.startswith("val/"), name))
    values = {name: [run.metrics.get(name) for run in runs] for name in names}
    values |= {name: [getattr(run, name) for run in runs] for name in ("parameters", "steps", "tokens")}
    rows = [
        [name, *("–" if value is None else number(value) for value in both), _change(*both)]
        for name, both in values.items()
        if both != [None, None]
    ]
    return [*rows, ["fit time", *(duration(run.fit_seconds) for run in runs), ""]]


def _change(one: float | None, two: float | None) -> str:
    if one is None or two is None or one == two:
        return ""
    return f"{'+' if two > one else '−'}{number(abs(two - one))}"


def _classes(sides: "Sides", classes: Sequence[str]) -> Iterator[list[str]]:
    """Yield a row for each true class. McNemar's tests of all classes are corrected together."""
    from firstlight.lab.reports.significance import mcnemar  # imports NumPy

    one, two = sides
    assert one.targets is not None
    places = sorted(set(one.targets.tolist()))
    members = [one.targets == place for place in places]
    p_values = holm([mcnemar(two.correct[member], one.correct[member]) for member in members])
    for place, member, p in zip(places, members, p_values, strict=True):
        before, after = (float(each.correct[member].mean()) for each in sides)
        word = "undecided" if p >= LEVEL else "better" if after > before else "worse"
        name = classes[place] if place < len(classes) else str(place)
        change = f"{100 * (after - before):+.1f} points".replace("-", "−")
        yield [name, f"{member.sum():,}", f"{before:.1%}", f"{after:.1%}", change, word]


def _changed_tokens(sides: "Sides") -> str:
    """Return in how many texts the loss fell, and how many tokens more are predicted correctly."""
    one, two = sides
    lower = int((two.losses < one.losses).sum())
    hits = int((two.correct - one.correct).sum())
    return (
        f"{B} has the lower loss in {lower:,} of {len(one.rows):,} validation texts, or pieces of a text, and predicts "
        f"{abs(hits):,} {'more' if hits >= 0 else 'fewer'} of {int(one.tokens.sum()):,} tokens correctly than {A}."
    )
