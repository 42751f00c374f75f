"""How the user started this program, so that every message names the commands in the same way."""

import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]  # of a checkout: src/
CHECKOUT = SOURCE.parent if (SOURCE / "train.py").is_file() else None  # None: an installed package


def invocation(command: str) -> str:
    """Return what to type for a command such as `train`.

    It is `python src/train.py` after a script of src/, else `firstlight train` or `python -m firstlight train`.
    """
    if CHECKOUT is not None and Path(sys.argv[0]).resolve().parent == SOURCE:
        return f"python src/{command}.py"
    return f"python -m firstlight {command}" if _is_module_run() else f"firstlight {command}"


def install_command(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    if CHECKOUT is None:
        return f"pip install 'firstlight[{extra}]'"
    return f"pip install -c constraints.txt -e '.[{extra}]'"


def _is_module_run() -> bool:
    """Whether Python was started with `-m firstlight`."""
    options = sys.orig_argv
    return "-m" in options and options[options.index("-m") + 1 :][:1] == ["firstlight"]


def is_installed(path: Path) -> bool:
    """Return whether a file or folder belongs to an installed package."""
    return not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
