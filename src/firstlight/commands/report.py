"""Comparison of runs and sweeps: tables on the terminal, in Markdown and CSV, and a page that works offline."""

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import tyro

from firstlight.command_options import JsonOption, parse
from firstlight.commands.frame import open_page
from firstlight.errors import UserError
from firstlight.files.atomic import write_atomically
from firstlight.files.plain_yaml import read_config
from firstlight.invocation import install_command
from firstlight.lab.reports import tables
from firstlight.lab.reports.all_runs import SavedPredictions, direction_of, gather, has_folds
from firstlight.lab.reports.boards import Board, Group, boards, last_part, not_counted, short_name
from firstlight.lab.reports.findings import MOST_GROUPS, judged
from firstlight.lab.reports.page import page
from firstlight.lab.reports.pair import compare_runs, decision
from firstlight.lab.reports.run_rows import plain_board, runs_table
from firstlight.lab.reports.scaling import learning_curves, scaling, section_of
from firstlight.lab.reports.tables import Section
from firstlight.runs.folder import SAMPLE_NOTE, RunFolder
from firstlight.runs.gather import plain_value
from firstlight.runs.summary import PRUNED, Run, brief, shown
from firstlight.runs.trials import STUDY_FILE
from firstlight.terminal_text import note, only_json, say, write_json

MOST_NAMES = 8  # of groups in a message
OF_ALL_RUNS = ("json", "group_by", "baseline", "scaling", "hold_out", "learning_curves", "log")  # not of two runs


@dataclass
class ReportOptions(JsonOption):
    """Compare all runs and sweeps below a folder, and write report.html, report.md and report.csv there.

    Args:
        folder: The folder of the runs, such as logs, or the folder of one sweep.
        more_folders: Folders of more runs, such as logs/movies/baseline. The files are written into the first folder.
        group_by: The keys in which groups differ, such as `model dropout`. Tasks are always separate. Default: every
            key but the seed, so that a group is one setting with several seeds.
        log: Add the tables of the best groups and the figures to W&B, Trackio or TensorBoard, whichever the runs were
            trained with, as a run of its own, `report of <folder>`.
        open: Open report.html in the browser.
        baseline: The group with which the others are compared, by its values, such as `model=tiny dropout=0.1`
            or `tiny`. Default: the best group with several seeds.
        decide: Compare two settings instead, A and B, by their values, such as `small medium`. If they are undecided,
            print the command that trains as many more seeds as would decide it. Writes no file.
        compare: Compare two runs instead, A and B: their settings, results, curves and changed predictions. Each is a
            run's folder, `latest`, `latest:<task>` or `best:<metric>:<task>`. The page is compare.html in the folder.
        scaling: Also fit a scaling law to a sweep over sizes and budgets, such as experiment=scaling/names, and plot it
            as scaling_fit.png.
        hold_out: With --scaling: runs that the law is not fitted to, by their values, such as `scale=1m`, `1m`
            or `seed=2`, or by their compute, such as `C>1e12`. Their predicted losses are printed next to the measured
            ones.
        learning_curves: Also plot the metric of a sweep over data.max_train_rows against the number of training rows,
            and say where the lines of settings and baselines cross.
        metric: The validation metric that ranks the groups, such as val/accuracy. Default: the one that most runs of a
            task were optimized for.
    """

    folder: Annotated[Path, tyro.conf.Positional] = Path("logs")
    more_folders: Annotated[list[Path], tyro.conf.Positional] = field(default_factory=list)
    group_by: list[str] | None = None
    log: bool = False
    open: bool = False
    baseline: list[str] | None = None
    decide: tuple[str, str] | None = None
    compare: tuple[str, str] | None = None
    scaling: bool = False
    hold_out: list[str] | None = None
    learning_curves: bool = False
    metric: str | None = None


def main() -> None:
    """Parse the command line and report."""
    options = parse(ReportOptions, "report")
    with only_json(wanted=options.json):
        if options.decide is not None:
            decide(options, options.decide)
            return
        if options.compare is None:
            page = report(options)
        else:
            refuse_others(options, "compare", *OF_ALL_RUNS, "more_folders")
            page = compare_runs(options.compare, options.folder, options.metric)
        if options.open:
            open_page(page)


def refuse_others(options: ReportOptions, chosen: str, *others: str) -> None:
    """Raise UserError if an option is given that does not apply to the chosen one."""
    for name in others:
        if getattr(options, name):
            raise UserError(f"--{name.replace('_', '-')} does not apply to --{chosen}; remove it")


