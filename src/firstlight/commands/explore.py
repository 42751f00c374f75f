"""Figures of what a run has learned and of its data, with a page that shows all of them."""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from firstlight.command_options import parse
from firstlight.commands.frame import open_page
from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_config
from firstlight.invocation import invocation
from firstlight.kind.data_changes import DataChanges
from firstlight.kind.kind import NothingToDrawError
from firstlight.kind.load import import_lightning, load, run_for
from firstlight.kind.registry import KINDS, OWN, kind_of_saved
from firstlight.lab.explore.catalog import Drawing, choose, drawings, traits_of
from firstlight.runs.folder import RunFolder, refuse_links
from firstlight.runs.identity import plain
from firstlight.terminal_text import note, say

if TYPE_CHECKING:
    from firstlight.kind.subject import Subject
    from firstlight.lab.explore.page import Page

NAMES = ", ".join(drawing.name for drawing in drawings(OWN))
OF_SEVERAL_RUNS = {"head_scores", "head_development"}
FIGURES = f"Names of figures; by default all that apply to the run or task, without those for lessons: {NAMES}."


@dataclass
class ExploreOptions:
    """Plot what a trained run has learned, or with --task instead of a run, the data of a task.

    Every figure is written as PNG and SVG. The page figures.html shows all of them and explains what to look for.

    Args:
        run: The run: its folder, `latest`, `latest:<task>`, `latest-sweep`, `best:<metric>` or `best:<metric>:<task>`,
            such as latest:names or best:val/loss:names.
        text: The text for figures of attention, attributions and continuations. Default: one of the validation split.
        against: Another text with as many tokens, for the figure `patching`. Default: the text with one token changed.
        compare: Other runs, such as those of other seeds, for the figures `head_scores` and `head_development`. Heads
            with the same role are paired, and the figure shows their mean. The run itself may be among them.
        film: Make the film of the training from the checkpoints of callbacks.checkpoint.keep_every: film.gif, and the
            steps in figures.html. Without --figures, no other figure is made.
        task: Plot the data of this task, instead of a run.
        log: Add the figures to the run in W&B, Trackio or TensorBoard, whichever it was trained with.
        open: Open figures.html in the browser.
        checkpoint: The checkpoint of the run to use.
        log_dir: The folder below which `latest` and `best` search runs, and in which the figures of a task are written.
        config_dir: With --task: a folder of your own configuration files, which take precedence over ./conf.
    """

    run: Annotated[str | None, tyro.conf.Positional] = None
    figures: Annotated[list[str], tyro.conf.arg(help=FIGURES)] = field(default_factory=list)
    text: str | None = None
    against: str | None = None
    compare: list[str] = field(default_factory=list)
    film: bool = False
    task: str | None = None
    data: DataChanges = field(default_factory=DataChanges)
    log: bool = False
    open: bool = False
    checkpoint: Literal["best", "last"] = "best"
    log_dir: Path = Path("logs")
    config_dir: Path | None = None


def main() -> None:
    """Parse the command line and draw."""
    options = parse(ExploreOptions, "explore")
    page = explore(options)
    if options.open:
        open_page(page)


def explore(options: ExploreOptions) -> Path:
    """Make the figures, write them to the folder `figures` and print its path. Return the path of the page."""
    if (options.run is None) == (options.task is None):
        raise UserError("give either a run, such as latest, or --task, which plots only its data")
    if options.text is not None and not options.text.strip():
        raise UserError("--text is empty; write a text, or omit the option")
    if options.task is not None:
        return _explore_task(options)
    assert options.run is not None
    return _explore_run(options, run_for("explore", options.run, options.log_dir))


def shows_sample(subject: "Subject") -> bool:
    """Return whether the data in the figures of a run is generated: its own, or the data that the user named."""
    with suppress(NothingToDrawError):
        if subject.data_changes.given():
            return bool(subject.data.source.kind.value == "sample")
    return subject.is_sample


