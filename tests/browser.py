"""A real browser for tests: an installed browser, controlled by Playwright, with a record of its requests."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@dataclass
class Opened:
    """A page in the browser. requests: all requested addresses; errors: errors that its scripts raised or logged."""

    page: Any
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def foreign(self) -> list[str]:
        """Return the requests to other machines, which are neither files nor parts of the page."""
        return [address for address in self.requests if not address.startswith(("file:", "data:", "blob:"))]


@contextmanager
def a_browser() -> Iterator[Any]:
    """Start a headless browser. Skip the test with a reason if there is none."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser is installed: none of {', '.join(NAMES)}")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


def open_file(browser: Any, file: Path, width: int = 1200) -> Opened:
    """Open a local file in a new window of the browser."""
    return open_address(browser, file.absolute().as_uri(), width)


def open_address(browser: Any, address: str, width: int = 1200) -> Opened:
    """Open a page in a new window of the browser."""
    opened = Opened(browser.new_page(viewport={"width": width, "height": 900}))
    opened.page.on("request", lambda request: opened.requests.append(request.url))
    opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.page.on("console", lambda message: opened.errors.append(message.text) if message.type == "error" else None)
    opened.page.goto(address)
    return opened