def decide(options: ReportOptions, names: tuple[str, str]) -> None:
    """Print the verdict on two settings, and if it is undecided how many more seeds would decide. Raises UserError."""
    refuse_others(options, "decide", *OF_ALL_RUNS, "compare", "open")
    runs, load = gather(options.folder, *options.more_folders), SavedPredictions(options.folder)
    refuse_unknown_metric(options.metric, runs)
    found = boards(runs, direction_of(runs), options.metric)
    groups = [group for board in found for group in board.groups if group.counted]
    for name in names:
        if not any(is_named(group, name) for group in groups):
            known = {short_name({key: value}) for group in groups for key, value in group.keys.items()}
            near = get_close_matches(name, known | {short_name(group.keys) for group in groups}, cutoff=0)
            raise UserError(f"--decide {name}: no finished run has these values; the nearest are {'; '.join(near)}")
    lines: list[str] = []
    for board in found:
        sides = [[run for group in board.groups if is_named(group, name) for run in group.counted] for name in names]
        if any(run in sides[1] for run in sides[0]):
            raise UserError(f"--decide {' '.join(map(shlex.quote, names))}: both name {sides[0][0].folder}; add values")
        lines += decision(board, names, sides, load, options.folder) if all(sides) else []
    if not lines:
        raise UserError(f"--decide {' '.join(map(shlex.quote, names))}: no task has runs of both that can be compared")
    for line in lines:
        say(line)
    load.say_problems()


def is_named(group: Group, name: str) -> bool:
    """Return whether a group has the values of a name such as `small dropout=0.1` or `small · dropout 0.1`."""
    shown_parts = [part.strip().replace(" ", "=") for part in name.split("·")]
    return has_values(group, name.split()) or has_values(group, shown_parts)


def report(options: ReportOptions) -> Path:
    """Read the runs, write the three files and print the best groups. Return the path of the page. Raises UserError."""
    held_out = options.hold_out or []
    if held_out and not options.scaling:
        raise UserError(f"--hold-out {' '.join(held_out)}: requires --scaling; add it")
    runs = gather(options.folder, *options.more_folders)
    refuse_unknown_metric(options.metric, runs)
    refuse_unknown("group-by", options.group_by or [], {key for run in runs for key in run.keys})
    if options.log:
        from firstlight.lab.logged import log_report, nodes_with_figures  # imports Lightning

        configs = (read_config(RunFolder(options.folder / run.folder).config_file) for run in runs if run.is_counted)
        nodes = nodes_with_figures(configs, options.folder)
    falls = direction_of(runs)
    found = boards(runs, falls, options.metric, options.group_by or None)
    references = references_of(options.baseline, found)
    sections = []
    if options.scaling:
        fit = scaling(runs, options.metric, lambda run: has_values(run, held_out), " ".join(held_out))
        sections.append(section_of(fit, options.folder))
    load, of_tests = SavedPredictions(options.folder), SavedPredictions(options.folder, "test")
    if options.learning_curves:
        if sections:
            raise UserError("--learning-curves does not apply to --scaling; leave one of them out")
        sections.append(learning_curves(runs, options.metric, falls, load, options.folder))
    is_table_shown = not sections
    if has_folds(runs) or any(run.has_groups for run in runs):
        from firstlight.lab.reports.folds import cross_validation, groups_section  # imports NumPy

        every = (cross_validation(runs, of_tests, falls, options.metric), groups_section(found, options.folder))
        sections += [each for each in every if each.tables or each.sentences[1:]]
    sections += searches(runs, options.folder)
    most = None if options.baseline else MOST_GROUPS
    found = [  # the folds are compared together and not one by one
        board if has_folds(board.runs) else judged(board, load, place, most)
        for board, place in zip(found, references, strict=True)
    ]
    left = list(not_counted(found, runs))
    for run, why in left:
        if run.status != PRUNED:
            say(f"not counted: {options.folder / run.folder} ({run.status}): {why}", to=sys.stderr)
    if pruned := sum(run.status == PRUNED for run, _ in left):
        say(f"not counted: {pruned} pruned trial{'s' if pruned > 1 else ''} of a search", to=sys.stderr)
    in_order = sorted(found, key=lambda board: -sum(len(group.counted) for group in board.groups))
    ranked = [board for board in in_order if not has_folds(board.runs)]
    title, notes = heading(options, runs, ranked, len(left))
    contents = {
        "report.html": page(title, notes, in_order, runs, falls, load, "\n".join(each.html() for each in sections)),
        "report.md": "\n".join([tables.markdown(title, notes, in_order, runs), *(s.markdown() for s in sections)]),
        "report.csv": (table := runs_table(found, runs)).csv(),
    }
    for each in (load, of_tests):
        each.say_problems()
    for name, content in contents.items():
        whole = content.encode("utf-8", "replace").decode("utf-8")  # half a character of a damaged file becomes a ?
        write_atomically(options.folder / name, whole)
    if options.json:
        result = {"folder": options.folder, "files": list(contents), "notes": notes}
        result |= {"boards": list(map(plain_board, in_order)), "sections": [section.plain() for section in sections]}
        write_json(result | {"runs": [dict(zip(table.headers, row, strict=True)) for row in table.rows]})
    else:
        for section in sections:
            section.show()
        if is_table_shown:
            show(ranked)
    if any(run.is_sample for run in runs):
        say(SAMPLE_NOTE)
    say(f"The report is {options.folder / 'report.html'}")
    if options.log:
        of_sections = (table for section in sections for table in section.tables)
        log_report(options.folder, nodes, [*map(tables.groups_table, ranked), *of_sections])
    return options.folder / "report.html"


