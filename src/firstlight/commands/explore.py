"""Figures of what a run has learned and of what it was trained on, with a page that shows them all."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from firstlight import browser, config_files
from firstlight.command_options import parse
from firstlight.commands.frame import run_module
from firstlight.errors import UserError
from firstlight.explore.catalog import NAMES, check_names, choose, traits_of
from firstlight.files.plain_yaml import read_config
from firstlight.invocation import invocation
from firstlight.kinds.data_changes import DataChanges
from firstlight.kinds.drawn import Drawn, NothingToDrawError
from firstlight.kinds.found import run_for
from firstlight.kinds.kind import Drawing, get
from firstlight.kinds.registry import KINDS, kind_of_saved
from firstlight.runs.folder import RunFolder, refuse_links
from firstlight.runs.identity import plain
from firstlight.terminal_text import note, say

if TYPE_CHECKING:
    from firstlight.explore.page import Page, Shown
    from firstlight.kinds.subject import Subject

FIGURES = f"Which figures, all that fit by default: {', '.join(NAMES)}."


@dataclass
class ExploreOptions:
    """Draw what a trained run has learned, or with --task and no run, what a task's data is like.

    Every figure is written as PNG and SVG, and figures.html shows all of them with what to look for.
    """

    run: Annotated[str | None, tyro.conf.Positional] = None
    """The run: its folder, `latest`, `latest:<task>`, `best:<metric>` or `best:<metric>:<task>`, such as
    latest:names or best:val/loss:names."""
    figures: Annotated[list[str], tyro.conf.arg(help=FIGURES)] = field(default_factory=list)
    text: str | None = None
    """What is attended to, attributed, continued or coloured; one of the validation split by default."""
    compare: str | None = None
    """Another run, drawn beside the first in the figure `comparison`."""
    task: str | None = None
    """Without a run: draw the data of this task."""
    block: int | None = None
    """Which attention the figure attention_head enlarges, counted from 1 in the order of the figure attention."""
    head: int | None = None
    """Which of its heads, counted from 1."""
    data: DataChanges = field(default_factory=DataChanges)
    open: bool = False
    """Open figures.html in the browser."""
    log: bool = False
    """Send the figures to the run's own loggers too: TensorBoard, or W&B as a run of the same group."""
    checkpoint: Literal["best", "last"] = "best"
    """Which of the run's checkpoints."""
    log_dir: Path = Path("logs")
    """The folder below which `latest` and `best` search runs, and in which the figures of a task are written."""
    config_dir: Path | None = None
    """With --task: a folder with settings of your own, which come before those of ./conf."""


def main() -> None:
    """Parse the command line and draw."""
    options = parse(ExploreOptions, "explore")
    page = explore(options)
    if options.open:
        browser.show(page)


def explore(options: ExploreOptions) -> Path:
    """Draw, write everything into the folder `figures`, say where it is; returns the page."""
    check_names(options.figures)
    if (options.run is None) == (options.task is None):
        raise UserError("give either a run, such as latest, or --task, whose data alone is drawn")
    if options.text is not None and not options.text.strip():
        raise UserError("--text is empty; write one, or leave it out")
    if options.task is not None:
        return _explore_task(options)
    assert options.run is not None
    return _explore_run(options, run_for("explore", options.run, options.log_dir))


