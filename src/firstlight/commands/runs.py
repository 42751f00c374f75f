"""A list of runs on the terminal, the newest first; notes, tags, and the removal of runs."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from socket import gethostname
from typing import Annotated, Any, Literal

import tyro

from firstlight.command_options import JsonOption, parse
from firstlight.errors import UserError
from firstlight.lab.reports.all_runs import existing_run_folders
from firstlight.lab.reports.listing import Condition, Listed, conditions, in_order, lines, refuse_unknown
from firstlight.runs.folder import RunFolder, run_folders
from firstlight.runs.gather import UNREADABLE, read_run
from firstlight.runs.named import find_run
from firstlight.runs.summary import Run
from firstlight.sweeps.places import NOWHERE, STATES, Place, places_in
from firstlight.terminal_text import note, only_json, say, write_json

MOST = 20  # runs without --all
COLUMNS = ("when", "task", "model", "score", "status", "where", "size", "tags", "note", "folder")
IF_ANY = ("where", "tags", "note")  # of the columns, those that are left out if no run has a value
OF_JSON = (  # keys that every object of --json has, besides those of the list
    *("task", "model", "experiment", "seed", "overrides", "optimized_metric", "data", "parameters", "steps", "seconds"),
)
MOST_OF_A_TAG = 64  # characters
Status = Literal[
    "finished", "running", "interrupted", "pending", "requeued", "pruned", "failed", "incomplete", "unreadable"
]


@dataclass
class RunsOptions(JsonOption):
    """List runs and baselines, the newest first, with the metric that each was optimized for.

    A job on Slurm is shown with its task and its nodes, and one on another computer with its name.

    Args:
        folder: The folder of the runs, by default that of --log-dir, or the folder of one sweep. With --note and --tag:
            a run, by its folder, `latest` or `best:<metric>:<task>`.
        where: Only runs that fulfill all conditions, such as `task=names dropout>0 val/loss<2 tags=good`. Each has a
            column, a metric or a key of the configuration, one of = != < <= > >= ~ (contains), and a value.
        task: Only runs of this task, such as names.
        status: Only runs with this status. interrupted: also killed; pending and requeued: waiting for Slurm; pruned:
            stopped by the pruner of a search; incomplete: a file is damaged; unreadable: metrics.json is damaged, or a
            version before 0.3 wrote it; the report says which.
        sort: Sort by a metric, the best first, or by another column or key, in ascending order.
        columns: The columns to show, such as `folder val/loss optimizer.lr size`.
        all: List all runs instead of the first 20.
        note: Write a note to a run, and list it. An empty text removes the note.
        tag: Add tags to a run.
        untag: Remove tags from a run.
        watch: Show the runs while they train, until Ctrl-C: step, metric, speed, time to go. --where chooses runs.
        prune: Remove the runs that fulfill conditions, such as status=failed, after a question. Runs that train, and
            those from whose weights others were trained, are kept. So are finished and interrupted runs, unless the
            conditions name their status.
        prune_checkpoints: Remove all checkpoints but the best of the finished runs that fulfill conditions.
        yes: With --prune and --prune-checkpoints: ask nothing.
        log_dir: The folder of the runs, below which `latest` and `best` search, too.
    """

    folder: Annotated[Path | None, tyro.conf.Positional] = None
    where: list[str] = field(default_factory=list)
    task: str | None = None
    status: Status | None = None
    sort: str | None = None
    columns: list[str] = field(default_factory=list)
    all: bool = False
    note: str | None = None
    tag: list[str] = field(default_factory=list)
    untag: list[str] = field(default_factory=list)
    watch: bool = False
    prune: list[str] = field(default_factory=list)
    prune_checkpoints: list[str] = field(default_factory=list)
    yes: bool = False
    log_dir: Path = Path("logs")

    @property
    def place(self) -> Path:
        """The folder that is listed."""
        return self.log_dir if self.folder is None else self.folder

    @property
    def conditions(self) -> list[Condition]:
        """The conditions of --where, --task and --status. Raises UserError."""
        short = [Condition(key, "=", value) for key in ("task", "status") if (value := getattr(self, key)) is not None]
        return [*conditions("--where", self.where), *short]


def main() -> None:
    """Parse the command line and print the list."""
    options = parse(RunsOptions, "runs")
    with only_json(wanted=options.json):
        if options.note is not None or options.tag or options.untag:
            annotate(options)
        elif options.watch:
            from firstlight.lab.reports.watching import watch  # imports rich

            watch(options.place, options.conditions)
        elif options.prune or options.prune_checkpoints:
            prune(options, "--prune" if options.prune else "--prune-checkpoints")
        else:
            show(options)


def show(options: RunsOptions) -> None:
    """Print the list. Raises UserError."""
    wanted, folders = options.conditions, newest_first(options.place)
    found: Iterator[Listed] = (each for each in all_listed(folders) if each.fulfills(wanted))
    if options.sort is not None:
        known = list(found)
        refuse_unknown("--sort", [options.sort], known) if known else None
        found = iter(in_order(known, options.sort))
    runs = list(islice(found, None if options.all else MOST))
    if not runs:
        every = list(all_listed(folders))
        tasks = {str(each.run.task) for each in every if each.run.task is not None}
        if options.task is not None and options.task not in tasks:
            there_are = f"there are runs of {', '.join(sorted(tasks))}" if tasks else "no run can be read"
            raise UserError(f"--task {options.task}: no run below {options.place} has this task; {there_are}")
        refuse_unknown("--where", [each.key for each in wanted], every)
    if options.json:
        write_json([plain(each, options.columns) for each in runs])
    elif not runs:
        say(f"no run below {options.place} has {' '.join(''.join(each) for each in wanted)}")
    else:
        table(runs, options.columns)
    if next(found, None) is not None:
        order = f"the first {len(runs)} runs by {options.sort}" if options.sort else f"the newest {len(runs)} runs"
        note(f"these are {order}; --all lists all")


def table(runs: Sequence[Listed], columns: Sequence[str]) -> None:
    """Print the runs. columns: those to show; the default ones if there are none."""
    refuse_unknown("--columns", [name for name in columns if name != "folder"], runs)
    names = columns or [name for name in COLUMNS if name not in IF_ANY or any(each.value(name) for each in runs)]
    for line in lines([names, *([each.cell(name) for name in names] for each in runs)]):
        say(line)


def plain(listed: Listed, columns: Sequence[str]) -> dict[str, Any]:
    """Return a run for JSON: some columns, or without any all of its record."""
    if columns:
        return {name: listed.value(name) for name in columns}
    run, record = listed.run, dict[str, Any]()
    if run.status not in (UNREADABLE, "pending") and RunFolder(listed.path).is_run():
        record = RunFolder(listed.path).read(may_be_later=True)
    own: dict[str, Any] = {"folder": run.folder, "status": run.status, "reason": run.why or None, "size": listed.size}
    written = datetime.fromtimestamp(listed.when).astimezone().isoformat(timespec="seconds")
    own |= {"written": written, "tags": run.tags, "note": run.note or None, "metrics": run.metrics}
    return own | dict.fromkeys(OF_JSON) | record | own


def annotate(options: RunsOptions) -> None:
    """Change the note and the tags of a run, and list it. Raises UserError."""
    for tag in options.tag:
        if not (tag.isprintable() and 0 < len(tag) <= MOST_OF_A_TAG) or " " in tag:
            raise UserError(f"--tag {tag[:MOST_OF_A_TAG]!r}: must have 1 to {MOST_OF_A_TAG} characters and no space")
    folder = find_run(str(options.place), options.log_dir, lambda _: True)
    run = read_run(folder, str(folder.path))
    if unknown := set(options.untag) - set(run.tags):
        raise UserError(f"--untag {min(unknown)}: the run has the tags {', '.join(run.tags) or '(none)'}; name one")
    tags = [tag for tag in dict.fromkeys([*run.tags, *options.tag]) if tag not in options.untag]
    folder.annotate(run.note if options.note is None else options.note, tags)
    show(replace(options, folder=folder.path))


def prune(options: RunsOptions, option: str) -> None:
    """Remove runs or checkpoints. option: --prune or --prune-checkpoints. Raises UserError."""
    from firstlight.lab.reports.removal import remove  # imports rich

    wanted = conditions(option, options.prune or options.prune_checkpoints)
    if not wanted or options.json or (options.prune and options.prune_checkpoints):
        raise UserError(f"{option} requires conditions, such as status=failed, and no other task; correct it")
    runs = all_listed(newest_first(options.place))
    others = {*run_folders(options.place), *run_folders(options.log_dir)}
    only_checkpoints = bool(options.prune_checkpoints)
    remove(runs, [*options.conditions, *wanted], others, only_checkpoints=only_checkpoints, is_certain=options.yes)


def newest_first(folder: Path) -> list[tuple[float, Path]]:
    """Return the folders of runs with the time at which each was written last. Raises UserError if there are none.

    The folders of jobs that wait for Slurm are among them, which do not exist yet.
    """
    files = [file for depth in ("", "*/", "sweeps/*/") for file in folder.glob(f"{depth}{STATES}")]
    pending = [(file.stat().st_mtime, file.parents[1] / name) for file in files for name in places_in(file.parents[1])]
    new = [(when, path) for when, path in pending if not path.exists()]
    waiting = [(when, path) for when, path in new if place_of(path).status("waiting") != "waiting"]
    existing = run_folders(folder) if waiting else existing_run_folders(folder)
    found = waiting + [(written_at(path), path) for path in existing]
    return sorted(found, key=lambda pair: (-pair[0], pair[1]))


def written_at(folder: Path) -> float:
    """Return the time at which a run's record was written last, as seconds since 1970; 0 if the run was removed."""
    for path in (RunFolder(folder).metrics_file, folder):
        with suppress(FileNotFoundError):
            return path.stat().st_mtime
    return 0


_places = cache(places_in)


def place_of(folder: Path) -> Place:
    """Return where Slurm has the job of a folder."""
    return _places(folder.parent).get(folder.name, NOWHERE)


def all_listed(folders: Sequence[tuple[float, Path]]) -> Iterator[Listed]:
    """Yield the runs of some folders, of which those on Slurm may not exist yet."""
    for when, path in folders:
        place, is_there = place_of(path), path.is_dir()
        run = read_run(RunFolder(path), str(path)) if is_there else Run(str(path), "waiting")
        run = replace(run, status=place.status(run.status))
        if is_there or run.status == "pending":
            yield Listed(run, path, when, str(place) or (run.host if run.host and run.host != gethostname() else ""))
