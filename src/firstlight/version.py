"""The version of the package, its folder, and the refusal of files of later versions."""

import re
from pathlib import Path
from typing import Any

from firstlight.errors import UserError

__version__ = "0.2.0"

PACKAGE = Path(__file__).parent


def refuse_later(version: Any, path: Path | str) -> None:
    """Raise UserError if a file was written by a version with a later major or minor number than this one.

    version: the version that the file names. A value that is not the text of a version is ignored.
    """
    found = re.match(r"(\d{1,9})\.(\d{1,9})", version, re.ASCII) if isinstance(version, str) else None
    if found and [*map(int, found.groups())] > [*map(int, __version__.split(".")[:2])]:
        remedy = f"install firstlight {found[0]}, or train again"
        raise UserError(f"{path} was written by firstlight {found[0]}, this is {__version__}; {remedy}")