def _explore_run(options: ExploreOptions, folder: RunFolder) -> Path:
    refuse_links(folder.path, "" if options.log else "figures")
    config = config_of_network(folder)
    try:
        traits = traits_of(config, is_run=True)
    except (KeyError, TypeError) as error:
        raise UserError(f"{folder.config_file} is missing or broken ({error}); train the run again") from error
    other = None if options.compare is None else run_for("explore", options.compare, options.log_dir)
    if other is not None:
        if other.path.resolve() == folder.path.resolve():
            raise UserError(f"--compare {options.compare} is the run itself; name another")
        traits |= {"compare"}
    kind = kind_of_saved(config["model"])
    architecture = config["model"].get("architecture", kind.noun)
    drawings = choose(options.figures, traits, f"this run, a {kind.noun} ({architecture})")
    if options.log:
        from firstlight.explore.publish import check_loggers

        check_loggers(config)
    from firstlight.explore.page import Page
    from firstlight.kinds.load import load
    from firstlight.kinds.subject import Subject

    loaded = load(str(folder.path), checkpoint=options.checkpoint)
    if loaded.kind != kind.name:
        other_noun = KINDS[loaded.kind].noun
        raise UserError(
            f"{folder.config_file} describes a {kind.noun}, and the checkpoint is a {other_noun}'s; restore one"
        )
    compared = None if other is None else load(str(other.path))
    subject = Subject(
        *(loaded.config, loaded, compared, options.text, options.block, options.head),
        data_changes=options.data,
        log_dir=options.log_dir,
    )
    record = folder.read()
    page = Page(
        folder.path / "figures",
        f"{record.get('task')}, {record.get('model')}",
        f"{folder.path}, the {options.checkpoint} checkpoint, {record.get('parameters') or 0:,} parameters",
        is_sample=loaded.data_source == "sample",
    )
    shown = draw(drawings, subject, page)
    if options.log:
        from firstlight.explore.publish import publish

        publish(shown, config, record, folder, is_sample=page.is_sample)
    return finish(page)


def _explore_task(options: ExploreOptions) -> Path:
    for name in ("text", "compare", "block", "head"):
        if getattr(options, name) is not None:
            raise UserError(f"--{name} is about a run, and --task {options.task} draws data alone; leave it out")
    if options.log:
        raise UserError("--log sends figures to the loggers of a run, and --task has none; leave it out")
    from firstlight.config.tasks import compose_task

    assert options.task is not None
    names = config_files.choices("task")
    if options.task not in names:
        raise UserError(f"--task {options.task}: there is no such task; there are {', '.join(names)}")
    folder = options.log_dir / options.task / "figures"
    composed = compose_task(options.task, options.data, options.log_dir, folder)
    config = plain(composed)
    drawings = choose(options.figures, traits_of(config, is_run=False), f"--task {options.task} without a run")
    from firstlight.explore.page import Page
    from firstlight.kinds.subject import Subject

    subject = Subject(config, data_node=composed.data, log_dir=options.log_dir)
    page = Page(folder, f"The data of {options.task}", "", is_sample=subject.is_sample)
    draw(drawings, subject, page)
    return finish(page)


def config_of_network(folder: RunFolder) -> dict[str, Any]:
    """The resolved config of a run, from its own file: what its checkpoint says too, but without torch."""
    config = read_config(folder.config_file)
    if not all(isinstance(config.get(key), dict) for key in ("model", "data")):
        raise UserError(
            f"{folder.path} is no run of a network but a result of `{invocation('baseline')}`; name another"
        )
    return config


def draw(drawings: list[Drawing], subject: "Subject", page: "Page") -> "list[Shown]":
    """Draw and save one figure after the other. Raises UserError if none of those asked for can be drawn."""
    failed: list[NothingToDrawError] = []
    for drawing in drawings:
        try:
            drawn: Drawn = get(drawing.function)(subject)
        except NothingToDrawError as error:
            failed.append(error)
            page.leave_out(drawing, str(error))
            continue
        page.add(drawing, drawn)
    if failed and not page.shown:
        raise UserError(f"nothing can be drawn: {failed[0]}")
    for name, reason in page.left_out:
        note(f"{name} is not drawn: {reason}")
    return page.shown


def finish(page: "Page") -> Path:
    """Write the page and say where it is."""
    page.print_notes()
    path = page.write()
    if page.is_sample:
        from firstlight.runs.folder import SAMPLE_NOTE

        say(SAMPLE_NOTE)
    count = "1 figure is" if len(page.shown) == 1 else f"{len(page.shown)} figures are"
    say(f"{count} in {page.folder}; to see all, open {path}")
    return path


if __name__ == "__main__":
    run_module(__spec__.name)
