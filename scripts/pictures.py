"""Make the pictures of docs/images, each with the labels that it shows in its metadata.

  python scripts/pictures.py                      # lists the pictures
  python scripts/pictures.py playground.png       # makes this one, by the commands in RECIPES

A label is a text of the picture that the source code contains. tests/test_pictures.py fails if a label of a picture is
no longer in the source code, and names the picture to make again. The run of the playground is trained on the generated
sample, and scaling_fit.png is drawn from benchmarks/measured. The other pictures require the data of FIRSTLIGHT_DATA.
"""

import ast
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, PngImagePlugin

from lesson_pages import ROOT, commands, run

IMAGES = ROOT / "docs/images"
LABELS = "labels"  # their name in the metadata of a PNG
FEWEST_WORDS = 3  # of a label that is a part of a text
FEWEST_OF_WHOLE = 2  # words of a label that is a whole text
PLAYS = "python src/train.py task=shakespeare model=tiny trainer.max_steps=1500 threads=1 test=false seed=1"
REVIEWS = "python src/train.py task=sentiment model=small threads=1 test=false seed=1"
REVIEW = "It looked great in the box, but it broke after a week and I want my money back."
SAMPLE = """
python src/train.py task=sentiment data.source=sample model=tiny dropout=0 model.token_dropout=0 \\
    optimizer.lr=3e-3 epochs=4 test=false seed=1 threads=1
python src/playground.py latest --export page.html
"""
TERMINAL = (
    "python src/train.py task=shakespeare model=tiny threads=1 test=false \\\n"
    "    trainer.max_steps=1000 trainer.val_check_interval=250 hydra.run.dir=logs/plays",
    "python src/generate.py logs/plays --prompt ROMEO. --seed 1 | fold -s | head -n 10",
)
# Runs a script like Python, but each PNG that matplotlib writes has the texts of its figure in its metadata.
WITH_TEXTS = """
import json, runpy, sys
from matplotlib.figure import Figure
from matplotlib.text import Text
save = Figure.savefig
def save_with_texts(figure, *arguments, **options):
    texts = [each.get_text() for each in figure.findobj(Text) if each.get_visible()]
    if options.get("format") == "png":
        options["metadata"] = {"texts": json.dumps(texts)}
    save(figure, *arguments, **options)
Figure.savefig = save_with_texts
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


SCALING_FIT = """
import json, pathlib, sys
sys.path.append(sys.argv[1])
from result_tables.sweeps import LOSS, draw, rows_of, scaling
record = json.loads(pathlib.Path(sys.argv[1], "measured", "scaling", "shakespeare.json").read_text(encoding="utf-8"))
draw(scaling(rows_of(record), LOSS, lambda _: False, ""), pathlib.Path())
"""


class Drawn(NamedTuple):
    """A picture and its texts. more: options of Pillow's `save`."""

    image: Image.Image
    texts: list[str]
    more: dict[str, Any] = {}  # noqa: RUF012 (only read)


def figures(commands_of: str, *files: str) -> Callable[[Path], list[Drawn]]:
    """Return a function that runs commands in a folder, and returns the figures in files that match patterns."""

    def draw_all(folder: Path) -> list[Drawn]:
        for command in commands(commands_of):
            run(["-c", WITH_TEXTS, *command], folder, data=os.environ["FIRSTLIGHT_DATA"])
        return [drawn(next(folder.glob(file))) for file in files]

    return draw_all


def drawn(file: Path) -> Drawn:
    """Return a figure that WITH_TEXTS has saved."""
    with Image.open(file) as image:
        image.load()
        return Drawn(image, json.loads(image.info["texts"]))


# --- labels ---


@cache
def source_texts() -> str:
    """Return the strings of the Python code without docstrings, and the scripts, pages and YAML files, line by line."""
    found = []
    for file in sorted((ROOT / "src/firstlight").rglob("*.*")):
        if file.suffix == ".py":
            tree = ast.parse(file.read_text(encoding="utf-8"))
            docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
            found += [each.value for each in constants if isinstance(each.value, str) and id(each) not in docstrings]
        elif file.suffix in (".js", ".html", ".yaml"):
            found += file.read_text(encoding="utf-8").splitlines()
    return "\n".join(" ".join(text.split()) for text in found)


def is_written(label: str, source: str) -> bool:
    """Return whether a source code contains a label, as whole words."""
    return re.search(rf"(?<!\w){re.escape(label)}(?!\w)", source) is not None


def labels_in(texts: Iterable[str], source: str) -> list[str]:
    """Return what a source code contains of some texts: whole texts, and the longest parts of several words."""
    found = set()
    for text in texts:
        words, start = text.split(), 0
        while start < len(words):
            ends = range(len(words), start, -1)
            end = next((end for end in ends if is_written(" ".join(words[start:end]), source)), start)
            label = " ".join(words[start:end])
            if end - start >= (FEWEST_OF_WHOLE if end - start == len(words) else FEWEST_WORDS):
                found.add(label)
            start = max(end, start + 1)
    return sorted(found)


def labels_of(picture: Path) -> list[str]:
    """Return the labels in the metadata of a picture, none if it was not made by this script."""
    with Image.open(picture) as image:
        written = image.info.get("comment" if picture.suffix == ".gif" else LABELS, "[]")
    found: list[str] = json.loads(written)
    return found


