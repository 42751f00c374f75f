"""Notebooks of the lessons: the cells of a page in docs/lessons run once, and their outputs stand below them."""

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from lesson_pages import LESSONS, MADE, ROOT

CELL = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PART = re.compile(
    rf"^<details\b.*?^</details>$|{CELL.pattern}", CELL.flags
)  # a hidden answer, or a cell outside of one
ALT = "Picture that the cell above draws; the text below says what it shows"


def lessons_with_cells() -> list[Path]:
    """Return the lessons that are notebooks, in the order of their numbers."""
    return sorted(LESSONS.glob("[1-9]-*.md"))


def notebook_of(lesson: Path, made: Path = MADE) -> NotebookNode:
    """Return a lesson as a notebook with the outputs of its cells.

    A hidden answer is one Markdown cell, with the outputs of its code as text. Its code does not run with the
    notebook's other cells.

    Raises nbclient.exceptions.CellExecutionError if a cell fails.
    """
    page, cells, end = lesson.read_text(encoding="utf-8"), [], 0
    executed = iter(executed_cells(page, made / f"{lesson.stem}.ipynb"))
    for part in PART.finditer(page):
        cells.append(new_markdown_cell(page[end : part.start()].strip()))
        if part[1]:
            cells.append(next(executed))
        else:
            cells.append(new_markdown_cell(CELL.sub(lambda _: as_markdown(next(executed)), part[0])))
        end = part.end()
    cells.append(new_markdown_cell(page[end:].strip()))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = new_notebook(cells=[cell for cell in cells if cell.source], metadata={"kernelspec": kernel})
    for number, cell in enumerate(notebook.cells):
        cell.id = f"{lesson.stem}-{number}"  # nbformat draws ids at random
    return notebook


def executed_cells(page: str, path: Path) -> list[NotebookNode]:
    """Return the cells of a page with their outputs. They run in order, in an empty folder, on generated data.

    A lesson takes a minute or two. `path` keeps the outputs until a cell changes.
    """
    sources = [source.rstrip() for source in CELL.findall(page)]
    if path.is_file():
        notebook = nbformat.read(path, as_version=4)
        if [cell.source for cell in notebook.cells] == sources:
            return list(notebook.cells)
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
    environment = {name: value for name, value in os.environ.items() if name not in ("FIRSTLIGHT_DATA", "MPLBACKEND")}
    environment["PYTHONPATH"] = str(ROOT / "src")
    with TemporaryDirectory() as folder:
        NotebookClient(
            notebook,
            timeout=None,
            startup_timeout=600,  # seconds; a busy machine is slow
            kernel_name="python3",
            coalesce_streams=True,
            record_timing=False,
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": folder}},
        ).execute(env=environment)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    return list(notebook.cells)


def as_markdown(cell: NotebookNode) -> str:
    """Return a cell as Markdown: its code, and below it what it prints and draws."""
    if cell.cell_type == "markdown":
        return str(cell.source)
    parts = [f"```python\n{cell.source}\n```"]
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/png" in data:
            parts.append(f'<img alt="{ALT}" src="data:image/png;base64,{data["image/png"].strip()}">')
        else:
            text = output.get("text") or data["text/plain"]
            parts.append(f'```text title="Output"\n{text.rstrip()}\n```')
    return "\n\n".join(parts)


def page_of_notebook(notebook: NotebookNode, name: str) -> str:
    """Return a notebook as a page of the site, with a link to the notebook `name` below the heading."""
    heading, *rest = map(as_markdown, notebook.cells)
    title, _, text = heading.partition("\n")
    link = f"[Download this page as a Jupyter notebook]({name}){{ download }}"
    return "\n\n".join([title, link, text.strip(), *rest])
