"""Tests of the pages in a browser: light and dark, narrow and wide, by keyboard, without a network, with axe-core."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from browser import Opened, barriers, focus_on, tab_through
from run_folders import fill
from tests_support import Scripts

pytestmark = pytest.mark.browser
WAIT = 30_000  # milliseconds, on a busy machine
WIDTHS = (400, 1280)


class Shown(NamedTuple):
    """Page and a selector of what is there when it is complete."""

    address: str
    ready: str


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    home = tmp_path_factory.mktemp("report")
    fill(home / "logs")
    assert Scripts(home).run("report", "logs").returncode == 0
    return Shown((home / "logs/report.html").as_uri(), "body[data-drawn]")


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    home = tmp_path_factory.mktemp("comparison")
    runs = [str(path.parent) for path in sorted(fill(home / "logs").glob("sweeps/grid/*seed-1/metrics.json"))[:2]]
    done = Scripts(home).run("report", "logs", "--compare", *runs)
    return Shown((home / done.stdout.split()[-1]).as_uri(), "body[data-drawn]")


@pytest.fixture(scope="module")
def figures(trained: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Shown:
    run = shutil.copytree(trained("sentiment"), tmp_path_factory.mktemp("figures") / "run")
    done = Scripts(run).run("explore", str(run), "--figures", "labels", "confusion_matrix", "attention", "curves")
    assert done.returncode == 0, done.stderr
    return Shown((run / "figures/figures.html").as_uri(), "figure")


@pytest.fixture(scope="module")
def playground(
    trained: Callable[[str], Path],
    played: Callable[[str], Path],
    translation: Path,
    served: Callable[..., AbstractContextManager[str]],
) -> Iterator[Shown]:
    with served(trained("stars"), played("shakespeare"), translation) as address:
        yield Shown(address, "[data-kind=translator] .answer .word")


@pytest.fixture
def shown(request: pytest.FixtureRequest, opens: Callable[..., Opened]) -> Callable[..., Any]:
    """Return a function that opens a page, and waits until it is complete."""

    def show(name: str, width: int, **context: Any) -> Any:
        found: Shown = request.getfixturevalue(name)
        page = opens(found.address, width, **context).page
        page.wait_for_selector(found.ready, timeout=WAIT)
        return page

    return show


PAGES = ("report", "comparison", "figures", "playground")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_its_window_in_the_chosen_colors_and_has_no_barrier(
    name: str, width: int, scheme: str, shown: Callable[..., Any]
) -> None:
    page = shown(name, width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    channels = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (min(channels[:3]) > 200) == (scheme == "light")
    inks = page.evaluate("[...document.querySelectorAll('.js-plotly-plot')].map(each => each.layout.font.color)")
    ink = "rgb(34, 34, 34)" if scheme == "light" else "rgb(230, 230, 230)"
    assert {*inks} == ({ink} if name in ("report", "comparison") else set())
    assert barriers(page) == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", WIDTHS)
def test_tab_reaches_every_control_and_shows_where_it_is(name: str, width: int, shown: Callable[..., Any]) -> None:
    assert tab_through(shown(name, width)) == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_moves_for_those_who_want_less_motion(name: str, shown: Callable[..., Any]) -> None:
    page = shown(name, 1280, reduced_motion="reduce")
    moving = """[...document.querySelectorAll("*")].filter(each => {
        const style = getComputedStyle(each);
        return style.scrollBehavior === "smooth" || [style.transitionDuration, style.animationDuration].some(
            text => text.split(",").some(each => parseFloat(each) > 0.01));
    }).map(each => each.outerHTML.slice(0, 120))"""
    assert page.evaluate(moving) == []


def test_a_click_enlarges_a_figure_within_its_place(shown: Callable[..., Any]) -> None:
    page = shown("figures", 400)
    picture = page.locator("figure img").first
    assert picture.bounding_box()["width"] < 400
    picture.click()
    assert picture.bounding_box()["width"] == 720
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_a_report_is_read_by_keyboard(shown: Callable[..., Any]) -> None:
    page = shown("report", 1280)
    focus_on(page, "#tabs button:nth-child(2)")
    press(page, "Enter")
    assert page.locator("#texts pre").count() == 1
    page.keyboard.press("Shift+Tab")
    press(page, "Enter")
    focus_on(page, "#runs tbody tr:first-child")
    press(page, "ArrowDown", "Space")
    page.wait_for_selector("#details h3:has-text('#2')", timeout=WAIT)
    focus_on(page, "#confusion [role=application]")
    press(page, "ArrowRight", "ArrowDown")
    assert "true so-so, predicted so-so" in page.locator("#cell h3").inner_text()


def test_the_playground_is_used_by_keyboard(shown: Callable[..., Any]) -> None:
    page = shown("playground", 400)
    focus_on(page, "[data-kind=classifier] textarea")
    press(page, "Control+A")
    page.keyboard.type("not a good book")
    page.wait_for_selector("[data-kind=classifier] .word:text-is('good')", timeout=WAIT)
    focus_on(page, "[data-kind=classifier] .attention .word")
    press(page, "ArrowRight", "ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "good"
    assert "good attends to" in page.locator("[data-kind=classifier] .looks").inner_text()
    focus_on(page, "[name=tokens]")
    press(page, "Control+A")
    page.keyboard.type("12")
    focus_on(page, "button.main")
    press(page, "Enter")
    page.wait_for_selector("text=12 characters in", timeout=WAIT)
    focus_on(page, ".output")
    press(page, "ArrowRight", "ArrowRight")
    assert page.locator(".considered .row").count() > 2
