"""HTML page with all figures of an exploration, in one file that works offline."""

import base64
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from firstlight.figures import style
from firstlight.files.atomic import replacing, write_atomically
from firstlight.kind.kind import Drawn
from firstlight.lab import framed, rendered
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
    which the figures OF_TRAINING show. shown: what the page has of each figure, by name. left_out: the names of the
    figures that cannot be drawn, by the reason. film: the title and the image of each frame of the film, by step.
    """

    folder: Path
    title: str
    subtitle: str
    is_sample: bool
    is_trained_on_sample: bool = False
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    film: dict[int, dict[str, str]] = field(default_factory=dict)
    _printed: dict[str, list[str]] = field(default_factory=dict)

    @property
    def sample_note(self) -> str | None:
        """The note that the data of the figures or of the training is generated."""
        if self.is_sample:
            return SAMPLE_NOTE
        return TRAINED_ON_SAMPLE_NOTE if self.is_trained_on_sample else None

    def add(self, drawing: Drawing, drawn: Drawn) -> None:
        """Save a figure as PNG and SVG, and add it to the page. The page has its title as text."""
        title = drawn.figure.get_suptitle() or drawing.name
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
        group, image_text = GROUPS[drawing.module.rpartition(".")[2]], encoded(image)
        facts = {"group": group, "title": title, "image": image_text, "caption": drawing.caption}
        self.shown[drawing.name] = facts | {"is_sample": is_sample, "notes": notes}

    def add_film(self, frames: Mapping[int, Drawn]) -> Path:
        """Save the film of a training as a GIF, add its frames to the page, and return the path of the GIF."""
        images: list[Any] = []
        for step, drawn in frames.items():
            if self.is_trained_on_sample:
                style.mark_sample(drawn.figure)
            drawn.figure.savefig(image := BytesIO(), format="png")
            self.film[step] = {"title": drawn.figure.get_suptitle(), "image": encoded(image)}
            images.append(Image.open(image).convert("P", palette=Image.Palette.ADAPTIVE))
        path = self.folder / "film.gif"
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as unfinished:
            images[0].save(unfinished, format="GIF", save_all=True, append_images=images[1:], duration=FRAME, loop=0)
        return path

    def write(self) -> Path:
        """Write the page and return its path. Print each note once on standard error, with the names of its figures."""
        for note, drawn in self._printed.items():
            say(f"note: {', '.join(drawn)}: {note}", to=sys.stderr)
        left_out = {FOLDERS.sub("…/", why): names for why, names in self.left_out.items()}
        body = rendered("explore/page.html", page=self, left_out=left_out)
        path = self.folder / NAME
        write_atomically(path, framed(self.title, body, ("explore/page.css",)))
        return path


def encoded(image: BytesIO) -> str:
    """Return the bytes of an image in base 64, for the address of an element `img`."""
    return base64.b64encode(image.getvalue()).decode()
