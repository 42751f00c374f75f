"""Exported playgrounds for the lessons that look inside a network, made by the cells and commands of each lesson."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LESSONS = ROOT / "docs/lessons"
MADE = ROOT / "build/lessons"
BLOCK = re.compile(r"^```(python)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OF_REAL_DATA = ("inside-plays",)  # trained on real data if FIRSTLIGHT_DATA is set: the plays are in the public domain
EXPORT = re.compile(r"^python src/playground\.py .* --export (\S+)$", re.MULTILINE)


def lessons_with_pages() -> list[Path]:
    """Return the lessons that export a page, in the order of their names."""
    return [path for path in sorted(LESSONS.glob("*.md")) if EXPORT.search(path.read_text(encoding="utf-8"))]


def page_of_lesson(lesson: Path, made: Path = MADE) -> Path:
    """Return the page of a lesson, which is exported to `made`. Training takes up to a minute for each lesson.

    If the commands of the lesson have not changed, its networks are not trained again. Delete build/lessons to train
    them.

    Raises subprocess.CalledProcessError if a command fails.
    """
    steps = [(language, text) for language, text in BLOCK.findall(lesson.read_text(encoding="utf-8"))]
    (name,) = (export for _, text in steps for export in EXPORT.findall(text))
    folder = made / lesson.stem
    page, record = folder / name, folder / "steps.txt"
    data = os.environ.get("FIRSTLIGHT_DATA") if lesson.stem in OF_REAL_DATA else None
    written = "\n".join([*(text for _, text in steps), *([f"FIRSTLIGHT_DATA={data}"] if data else [])])
    is_trained = record.is_file() and record.read_text(encoding="utf-8") == written
    folder.mkdir(parents=True, exist_ok=True)
    record.unlink(missing_ok=True)
    for language, text in steps:
        for command in [["-c", text]] if language else commands(text):
            if "--export" in command or not is_trained:
                run(command, folder, data)
    record.write_text(written, encoding="utf-8")
    return page


def commands(block: str) -> list[list[str]]:
    """Return the arguments of Python for each command of a block, which may continue on the next line."""
    lines = block.replace("\\\n", " ").splitlines()
    script = re.compile(r"^python (src/\w+\.py) (.*)$")
    return [[str(ROOT / found[1]), *shlex.split(found[2])] for found in map(script.match, lines) if found]


def run(arguments: list[str], folder: Path, data: str | None = None) -> None:
    """Run Python in a folder. Its output is shown only if it fails. data: the folder of data sets; None: the sample."""
    environment = {name: value for name, value in os.environ.items() if name != "FIRSTLIGHT_DATA"}
    if data is not None:
        environment["FIRSTLIGHT_DATA"] = data
    environment["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run(  # noqa: S603 (the commands of our own lessons)
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()
