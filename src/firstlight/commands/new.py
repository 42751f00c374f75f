"""The command `firstlight new`, which creates a project from the files of firstlight/project_template."""

import re
import sys
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from keyword import iskeyword, issoftkeyword
from pathlib import Path
from typing import Annotated

import tyro

import firstlight
from firstlight import config_files
from firstlight.command_options import parse
from firstlight.errors import UserError
from firstlight.invocation import invocation
from firstlight.terminal_text import say

TEMPLATE, SUFFIX = "project_template", ".template"
PLACEHOLDERS = {"PROJECT_NAME": "{name}", "FIRSTLIGHT_VERSION": firstlight.__version__}
HIDDEN = {"gitignore": ".gitignore"}  # a .gitignore in the package would hide its files from git
FOLDERS = ("conf", "data", "logs", "tests")  # of every project, next to its package


@dataclass
class NewOptions:
    """Create a folder with a small project: a task with its own data, a network, a callback and a test.

    Args:
        name: The name of the folder, of the Python package in it and of the task, such as `birds`.
    """

    name: Annotated[str, tyro.conf.Positional]


def main() -> None:
    """Parse the command line, create the project, print the next steps."""
    name = parse(NewOptions, "new").name
    check_name(name)
    folder = Path(name)
    if folder.exists() or folder.is_symlink():
        raise UserError(f"{name}: a file or folder of this name exists already; choose another name")
    _write(files("firstlight") / TEMPLATE, folder, name)
    say(f"The project is in {folder}/; README.md has all commands. To train it:")
    say(f"  cd {folder}\n  {invocation('train')} task={name}")


def check_name(name: str) -> None:
    """Raise UserError for a name that cannot be a package and a task of its own."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or iskeyword(name) or issoftkeyword(name):
        raise UserError(f"{name}: not a name of a Python package; use lower-case letters, digits and _, as in my_birds")
    if name in FOLDERS:
        raise UserError(f"{name}: every project has a folder of this name; choose another name")
    if name in config_files.choices("task") or name in config_files.choices("model"):
        raise UserError(f"{name}: firstlight has a task or a model of this name; choose another name")
    if name in sys.stdlib_module_names or (not Path(name).exists() and find_spec(name) is not None):
        raise UserError(f"{name}: an installed package has this name; choose another name")


def _write(template: Traversable, target: Path, name: str) -> None:
    """Write a file or a folder of the template. name: that of the project."""
    if template.is_dir():
        target.mkdir()
        for entry in template.iterdir():
            entry_name = _filled(entry.name.removesuffix(SUFFIX), name)
            _write(entry, target / HIDDEN.get(entry_name, entry_name), name)
    else:
        target.write_text(_filled(template.read_text(encoding="utf-8"), name), encoding="utf-8")


def _filled(text: str, name: str) -> str:
    for placeholder, value in PLACEHOLDERS.items():
        text = text.replace(placeholder, value.format(name=name))
    return text
