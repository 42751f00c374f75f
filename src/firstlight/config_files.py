"""The folders of the configuration: that of this package and those of the user."""

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_yaml
from firstlight.invocation import location

CONFIG_NAME = "train"  # the root of the configuration: train.yaml
OWN_FOLDER = "conf"  # of the current folder
OPTIONS = ("--config-dir", "-cd")  # Hydra's
KINDS_FILE = "kinds.yaml"  # lists packages of the user, each with a kind of networks

_PACKAGED = Path(__file__).parent / "conf"
CONFIG_DIR = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[2] / "conf"  # installed, or a clone


def own_folders() -> list[Path]:
    """Return the user's folders of settings: that of --config-dir, ./conf, and those of the user's kinds of networks.

    A file in one of them replaces the file of firstlight with the same name. Raises UserError for a folder that does
    not exist, and for a train.yaml that belongs to another program.
    """
    of_kinds = [folder / OWN_FOLDER for _, package in kind_packages() if (folder := location(package))]
    folders = dict.fromkeys(map(Path.resolve, [*_given_folders(), *filter(Path.is_dir, of_kinds)]))
    own = [folder for folder in folders if folder != CONFIG_DIR.resolve()]
    for root in (folder / f"{CONFIG_NAME}.yaml" for folder in own):
        if root.is_file() and "root_schema" not in root.read_text(encoding="utf-8", errors="replace"):
            problem = f"{root}: its defaults list has no root_schema, so it is not a configuration of firstlight"
            raise UserError(f"{problem}; rename the file, or start from the train.yaml in {CONFIG_DIR}")
    return own


def kind_packages() -> Iterator[tuple[Path, str]]:
    """Yield the packages that kinds.yaml in ./conf and --config-dir lists, each with this file. Raises UserError."""
    for file in (folder / KINDS_FILE for folder in _given_folders()):
        if file.is_file():
            names = read_yaml(file)
            if not isinstance(names, list) or not all(str(name).isidentifier() for name in names):
                raise UserError(f"{file} must list the names of packages, such as `- tagging`, each on a line")
            yield from ((file, name) for name in names)


def folders() -> list[Path]:
    """Return every folder of settings; the first one that has a file wins."""
    return [*own_folders(), CONFIG_DIR]


def groups() -> list[str]:
    """Return the names of all groups, such as `task` and `model`."""
    return sorted({entry.name for folder in folders() for entry in folder.iterdir() if entry.is_dir()})


def choices(group: str) -> list[str]:
    """Return the choices of a group, such as `post/stars` of `experiment`."""
    files = (path.relative_to(folder / group) for folder in folders() for path in (folder / group).rglob("*.yaml"))
    return sorted({path.with_suffix("").as_posix() for path in files})


def file_of(group: str, choice: str) -> Path:
    """Return the file of a choice that exists."""
    files = (folder / group / f"{choice}.yaml" for folder in folders())
    return next(path for path in files if path.is_file())


def _given_folders() -> list[Path]:
    """Return the folders of --config-dir, the last one first, and ./conf. Raises UserError for a missing folder."""
    arguments = sys.argv[1:]
    pairs = [*pairwise(arguments), *(argument.split("=", 1) for argument in arguments if "=" in argument)]
    typed = [Path(value) for option, value in pairs if option in OPTIONS]
    for folder in reversed(typed):
        if not folder.is_dir():
            raise UserError(f"--config-dir {folder}: the folder does not exist; name the folder of your settings")
    here = Path.cwd() / OWN_FOLDER
    return [*reversed(typed), *([here] if here.is_dir() else [])]