def _explore_run(options: ExploreOptions, folder: RunFolder) -> Path:
    if options.log and options.film and not options.figures:
        raise UserError("--log does not add the film; name figures by --figures, or omit --log")
    refuse_links(folder.path, "" if options.log else "figures")
    config = config_of_network(folder)
    try:
        traits = traits_of(config, is_run=True)
    except (KeyError, TypeError) as error:
        raise UserError(f"{folder.config_file} is missing or broken ({error}); train the run again") from error
    compared = f"--compare {' '.join(options.compare)}"
    others = {(each := run_for("explore", name, options.log_dir)).path.resolve(): each for name in options.compare}
    others.pop(folder.path.resolve(), None)
    if options.compare and not others:
        raise UserError(f"{compared}: this is the run itself; name another run")
    if others and options.figures and not OF_SEVERAL_RUNS & {*options.figures}:
        raise UserError(f"{compared}: no figure of --figures shows several runs; add head_scores, or omit --compare")
    kind = kind_of_saved(config["model"])
    what = f"this run, a {kind.noun} ({config['model'].get('architecture', kind.noun)})"
    drawings = [] if options.film and not options.figures else choose(options.figures, traits, what)
    import_lightning()
    from firstlight.kind.subject import Subject
    from firstlight.lab.explore.page import Page

    if options.log:
        from firstlight.lab.logged import log_exploration, nodes_with_figures

        nodes = nodes_with_figures([config], folder.path)
    loaded = load(str(folder.path), checkpoint=options.checkpoint)
    if loaded.kind != kind.name:
        found = KINDS[loaded.kind].noun
        problem = f"{folder.config_file} describes a {kind.noun}, but the checkpoint is that of a {found}"
        raise UserError(f"{problem}; restore one")
    loaded_others = [load(str(each.path)) for each in others.values()]
    for other in (each for each in loaded_others if each.kind != loaded.kind):
        problem = f"{compared}: {other.folder.path} is a {KINDS[other.kind].noun}"
        raise UserError(f"{problem}, and the run is a {kind.noun}; name runs of one kind")
    subject = Subject(
        loaded.config, loaded, loaded_others, options.text, options.against, options.data, log_dir=options.log_dir
    )
    record = folder.read()
    title = f"{record.get('task')}, {record.get('model')}"
    where = f"{folder.path.name}, the {options.checkpoint} checkpoint, {record.get('parameters') or 0:,} parameters"
    page = Page(folder.path / "figures", title, where, shows_sample(subject), subject.is_sample)
    if options.film:
        from firstlight.lab.explore import film

        say(f"the film is {page.add_film(film.film(subject))}")
    if drawings:
        draw(drawings, subject, page)
    path = finish(page)
    if options.log:
        log_exploration(folder, config, nodes, [page.folder / f"{name}.png" for name in page.shown])
    return path


def _explore_task(options: ExploreOptions) -> Path:
    for name in ("text", "against", "compare", "film", "log"):
        if getattr(options, name):
            raise UserError(f"--{name} requires a run, and --task {options.task} plots only data; omit the option")
    from firstlight.config.checks import compose_task

    assert options.task is not None
    folder = options.log_dir / options.task / "figures"
    composed = compose_task(options.task, options.data, options.log_dir, folder)
    config = plain(composed)
    drawings = choose(options.figures, traits_of(config, is_run=False), f"--task {options.task} without a run")
    import_lightning()
    from firstlight.kind.subject import Subject
    from firstlight.lab.explore.page import Page

    subject = Subject(config, data_node=composed.data, log_dir=options.log_dir)
    page = Page(folder, f"The data of {options.task}", "", subject.is_sample)
    draw(drawings, subject, page)
    return finish(page)


def config_of_network(folder: RunFolder) -> dict[str, Any]:
    """Return the resolved config of a run from its file, without loading the checkpoint and torch."""
    config = read_config(folder.config_file)
    if not all(isinstance(config.get(key), dict) for key in ("model", "data")):
        problem = f"{folder.path} is a baseline of `{invocation('baseline')}`, which has no network"
        raise UserError(f"{problem}; name a trained run")
    return config


def draw(drawings: list[Drawing], subject: "Subject", page: "Page") -> None:
    """Plot and save the figures one by one. Raises UserError if none of them can be drawn."""
    for drawing in drawings:
        try:
            page.add(drawing, drawing.draw(subject))
        except NothingToDrawError as error:
            page.left_out.setdefault(str(error), []).append(drawing.name)
    if not page.shown:
        raise UserError(f"nothing can be drawn: {next(iter(page.left_out), 'no figure applies')}")
    for reason, names in page.left_out.items():
        note(f"not drawn: {', '.join(names)}: {reason}")


def finish(page: "Page") -> Path:
    """Write the page and print its path."""
    path = page.write()
    if page.sample_note is not None:
        say(page.sample_note)
    count = "1 figure is" if len(page.shown) == 1 else f"{len(page.shown)} figures are"
    say(f"{count} in {page.folder}; to see all, open {path}" if page.shown else f"to see all steps, open {path}")
    return path
