"""The version of the package, its folder, and the refusal of files of other versions."""

import re
from pathlib import Path
from typing import Any

from firstlight.errors import UserError

__version__ = "0.3.0"

PACKAGE = Path(__file__).parent
OLDEST = "0.3"  # the oldest version whose runs and checkpoints are read; raise it if a default or a name changes
UNNAMED = "0.2"  # the version that did not write its number into its files
READER = "use version 0.2.0 to read it (git worktree add ../firstlight-0.2 c205100)"


def refuse_other(version: Any, path: Path | str, *, may_be_later: bool = False) -> None:
    """Raise UserError if a file was written by a version before OLDEST, or by a later version than this one.

    Only the major and the minor number count.

    version: the version that the file names; None if it names none. A value that is not a version is ignored.
    may_be_later: whether files of later versions are allowed.
    """
    if not (written := _numbers(UNNAMED if version is None else version)):
        return
    name = ".".join(map(str, written))
    if written < _numbers(OLDEST):
        reads = f"this version reads runs of {OLDEST}.0 and later"
        raise UserError(f"{path} was written by firstlight {name}, and {reads}; {READER}, or train again")
    if written > _numbers(__version__) and not may_be_later:
        remedy = f"install firstlight {name}, or train again"
        raise UserError(f"{path} was written by firstlight {name}, this is {__version__}; {remedy}")


def _numbers(version: Any) -> tuple[int, ...]:
    found = re.match(r"(\d{1,9})\.(\d{1,9})", version, re.ASCII) if isinstance(version, str) else None
    return tuple(map(int, found.groups())) if found else ()
