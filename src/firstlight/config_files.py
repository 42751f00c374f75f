"""The folders of the configuration: that of this package and those of the user."""

import sys
from itertools import pairwise
from pathlib import Path

from firstlight.errors import UserError

CONFIG_NAME = "train"  # the root of the configuration: train.yaml
OWN_FOLDER = "conf"  # of the current folder
OPTIONS = ("--config-dir", "-cd")  # Hydra's

_PACKAGED = Path(__file__).parent / "conf"
CONFIG_DIR = _PACKAGED if _PACKAGED.is_dir() else Path(__file__).parents[2] / "conf"  # installed, or a checkout


def own_folders() -> list[Path]:
    """Return the user's folders of settings: that of --config-dir, then ./conf.

    A file in one of them replaces the file of firstlight with the same name. Raises UserError for a folder that does
    not exist, and for a train.yaml that belongs to another program.
    """
    folders = [_existing(folder) for folder in _typed_folders()]
    here = Path.cwd() / OWN_FOLDER
    if here.is_dir():
        folders.append(here)
    own = [folder for folder in dict.fromkeys(map(Path.resolve, folders)) if folder != CONFIG_DIR.resolve()]
    for folder in own:
        _refuse_foreign_root(folder)
    return own


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


def _typed_folders() -> list[Path]:
    """Return the values of --config-dir, the last one first."""
    arguments = sys.argv[1:]
    found = [Path(after) for option, after in pairwise(arguments) if option in OPTIONS]
    for argument in arguments:
        option, is_given, value = argument.partition("=")
        if option in OPTIONS and is_given:
            found.append(Path(value))
    return found[::-1]


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise UserError(f"--config-dir {folder}: the folder does not exist; name the folder of your settings")
    return folder


def _refuse_foreign_root(folder: Path) -> None:
    root = folder / f"{CONFIG_NAME}.yaml"
    if root.is_file() and "root_schema" not in root.read_text(encoding="utf-8", errors="replace"):
        raise UserError(
            f"{root}: its defaults list has no root_schema, so it is not a configuration of firstlight; "
            f"rename the file, or start from the train.yaml in {CONFIG_DIR}"
        )
