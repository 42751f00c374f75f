"""A real browser for tests: an installed browser, controlled by Playwright, with a record of its requests."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
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
    inside: tuple[str, ...] = ()  # how the addresses of files, of parts of the page, and of its server begin

    def visit(self, address: str) -> None:
        """Open another address, which takes half of the time of a new window."""
        own = re.match(r"https?://[^/]*", address)
        self.inside = tuple(filter(None, ("file:", "data:", "blob:", own and own[0] + "/")))
        self.requests.clear()
        self.errors.clear()
        self.page.goto(address)

    @property
    def foreign(self) -> list[str]:
        """Return the requests to other machines."""
        return [address for address in self.requests if not address.startswith(self.inside)]


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


def open_file(browser: Any, file: Path, width: int = 1200, **context: Any) -> Opened:
    """Open a local file in a new window of the browser."""
    return open_address(browser, file.absolute().as_uri(), width, **context)


def open_address(browser: Any, address: str, width: int = 1200, **context: Any) -> Opened:
    """Open a page in a new window of the browser, without a network: requests to other machines fail.

    context: options of Playwright's `new_page`, such as `color_scheme="dark"` and `reduced_motion="reduce"`.
    """
    opened = Opened(browser.new_page(viewport={"width": width, "height": 900}, **context))
    opened.page.route(lambda url: not url.startswith(opened.inside), lambda route: route.abort())
    opened.page.on("request", lambda request: opened.requests.append(request.url))
    opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.page.on("console", lambda message: opened.errors.append(message.text) if message.type == "error" else None)
    opened.visit(address)
    return opened


def barriers(page: Any) -> list[str]:
    """Return what axe-core finds serious or critical for people with disabilities: rule, contrast, element."""
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['target']} {node['any'][0]['message'] if node['any'] else each['help']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


# Controls that are visible, which Tab must reach.
CONTROLS = """() => [...document.querySelectorAll("a[href], button, select, input, textarea, summary, [tabindex]")]
    .filter(each => each.checkVisibility({visibilityProperty: true}) && !each.disabled && each.tabIndex >= 0)"""
FOCUSED = """([number]) => {
    const each = document.activeElement;
    if (each === document.body) return null;
    each.dataset.reached = number;
    const style = getComputedStyle(each), {width, height, left, right} = each.getBoundingClientRect();
    return {name: each.outerHTML.slice(0, 120), ring: style.outlineStyle !== "none" || style.boxShadow !== "none",
        isOnScreen: width > 0 && height > 0 && right > 0 && left < innerWidth};
}"""


def tab_through(page: Any, most: int = 400) -> list[str]:
    """Press Tab until the end of the page. Return the controls that it missed, or whose focus is not visible."""
    controls, problems = page.evaluate(f"({CONTROLS})().length"), []
    for number in range(most):
        page.keyboard.press("Tab")
        found = page.evaluate(FOCUSED, [number])
        if found is None:
            break
        if not (found["ring"] and found["isOnScreen"]):
            problems.append(f"no visible focus: {found['name']}")
    missed = (
        f"({CONTROLS})().filter(each => !each.dataset.reached).map(each => 'missed: ' + each.outerHTML.slice(0, 120))"
    )
    assert controls, "the page has no control"
    return problems + page.evaluate(missed)


def focus_on(page: Any, selector: str, key: str = "Tab") -> None:
    """Press Tab, or Shift+Tab, until the element has the focus."""
    for _ in range(300):
        page.keyboard.press(key)
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{key} does not reach {selector}")
