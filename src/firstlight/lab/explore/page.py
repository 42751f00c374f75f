"""HTML page with all figures of an exploration, in one file that works offline."""

import base64
import sys
import warnings
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from matplotlib.figure import Figure

from firstlight.figures import style
from firstlight.files.atomic import write_atomically
from firstlight.kind.kind import Drawing
from firstlight.kind.results import Drawn
from firstlight.runs.folder import SAMPLE_NOTE
from firstlight.terminal_text import say

NAME = "figures.html"
OF_TRAINING = ("embeddings", "curves", "comparison")  # figures that show a training, whatever data the others show
TRAINED_ON_SAMPLE_NOTE = "The run was trained on a GENERATED SAMPLE. The data in the figures is real."


class Shown(NamedTuple):
    """Figure on the page. printed: the notes that are also printed. is_sample: whether it shows generated data."""

    name: str
    caption: str
    notes: list[str]
    printed: list[str]
    figure: Figure
    image: Path
    is_sample: bool


class Page:
    """Page with figures and captions, in a separate folder.

    is_sample: whether the data that is drawn is generated. is_trained_on_sample: whether that of the training was,
    which the figures OF_TRAINING show; by default the data is the same.
    """

    def __init__(
        self, folder: Path, title: str, subtitle: str, *, is_sample: bool, is_trained_on_sample: bool | None = None
    ) -> None:
        self.folder, self.title, self.subtitle, self.is_sample = folder, title, subtitle, is_sample
        self.is_trained_on_sample = is_sample if is_trained_on_sample is None else is_trained_on_sample
        self.shown: list[Shown] = []
        self.left_out: list[tuple[str, str]] = []

    @property
    def sample_note(self) -> str | None:
        """The note that the data of the figures or of the training is generated."""
        if self.is_sample:
            return SAMPLE_NOTE
        return TRAINED_ON_SAMPLE_NOTE if self.is_trained_on_sample else None

    def add(self, drawing: Drawing, drawn: Drawn, *, is_asked_for: bool) -> None:
        """Save a figure as PNG and SVG, and add it to the page. is_asked_for: also print its details."""
        is_sample = self.is_trained_on_sample if drawing.name in OF_TRAINING else self.is_sample
        if is_sample:
            style.mark_sample(drawn.figure)
        notes = list(dict.fromkeys(drawn.notes))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            image = style.save(drawn.figure, self.folder / f"{drawing.name}.png")
            drawn.figure.set_layout_engine("none")  # saving the PNG has computed the layout, which is slow
            style.save(drawn.figure, self.folder / f"{drawing.name}.svg")
        if any("missing from font" in str(warning.message) for warning in caught):
            notes.append("boxes are characters that are not in the font")
        printed = [*notes, *drawn.details] if is_asked_for else notes
        details = [*notes, *drawn.details]
        self.shown.append(Shown(drawing.name, drawing.caption, details, printed, drawn.figure, image, is_sample))

    def leave_out(self, drawing: Drawing, reason: str) -> None:
        """Add a figure that could not be drawn, with the reason."""
        self.left_out.append((drawing.name, reason))

    def print_notes(self) -> None:
        """Print each note once on standard error, with the names of its figures."""
        about: dict[str, list[str]] = {}
        for shown in self.shown:
            for note in shown.printed:
                about.setdefault(note, []).append(shown.name)
        for note, names in about.items():
            say(f"note: {', '.join(names)}: {note}", to=sys.stderr)

    def write(self) -> Path:
        """Write the page and return its path."""
        parts = [f"<h1>{escape(self.title)}</h1>"]
        if self.subtitle:
            parts.append(f"<p>{escape(self.subtitle)}</p>")
        if self.sample_note is not None:
            parts.append(f'<p class="sample">{escape(self.sample_note)}</p>')
        links = (f'<a href="#{shown.name}">{shown.name}</a>' for shown in self.shown)
        parts.append(f"<nav>{' '.join(links)}</nav>")
        parts += [self._figure(shown) for shown in self.shown]
        if self.left_out:
            reasons = (f"<li>{escape(name)}: {escape(reason)}</li>" for name, reason in self.left_out)
            parts.append(f"<h2>Not drawn</h2>\n<ul>{''.join(reasons)}</ul>")
        path = self.folder / NAME
        template = Template((files("firstlight.lab.explore") / "page.html").read_text(encoding="utf-8"))
        write_atomically(path, template.substitute(title=escape(self.title), body="\n".join(parts)))
        return path

    def _figure(self, shown: Shown) -> str:
        image = base64.b64encode(shown.image.read_bytes()).decode()
        caption = escape(shown.caption)
        sample = ' <span class="sample">Generated sample.</span>' if shown.is_sample else ""
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in shown.notes)
        return (
            f'<figure id="{shown.name}">\n<h2>{shown.name.replace("_", " ").capitalize()}</h2>\n'
            f'<img alt="{escape(shown.figure.get_suptitle(), quote=True)}" src="data:image/png;base64,{image}">\n'
            f"<figcaption>{caption}{sample}{notes}</figcaption>\n</figure>"
        )