def searches(runs: Sequence[Run], folder: Path) -> Iterator[Section]:
    """Yield a section on the importance of the keys of each search among the runs."""
    for place in sorted({(folder / run.folder).parent for run in runs}):
        if (place / STUDY_FILE).is_file():
            if find_spec("optuna") is None:
                note(f"{place}: the importance of the keys of a search requires Optuna: {install_command('optuna')}")
                return
            from firstlight.lab.reports.importance import importance_section  # imports Optuna

            try:
                if section := importance_section(place / STUDY_FILE, place.name):
                    yield section
            except UserError as error:
                say(f"not shown: {error}", to=sys.stderr)


def refuse_unknown_metric(metric: str | None, runs: Sequence[Run]) -> None:
    """Raise UserError for a metric that no run has on validation, by which choices are made."""
    measured = {name for run in runs for name in run.metrics if run.is_counted and name.startswith("val/")}
    refuse_unknown("metric", [metric] if metric else [], measured)


def refuse_unknown(option: str, wanted: Sequence[str], known: Iterable[str]) -> None:
    """Raise UserError for a key or a validation metric that no run has."""
    for name in wanted:
        if name not in known:
            there = ", ".join(sorted(known)) or "those of the finished runs, of which there are none"
            raise UserError(f"--{option} {name} must be one of {there}")


def references_of(wanted: Sequence[str] | None, found: Sequence[Board]) -> list[int | None]:
    """Return for each board the place of the group that --baseline names; None for the best group.

    Raises UserError if no board has such a group, or if a board has several.
    """
    if wanted is None:
        return [None] * len(found)
    places: list[int | None] = []
    for board in found:
        fitting = [place for place, group in enumerate(board.groups) if group.counted and has_values(group, wanted)]
        if len(fitting) > 1:
            names = "; ".join(short_name(board.groups[place].keys) for place in fitting[:MOST_NAMES])
            raise UserError(f"--baseline {' '.join(wanted)}: {board.name} has {len(fitting)} such groups: {names}")
        places.append(fitting[0] if fitting else None)
    if places.count(None) == len(places):
        named = [short_name(group.keys) for board in found for group in board.groups if group.counted and group.keys]
        there = "; ".join(named[:MOST_NAMES]) or "no groups that differ in a key"
        raise UserError(f"--baseline {' '.join(wanted)}: no group has these values; there are {there}")
    return places


def has_values(one: Group | Run, wanted: Sequence[str]) -> bool:
    """Return whether a group or a run has all of some values.

    wanted: `key=value`, with a complete key or its last part, or a value alone.
    """

    def has(word: str) -> bool:
        key, is_pair, value = word.rpartition("=")
        typed = shown(plain_value(value))
        fitting = (own for name, own in one.keys.items() if not is_pair or key in (name, last_part(name)))
        return any(typed in (shown(own), brief(own)) for own in fitting)

    return all(map(has, wanted))


def heading(options: ReportOptions, runs: Sequence[Run], found: Sequence[Board], left: int) -> tuple[str, list[str]]:
    """Return the title of the report and the lines below it. left: the number of runs that are not counted."""
    when = datetime.now().strftime("%Y-%m-%d %H:%M")
    count = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    grouped = ", ".join(options.group_by or ["every key but the seed"])
    ranked = "; ".join(f"{board.name} by {tables.direction(board)}" for board in found) or "nothing"
    notes = [
        f"{when}. {len(runs) - left} of {count} are counted, {left} are not. Grouped by {grouped}.",
        f"Ranked: {ranked}. ± is half of the 95% interval over seeds. The test split is not used for ranking.",
        "Better and worse mean: significant both over seeds and over the validation texts (5%, Holm).",
    ]
    tested = {
        board.name: sum(each is not None and each.half_width is not None for each in board.verdicts) for board in found
    }
    if counts := "; ".join(f"{name}: {count}" for name, count in tested.items() if count):
        widened = "widened by Holm's method to a family-wise 95% over the comparisons of a table"
        notes.append(f"A difference is ± half of its 95% interval, {widened} ({counts}).")
    if any(run.is_sample for run in runs):
        notes.append(f"{SAMPLE_NOTE} These runs are marked {tables.SAMPLE_MARK} and ranked among themselves.")
    return f"{options.folder}: {count}", notes


def show(found: Sequence[Board]) -> None:
    """Print the best groups of each task."""
    from firstlight.console import wide_console

    console = wide_console()
    for board in found:
        if board.finding:
            console.print(board.finding, soft_wrap=True)
        console.print(tables.groups_table(board).on_terminal())
        left = sum(not tables.is_pruned(group) for group in board.groups) - tables.GROUPS_ON_TERMINAL
        if left > 0:
            console.print(f"… and {left} more groups in the files")