def save(drawing: Drawn, picture: Path) -> None:
    """Write a picture with the labels of its texts. Raises SystemExit if it has none."""
    labels = labels_in(drawing.texts, source_texts())
    if not labels:
        sys.exit(f"{picture}: the source code contains no text of the picture; it cannot be tested")
    written = PngImagePlugin.PngInfo()
    written.add_itxt(LABELS, json.dumps(labels, ensure_ascii=False))
    metadata = {"pnginfo": written} if picture.suffix == ".png" else {"comment": json.dumps(labels).encode()}
    drawing.image.save(picture, optimize=True, **metadata, **drawing.more)
    size = f"{picture.stat().st_size / 1000:.0f} kB"
    sys.stderr.write(f"{picture}: {size}, {len(labels)} labels: {', '.join(labels)}\n")


# --- the playground ---

# The texts of an element that are shown, except those that the user or the data wrote.
SHOWN = """(element) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) {
        const {parentElement: parent, textContent: text} = walker.currentNode;
        const isOfUser = parent.closest(".word, .example, .name, .verdict, h3, svg, textarea, option");
        if (text.trim() && parent.checkVisibility() && !isOfUser) found.push(text);
    }
    return found;
}"""
EXPLAINED = "() => (({turn, explained}) => turn === explained)(document.querySelector('.inspector').dataset)"
LEFT = (".top", "section > h2", "form.typed label", "article > header", ".answer", "#step-0-tokens")
RIGHT = ("#step-0-heads", "#step-0-arcs", "#step-0-output")
PAGE_WIDTH, SCALE = 540, 1.5


def playground(folder: Path) -> list[Drawn]:
    """Return the picture of an exported page with a run that is trained on the generated sample."""
    for command in commands(SAMPLE):
        run(command, folder)
    return [picture_of_page(folder / "page.html")]


def picture_of_page(file: Path) -> Drawn:
    """Return the picture of a page: in two columns, the answer to a text, and a look inside the network."""
    from playwright.sync_api import sync_playwright

    browsers = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=next(browsers), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": PAGE_WIDTH, "height": 900}, device_scale_factor=SCALE)
        page.goto(file.as_uri())
        page.locator("textarea").fill("The battery is not good.")
        page.wait_for_selector(".answer .word")
        page.locator("summary").press("Enter")
        page.locator(".inspector .word", has_text="not").first.hover()
        page.locator(".grid input").nth(1).uncheck()
        page.wait_for_function(EXPLAINED)
        texts: list[str] = []
        columns = []
        for selectors in (LEFT, RIGHT):
            parts = [page.locator(selector) for selector in selectors]
            texts += [text for part in parts for text in part.evaluate(SHOWN)]
            columns.append(stacked([part.screenshot() for part in parts]))
        browser.close()
    height, gap = max(column.height for column in columns), round(20 * SCALE)
    image = Image.new("RGB", (sum(column.width for column in columns) + 3 * gap, height + 2 * gap), "white")
    image.paste(columns[0], (gap, gap))
    image.paste(columns[1], (2 * gap + columns[0].width, gap))
    return Drawn(image, texts)


def stacked(shots: list[bytes]) -> Image.Image:
    """Return pictures of a page, one below the other."""
    images = [Image.open(BytesIO(shot)).convert("RGB") for shot in shots]
    gap = round(10 * SCALE)
    image = Image.new("RGB", (max(each.width for each in images), sum(each.height + gap for each in images)), "white")
    top = 0
    for each in images:
        image.paste(each, (0, top))
        top += each.height + gap
    return image


# --- the other pictures ---


def film(folder: Path) -> list[Drawn]:
    """Return the film of a training and a generation on a terminal."""
    from record_terminal import record

    frames, durations, texts = record(TERMINAL, folder)
    return [Drawn(frames[0], texts, {"save_all": True, "append_images": frames[1:], "duration": durations, "loop": 0})]


def scaling_fit(folder: Path) -> list[Drawn]:
    """Return the figure of the scaling law whose losses are in benchmarks/measured."""
    (folder / "fit.py").write_text(SCALING_FIT, encoding="utf-8")
    run(["-c", WITH_TEXTS, "fit.py", str(ROOT / "benchmarks")], folder)
    return [drawn(folder / "scaling_fit.png")]


RECIPES: dict[tuple[str, ...], Callable[[Path], list[Drawn]]] = {
    ("playground.png",): playground,
    ("terminal.gif",): film,
    ("attributions.png",): figures(
        f'{REVIEWS}\npython src/explore.py latest --figures attributions --text "{REVIEW}"', "**/attributions.png"
    ),
    ("attention.png", "embeddings.png"): figures(
        f"{PLAYS}\npython src/explore.py latest --figures attention embeddings", "**/attention.png", "**/embeddings.png"
    ),
    ("learning_rates.png",): figures(
        "python src/train.py experiment=scaling/learning_rates threads=1", "**/learning_rates.png"
    ),
    ("coordinate_check.png",): figures(
        "python src/train.py experiment=scaling/coordinate_check threads=1", "**/coordinate_check.png"
    ),
    ("scaling_fit.png",): scaling_fit,
}


def main() -> None:
    """Make the pictures of the command line. Pictures of one training are made together."""
    asked = sys.argv[1:]
    known = [name for names in RECIPES for name in names]
    if not asked or set(asked) - set(known):
        sys.exit(f"name the pictures to make: {', '.join(known)}")
    for names, recipe in RECIPES.items():
        if not set(names).isdisjoint(asked):
            with tempfile.TemporaryDirectory() as folder:
                for name, drawing in zip(names, recipe(Path(folder)), strict=True):
                    save(drawing, IMAGES / name)


if __name__ == "__main__":
    main()
