"""The steps of the lessons that look inside a network, followed by keyboard alone, on small runs, without a network."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from browser import Opened, focus_on
from firstlight.kind.load import load
from firstlight.lab.playground.page import exported_page, panel_of
from inspected import WAIT, explained, percent, says, shares
from tests_support import ROOT

BACK = "Shift+Tab"


@dataclass
class Keys:
    """Keyboard of a person who follows a lesson in a panel of a page: Tab, arrows, Enter, Space, and texts."""

    page: Any
    run: int
    lesson: str

    @property
    def place(self) -> Any:
        return self.page.locator(f"[data-run='{self.run}'] .inspector")

    def go(self, selector: str, key: str = "Tab") -> None:
        focus_on(self.page, f"[data-run='{self.run}'] {selector}", key)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
        explained(self.place)

    def open(self) -> None:
        self.go("summary")
        self.page.keyboard.press("Enter")
        self.place.wait_for(timeout=WAIT)

    def write(self, name: str, text: str, key: str = "Tab") -> None:
        """Write a text of the lesson into a field, whose old text is selected when Tab goes there."""
        assert f"`{text}`" in self.lesson
        self.go(f"[name={name}]", key)
        self.page.keyboard.type(text)
        explained(self.place)

    def choose(self, token: int, side: str = "source", key: str = "Tab") -> str:
        """Choose a token of a row, and return its name."""
        self.go(f".chips [data-side={side}]", key)
        steps = token - int(self.page.evaluate("document.activeElement.dataset.token"))
        self.press(*["ArrowRight" if steps > 0 else "ArrowLeft"] * abs(steps))
        return str(self.page.evaluate("document.activeElement.textContent"))

    def switch(self, head: int, key: str = "Tab") -> tuple[dict[str, float], dict[str, float]]:
        """Switch a head off or on, and return the predictions: now, and with all heads."""
        self.go(f".grid > :nth-child({head}) input", key)
        self.press("Space")
        return shares(self.place), shares(self.place, 1)


def negation(keys: Keys) -> None:
    keys.open()
    keys.write("text", "the battery is good")
    good = shares(keys.place)
    keys.press("Tab")
    keys.write("text", "the battery is not good", BACK)
    label = max(shares(keys.place), key=shares(keys.place).__getitem__)
    assert keys.choose(3) == "not"
    assert says(keys.place, "tokens").startswith(f"Without “not”, the probability of {label} is ")
    without, full = (percent(each) for each in re.findall(r"[<>]?[\d.]+%", says(keys.place, "tokens")))
    assert (without, full) == (good[label], shares(keys.place)[label])
    keys.write("instead", "very")
    assert "With “very” in its place it is " in says(keys.place, "tokens")
    for head, key in ((2, "Tab"), (1, BACK)):
        now, whole = keys.switch(head, key)
        assert now != whole
        keys.press("Space")
        assert shares(keys.place) == whole
    keys.write("text", "the battery is not bad", BACK)
    assert keys.place.locator(".chips").first.inner_text().split()[-1].endswith("bad")


def rhyme(keys: Keys) -> None:
    keys.open()
    keys.write("text", "crow s")
    last = keys.place.locator(".chips [data-side=source]").count() - 1
    assert keys.choose(last - 2) == "w"
    assert "Without “w”, the probability of " in says(keys.place, "tokens")
    keys.write("other", "king s")
    keys.choose(last - 3, key=BACK)
    keys.place.locator("text=/^o → n: before block 1: -?[0-9]+%/").wait_for(timeout=WAIT)
    assert keys.choose(last, key=BACK) == "s"
    keys.go(".grid > :nth-child(2) button")
    keys.press("Enter")
    assert says(keys.place, "scores").startswith("s attends to ")
    now, whole = keys.switch(2)
    assert now != whole


def verb(keys: Keys) -> None:
    keys.open()
    for text, key in (("In the park, a little judge is waiting.", "Tab"), ("An old neighbor is sleeping.", BACK)):
        keys.write("text", text, key)
        name = keys.choose(1, "target")
        assert says(keys.place, "tokens").startswith(f"Prediction after {name}: ")
        attended = set()
        for title in keys.place.locator(".grid button[title^=cross]").evaluate_all("all => all.map(e => e.title)"):
            keys.go(f".grid [title='{title}']")
            keys.press("Enter")
            attended.add(says(keys.place, "scores"))
        assert len(attended) > 1
        assert all(line.startswith(f"{name} attends to ") for line in attended)
        keys.go("[name=layer]", BACK)  # through both rows of tokens
        assert says(keys.place, "scores") in attended


def dropout(keys: Keys) -> None:
    keys.open()
    keys.write("text", "the battery is not good")
    assert keys.choose(2) == "is"
    assert says(keys.place, "tokens").startswith("Without “is”, the probability of ")
    keys.write("text", "the zorblax is fine", BACK)
    now, whole = keys.switch(2)
    assert now != whole


def block(keys: Keys) -> None:
    keys.open()
    keys.write("text", "crow s")
    keys.write("other", "king s")
    last = keys.place.locator(".chips [data-side=source]").count() - 1
    for token, line in ((last - 5, "c → k"), (last - 3, "o → n"), (last, "s → s")):
        keys.choose(token, key=BACK)
        keys.place.locator(f"text=/^{line}: before block 1: -?[0-9]+%/").wait_for(timeout=WAIT)
        keys.press("Tab")


def plays(keys: Keys) -> None:
    keys.open()
    keys.write("text", "My lord, my lor")
    last = keys.place.locator(".chips [data-side=source]").count() - 1
    assert keys.choose(last) == "r"
    assert says(keys.place, "tokens").startswith("Without “r”, the probability of ")
    whole = shares(keys.place)
    keys.go("[name=temperature]")
    keys.press(*["ArrowLeft"] * 16)  # from 1 to 0.2
    assert max(shares(keys.place).values()) > max(whole.values())


LESSONS: dict[str, tuple[Callable[[Keys], None], list[str]]] = {
    "inside-not": (negation, ["stars"]),
    "inside-rhyme": (rhyme, ["shakespeare"]),
    "inside-verb": (verb, ["translation"]),
    "inside-dropout": (dropout, ["stars", "sentiment"]),
    "inside-block": (block, ["shakespeare", "shakespeare"]),
    "inside-plays": (plays, ["shakespeare"]),
}


@pytest.mark.browser
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_is_followed_by_keyboard_alone(
    lesson: str,
    opens: Callable[..., Opened],
    trained: Callable[[str], Path],
    played: Callable[[str], Path],
    translation: Path,
    tmp_path: Path,
) -> None:
    follow, tasks = LESSONS[lesson]
    folder_of = {"shakespeare": played, "translation": lambda _: translation}
    runs = [folder_of.get(task, trained)(task) for task in tasks]
    file = tmp_path / "page.html"
    file.write_text(exported_page([panel_of(load(str(run))) for run in runs]), encoding="utf-8")
    page = opens(file.as_uri(), offline=True).page
    for number in range(len(runs)):
        follow(Keys(page, number, (ROOT / f"docs/lessons/{lesson}.md").read_text(encoding="utf-8")))
