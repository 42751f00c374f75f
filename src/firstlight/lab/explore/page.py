"""HTML page with all figures of an exploration, in one file that works offline."""

import base64
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from firstlight.figures import style
from firstlight.files.atomic import replacing, write_atomically
from firstlight.kind.kind import Drawn
from firstlight.lab import framed
from firstlight.lab.explore.catalog import Drawing
from firstlight.runs.folder import SAMPLE_NOTE
from firstlight.terminal_text import say

NAME = "figures.html"
GROUPS = {
    "data": "The data",
    "figures": "The predictions",
    "network": "The network",
    "interventions": "What the parts of the network do",
    "training": "The training",
}  # by module
OF_TRAINING = ("embeddings", "curves", "head_scores", "head_development")  # whatever data the other figures show
FOLDERS = re.compile(r"(?<!\S)/\S*/")  # of a path; the page may be given to others
FRAME = 700  # milliseconds of a frame of the film
TRAINED_ON_SAMPLE_NOTE = "The run was trained on a GENERATED SAMPLE. The data in the figures is real."


@dataclass
class Page:
    """Page with figures and captions, in a separate folder.

    is_sample: whether the data that is drawn is generated. is_trained_on_sample: whether that of the training was,
    which the figures OF_TRAINING show. shown: the group and the HTML of each figure. left_out: the figures that cannot
    be drawn, with the reasons.
    """

    folder: Path
    title: str
    subtitle: str
    is_sample: bool
    is_trained_on_sample: bool = False
    shown: dict[str, tuple[str, str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    film: str = ""  # the part of the page with the film
    _printed: dict[str, list[str]] = field(default_factory=dict)

    @property
    def sample_note(self) -> str | None:
        """The note that the data of the figures or of the training is generated."""
        if self.is_sample:
            return SAMPLE_NOTE
        return TRAINED_ON_SAMPLE_NOTE if self.is_trained_on_sample else None

    def add(self, drawing: Drawing, drawn: Drawn) -> None:
        """Save a figure as PNG and SVG, and add it to the page. The page has its title as text."""
        title = escape(drawn.figure.get_suptitle() or drawing.name)
        is_sample = self.is_trained_on_sample if drawing.name in OF_TRAINING else self.is_sample
        if is_sample:
            style.mark_sample(drawn.figure)
        notes = list(dict.fromkeys(drawn.notes))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            style.save(drawn.figure, self.folder / f"{drawing.name}.png")
            drawn.figure.set_layout_engine("none")  # saving the PNG has computed the layout, which is slow
            style.save(drawn.figure, self.folder / f"{drawing.name}.svg")
            drawn.figure.suptitle("")
            drawn.figure.savefig(image := BytesIO(), format="svg", bbox_inches="tight")
        if any("missing from font" in str(warning.message) for warning in caught):
            notes.append("boxes are characters that are not in the font")
        for note in notes:
            self._printed.setdefault(note, []).append(drawing.name)
        badge = ' <span class="sample">Generated sample.</span>' if is_sample else ""
        explained = "".join(f'<p class="note">{escape(note)}</p>' for note in notes)
        html = (
            f'<figure id="{drawing.name}">\n<h3>{title}</h3>\n<a href="#{drawing.name}"><img class="figure" '
            f'alt="{title}" src="data:image/svg+xml;base64,{base64.b64encode(image.getvalue()).decode()}"></a>\n'
            f"<figcaption>{escape(drawing.caption)}{badge}{explained}</figcaption>\n</figure>"
        )
        self.shown[drawing.name] = GROUPS[drawing.module.rpartition(".")[2]], html

    def add_film(self, frames: Mapping[int, Drawn], caption: str) -> Path:
        """Save the film of a training as a GIF, add its frames to the page, and return the path of the GIF."""
        images: list[Any] = []
        parts: list[str] = []
        for step, drawn in frames.items():
            if self.is_trained_on_sample:
                style.mark_sample(drawn.figure)
            drawn.figure.savefig(image := BytesIO(), format="png")
            checked = " checked" if len(parts) == len(frames) - 1 else ""
            source = base64.b64encode(image.getvalue()).decode()
            parts.append(
                f'<input type="radio" name="film" id="step{step}"{checked}><label for="step{step}">{step:,}</label>'
                f'<img class="figure" alt="{escape(drawn.figure.get_suptitle())}" src="data:image/png;base64,{source}">'
            )
            images.append(Image.open(image).convert("P", palette=Image.Palette.ADAPTIVE))
        self.film = (
            f'<h2>The film of the training</h2>\n<figure id="film">\n<fieldset class="film"><legend>Step</legend>'
            f"{''.join(parts)}</fieldset>\n<figcaption>{escape(caption)}</figcaption>\n</figure>"
        )
        path = self.folder / "film.gif"
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            options: dict[str, Any] = {"append_images": images[1:], "duration": FRAME, "loop": 0}
            images[0].save(unfinished, format="GIF", save_all=True, **options)
        return path

    def write(self) -> Path:
        """Write the page and return its path. Print each note once on standard error, with the names of its figures."""
        for note, drawn in self._printed.items():
            say(f"note: {', '.join(drawn)}: {note}", to=sys.stderr)
        parts = [f"<p>{escape(self.subtitle)}</p>"]
        if self.sample_note is not None:
            parts.append(f'<p class="sample">{escape(self.sample_note)}</p>')
        links, figures = [], []
        for group in dict.fromkeys(group for group, _ in self.shown.values()):
            mine = {name: html for name, (its, html) in self.shown.items() if its == group}
            names = {name: name.replace("_", " ").capitalize() for name in mine}
            links += [f"<p>{group}</p>", *(f'<a href="#{name}">{shown}</a>' for name, shown in names.items())]
            figures += [f'<h2>{group}</h2>\n<div class="figures">', *mine.values(), "</div>"]
        links += ['<p>The film</p><a href="#film">Film</a>'] if self.film else []
        parts += ['<div class="page">\n<nav aria-label="figures">', *links, f"</nav>\n<main>{self.film}", *figures]
        if self.left_out:
            left = (f"<li>{escape(name)}: {escape(FOLDERS.sub('…/', why))}</li>" for name, why in self.left_out.items())
            parts.append(f"<h2>Not drawn</h2>\n<ul>{''.join(left)}</ul>")
        parts.append("</main>\n</div>")
        path = self.folder / NAME
        write_atomically(path, framed(self.title, "\n".join(parts), ("explore/page.css",)))
        return path
