"""The lessons in docs/lessons are notebooks: all cells run in order on generated data, and their outputs are shown."""

import ast
import importlib
import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from lesson_notebooks import CELL, lessons_with_cells, notebook_of, page_of_notebook
from tests_support import ROOT, write_lines

LESSONS = lessons_with_cells()
LESSON = """# A lesson

It begins.

```python
%matplotlib inline
from matplotlib.figure import Figure

print("seen")
figure = Figure(figsize=(1, 1))
figure.subplots()
figure
```

<details class="question" markdown="1">
<summary>How much?</summary>

```python
6 * 7
```

</details>

It ends.
"""


def code_of(lesson: Path) -> str:
    """Return all cells as one program, each at the line of the page where it stands."""
    page = lesson.read_text(encoding="utf-8")
    lines = [""] * page.count("\n")
    for cell in CELL.finditer(page):
        first = page[: cell.start(1)].count("\n")
        written = cell[1].replace("%matplotlib inline", "").splitlines()
        lines[first : first + len(written)] = written
    return "\n".join(lines) + "\n"


def test_there_is_a_lesson_for_each_of_the_five_posts_and_the_list_names_them() -> None:
    assert [lesson.name[0] for lesson in LESSONS] == list("12345")
    listed = re.findall(r"\]\(([^)/]+\.md)\)", (ROOT / "docs/lessons/README.md").read_text(encoding="utf-8"))
    assert listed[:5] == [lesson.name for lesson in LESSONS]
    assert sorted(listed[5:]) == sorted(lesson.name for lesson in (ROOT / "docs/lessons").glob("inside-*.md"))


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_is_valid_python_and_imports_public_names(lesson: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(code_of(lesson))) if isinstance(node, ast.ImportFrom)]
    own = {f"{node.module}.{name.name}" for node in imports for name in node.names if "firstlight" in str(node.module)}
    assert own
    for name in own:
        package, _, exported = name.rpartition(".")
        assert exported in importlib.import_module(package).__all__, name


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_a_plan_questions_and_solutions(lesson: Path) -> None:
    page = lesson.read_text(encoding="utf-8")
    assert "**You should know:**" in page
    assert "| minutes | plan for 45 minutes | plan for 90 minutes |" in page
    assert page.count("<summary>Question:") >= 3
    exercises, solutions = page.split("\n## Exercises\n")[1].split("<summary>Solutions</summary>")
    numbered = re.compile(r"^(\d)\. ", re.MULTILINE)
    assert numbered.findall(solutions) == numbered.findall(exercises) == list("1234")


def real_data(folder: Path) -> Path:
    """Return a folder like that of FIRSTLIGHT_DATA, with few rows. The longest pair is as long as in Multi30k."""
    words = ["good", "bad", "old", "new", "big", "small"]
    reviews = [{"text": f"a {words[i % 6]} {words[i % 5]} thing", "label": i % 5} for i in range(200)]
    films = [{**row, "label": row["label"] % 2} for row in reviews]
    pairs = [{"en": row["text"], "de": row["text"]} for row in reviews] + [{"en": "a dog " * 40, "de": "a dog " * 40}]
    for name, rows in (("amazon_reviews", reviews), ("movie_reviews", films), ("multi30k", pairs)):
        (folder / name).mkdir(parents=True)
        for split in ("train", "validation", "test"):
            write_lines(folder / name / f"{split}.jsonl", rows)
    play = "ACT I\nSCENE I. A room.\n\n" + "ROMEO.\nWhat is it?\n\n" * 200
    for name, text in (("shakespeare", play), ("names", "anna\nbob\nclara\n" * 20)):
        (folder / name).mkdir()
        (folder / name / "text.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_reads_the_data_of_its_environment(lesson: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("FIRSTLIGHT_DATA", str(real_data(tmp_path / "real")))
    monkeypatch.chdir(tmp_path)
    (cell,) = (each for each in CELL.findall(lesson.read_text(encoding="utf-8")) if "FIRSTLIGHT_DATA" in each)
    names: dict[str, Any] = {"os": os}
    exec(cell.partition("data.setup()\n")[0], names)  # noqa: S102 (a cell of our own lesson)
    names["data"].setup()
    assert next(iter(names["data"].train_dataloader()))
    assert names["data"].source.kind.value == "local"


def test_a_notebook_and_its_page_show_what_the_cells_print_and_draw(tmp_path: Path) -> None:
    lesson = tmp_path / "0-lesson.md"
    lesson.write_text(LESSON, encoding="utf-8")
    notebook = notebook_of(lesson, tmp_path)
    nbformat.validate(notebook)
    assert [cell.cell_type for cell in notebook.cells] == ["markdown", "code", "markdown", "markdown"]
    printed, drawn = notebook.cells[1].outputs
    assert printed.text == "seen\n"
    assert drawn.data["image/png"]
    assert "42" in notebook.cells[2].source, "a hidden answer has its output"
    page = page_of_notebook(notebook, "0-lesson.ipynb")
    link = "[Download this page as a Jupyter notebook](0-lesson.ipynb){ download }"
    assert page.startswith(f"# A lesson\n\n{link}\n\nIt begins.")
    assert re.search(r'seen\n```\n\n<img alt="[^"]+" src="data:image/png;base64,[\w+/=\s]+">\n\n<details', page)
    assert notebook_of(lesson, tmp_path) == notebook, "a lesson that has not changed does not run again"
    lesson.write_text(LESSON.replace("6 * 7", "6 / 0"), encoding="utf-8")
    with pytest.raises(CellExecutionError, match="6 / 0"):
        notebook_of(lesson, tmp_path)


@pytest.mark.slow  # a minute or two of training each; the parts have tests of their own
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_every_cell_of_a_lesson_runs(lesson: Path, tmp_path: Path) -> None:
    cells = [cell for cell in notebook_of(lesson, tmp_path).cells if cell.cell_type == "code"]
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output.text for output in outputs if output.get("name") == "stderr"]
    assert not re.search("srun|litlogger|GPU|TPU", "".join(output.get("text", "") for output in outputs))
    silent = [cell.source for cell in cells if not cell.outputs]
    assert len(silent) <= len(cells) / 3, silent
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 3
