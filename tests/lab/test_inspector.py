"""Tests of the look inside a network in an exported page, in a real browser, and of the numbers that it shows."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from browser import Opened
from firstlight.kind.load import load
from firstlight.lab.playground.page import exported_page, panel_of
from inspected import WAIT, check_look, explained, look_inside, set_range, shares, write

TEXT = "this is not a great book"
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def runs(trained: Callable[[str], Path], played: Callable[[str], Path]) -> list[Any]:
    return [load(str(folder)) for folder in (trained("stars"), played("shakespeare"))]


@pytest.fixture(scope="module")
def page_file(runs: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("exported") / "page.html"
    file.write_text(exported_page([panel_of(run) for run in runs]), encoding="utf-8")
    return file


@pytest.fixture
def inside(opens: Callable[..., Opened], page_file: Path) -> Open:
    """Return a function that opens the page and looks inside a run."""
    return lambda run, text, **context: look_inside(opens(page_file.as_uri(), **context).page, run, text)


def torchs(run: Any, text: str) -> dict[str, float]:
    (row,) = run.probabilities([text])
    return {name: 100 * float(share) for name, share in zip(run.class_names, row, strict=True)}


def test_the_prediction_and_the_weights_are_those_of_the_run(inside: Open, runs: list[Any]) -> None:
    place, run = inside(0, TEXT), runs[0]
    assert shares(place) == pytest.approx(torchs(run, TEXT), abs=0.06)
    weights = torch.as_tensor(run.attention(TEXT).maps[0].weights)[1]
    place.locator("[name=head]").select_option("1")
    place.locator("[data-token='2']").focus()
    said = place.locator("#step-0-scores .says").inner_text()
    assert said.startswith("not attends to ")
    for name, share in re.findall(r"(\w+) ([\d.]+)% \(", said):
        assert float(share) == pytest.approx(100 * weights[2, TEXT.split().index(name)].item(), abs=0.06)


def test_a_token_is_worth_what_its_removal_and_its_replacement_change(inside: Open, runs: list[Any]) -> None:
    place, run = inside(0, TEXT), runs[0]
    place.locator("[data-token='4']").hover()
    write(place, "instead", "bad")
    said = place.locator("#step-0-tokens .says").inner_text()
    label = max(torchs(run, TEXT), key=torchs(run, TEXT).__getitem__)
    expected = [torchs(run, text)[label] for text in ("this is not a book", TEXT, TEXT.replace("great", "bad"))]
    assert f"the probability of {label} is" in said
    assert [float(share) for share in re.findall(r"([\d.]+)%", said)] == pytest.approx(expected, abs=0.06)


def test_the_controls_reshape_the_bars_of_the_next_token(inside: Open) -> None:
    place = inside(1, "ROMEO. ")
    all_tokens = shares(place)
    set_range(place, "topK", 2)
    kept = shares(place)
    assert [share > 0 for share in kept.values()] == [True, True] + [False] * 8
    assert sum(kept.values()) == pytest.approx(100, abs=0.2)
    assert list(kept)[:2] == list(all_tokens)[:2], "the most likely ones"
    set_range(place, "temperature", 0)
    assert list(shares(place).values())[:2] == [100, 0]


def test_before_the_first_block_only_the_token_that_differs_and_its_neighbors_carry_the_difference(
    inside: Open, runs: list[Any]
) -> None:
    place, other = inside(0, TEXT), TEXT.replace("great", "terrible")
    write(place, "other", other)
    assert shares(place, 2) == pytest.approx(torchs(runs[0], other), abs=0.06)
    place.locator("[data-token='4']").hover()
    line = place.locator("text=/ → .*: before block 1: -?[0-9]+% of the difference/")
    line.wait_for(timeout=WAIT)
    assert int(re.findall(r"(-?\d+)%", line.inner_text())[0]) > 20
    place.locator("[data-token='1']").hover()
    place.locator("text=/^is → is: before block 1: 0% of the difference/").wait_for(timeout=WAIT)
    write(place, "other", TEXT)
    place.locator("text=The two texts have the same prediction.").wait_for(timeout=WAIT)
    write(place, "other", "short")
    assert "6 and 1 tokens" in place.locator("#step-0-patch > .body > .says").inner_text()


def test_the_link_has_the_whole_state(inside: Open, opens: Callable[..., Opened]) -> None:
    place = inside(0, TEXT)
    place.locator(".grid input").nth(1).uncheck()
    write(place, "other", "a bad book")
    set_range(place, "temperature", 2)
    place.locator("[data-token='3']").hover()
    address, state = place.page.url, (shares(place), shares(place, 1), shares(place, 2))
    there = opens(address).page.locator("[data-run='0'] .inspector")
    there.locator(".chips .word.here").wait_for(timeout=WAIT)
    assert there.locator("[name=text]").input_value() == TEXT
    assert there.locator(".chips .word.here").get_attribute("data-token") == "3"
    assert [box.is_checked() for box in there.locator(".grid input").all()][:2] == [True, False]
    assert (shares(there), shares(there, 1), shares(there, 2)) == state


def test_the_text_at_the_top_and_that_of_the_look_inside_are_one(inside: Open) -> None:
    place = inside(0, TEXT)
    top, own = place.page.locator("[data-kind=classifier] textarea"), place.locator("[name=text]")
    assert top.input_value() == TEXT
    top.fill("not a bad book")
    explained(place)
    assert (own.input_value(), place.locator(".chips .word").count()) == ("not a bad book", 4)
    place.locator(".teaches").first.click()
    explained(place)
    assert top.input_value() == own.input_value() == "this is not a good one"
    place.page.wait_for_selector("[data-kind=classifier] .answer .word:text-is('one')", timeout=WAIT)


def test_results_and_the_link_are_copied(inside: Open) -> None:
    place = inside(0, TEXT)
    place.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for button, beginning in (("Copy results", TEXT), ("Copy link", "file:")):
        place.get_by_role("button", name=button).click()
        place.locator("button:text-is('Copied')").first.wait_for(timeout=WAIT)
        assert place.page.evaluate("navigator.clipboard.readText()").startswith(beginning)


def test_the_tour_has_five_stops_by_keyboard(inside: Open) -> None:
    place = inside(0, TEXT)
    place.locator(".tour").focus()
    panels = []
    for number in range(1, 6):
        place.page.keyboard.press("Enter")
        assert place.locator(".stop-of-tour").inner_text().startswith(f"Stop {number} of 5: ")
        panels.append(place.locator(".step:has(.stop-of-tour)").get_attribute("id"))
    assert panels == [f"step-0-{name}" for name in ("tokens", "heads", "output", "tokens", "patch")]
    place.page.keyboard.press("Enter")
    assert place.locator(".stop-of-tour").count() == 0


def test_a_token_is_marked_in_every_panel_and_a_head_is_switched_off_by_keyboard(inside: Open) -> None:
    place = inside(0, TEXT)
    keyboard, before = place.page.keyboard, place.locator("#step-0-scores canvas").first.screenshot()
    place.locator(".chips .word").first.focus()
    keyboard.press("ArrowRight")
    keyboard.press("ArrowRight")
    for panel in ("vectors", "scores", "residual", "feed"):
        assert place.locator(f"#step-0-{panel} .says").inner_text().startswith("not")
    assert "“not”" in place.locator("#step-0-tokens .says").inner_text()
    assert place.locator("#step-0-scores canvas").first.screenshot() != before
    while not place.page.evaluate("document.activeElement.type === 'checkbox'"):
        keyboard.press("Tab")
    whole = shares(place)
    keyboard.press("Space")
    explained(place)
    assert shares(place) != whole == shares(place, 1), "only the column of now"
    keyboard.press("Space")
    explained(place)
    assert shares(place) == whole


@pytest.mark.browser
@pytest.mark.parametrize("run", [0, 1])
@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_its_window_and_has_no_barrier(inside: Open, run: int, width: int, scheme: str) -> None:
    check_look(inside(run, "great, but not for me", width=width, color_scheme=scheme), width)
