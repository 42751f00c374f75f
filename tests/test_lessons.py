"""All cells of the lessons in docs/lessons run in order on generated data."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests_support import ROOT, environment

LESSONS = sorted((ROOT / "docs/lessons").glob("[1-9]-*.md"))
CELL = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def code_of(lesson: Path) -> str:
    """All cells as one program, each at the line of the page where it stands."""
    page = lesson.read_text(encoding="utf-8")
    lines = [""] * page.count("\n")
    for cell in CELL.finditer(page):
        first = page[: cell.start(1)].count("\n")
        written = cell[1].splitlines()
        lines[first : first + len(written)] = written
    return "\n".join(lines) + "\n"


def test_there_is_a_lesson_for_each_of_the_five_posts_and_the_list_names_them() -> None:
    assert [lesson.name[0] for lesson in LESSONS] == list("12345")
    listed = re.findall(r"\]\(([^)]+)\)", (ROOT / "docs/lessons/README.md").read_text(encoding="utf-8"))
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


@pytest.mark.slow  # half a minute of training each; the parts have tests of their own
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_every_cell_of_a_lesson_runs(lesson: Path, tmp_path: Path) -> None:
    program = tmp_path / f"{lesson.stem}.py"
    program.write_text(code_of(lesson), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        env=environment() | {"PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not re.search("srun|litlogger|GPU|TPU", done.stdout + done.stderr)
