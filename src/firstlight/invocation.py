"""How the user started this program, so that every message names the commands in the same way."""

import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]  # of a clone: src/
CHECKOUT = SOURCE.parent if (SOURCE / "train.py").is_file() else None  # None: an installed package


def invocation(command: str) -> str:
    """Return what to type for a command such as `train`.

    It is `python src/train.py` after a script of src/, else `firstlight train` or `python -m firstlight train`.
    """
    if CHECKOUT is not None and Path(sys.argv[0]).resolve().parent == SOURCE:
        return f"python src/{command}.py"
    is_module_run = ("-m", "firstlight") in pairwise(sys.orig_argv)
    return f"python -m firstlight {command}" if is_module_run else f"firstlight {command}"


def install_command(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    if CHECKOUT is None:
        return f"pip install 'firstlight[{extra}]'"
    return f"pip install -c constraints.txt -e '.[{extra}]'"


def location(name: str) -> Path | None:
    """Return the folder of the package, or the file of the module, at the start of a dotted name. Imports nothing.

    It is None if the module does not exist or is built into Python.
    """
    spec = find_spec(name.partition(".")[0])
    if spec is None:
        return None
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(spec.origin) if spec.has_location and spec.origin else None


def is_installed(path: Path) -> bool:
    """Return whether a file or folder belongs to an installed package."""
    return not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
