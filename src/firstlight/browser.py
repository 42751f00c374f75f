"""Open a page in the browser for the option `--open` of several commands."""

import webbrowser
from pathlib import Path

from firstlight.terminal_text import note


def show(page: Path | str) -> None:
    """Open a file or an address in the browser. Where there is none, say so in one line."""
    address = page.absolute().as_uri() if isinstance(page, Path) else page
    if not webbrowser.open(address):
        note(f"--open: no browser found; open {page} yourself")
