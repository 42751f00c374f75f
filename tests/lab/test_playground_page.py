"""Tests of the playground as a process that listens only on this machine, with its page in a real browser."""

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser import Opened, open_address
from tests_support import Scripts

# Python runs this code first. It logs all addresses that the process connects to, looks up or listens on.
NOTES_ADDRESSES = """
import os, sys

def note(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind", "socket.sendto"):
        with open(os.environ["NOTED"], "a") as file:
            print(event, arguments[1] if event != "socket.getaddrinfo" else arguments[:2], file=file)

sys.addaudithook(note)
"""
WAIT = 30_000  # milliseconds, on a busy machine


class Started:
    """Playground in a separate process."""

    def __init__(self, process: subprocess.Popen[str], noted: Path) -> None:
        assert process.stdout is not None
        self.process, self.noted = process, noted
        self.first_line = process.stdout.readline()
        self.address = self.first_line.partition(" ")[0]

    def end(self) -> tuple[int, str]:
        """Send Ctrl-C, and return the exit code and the remaining output."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out + err


@pytest.fixture
def start(played: Callable[[str], Path], tmp_path: Path, monkeypatch) -> Iterator[Callable[..., Started]]:
    """Yield a function that starts a playground of some tasks."""
    (tmp_path / "sitecustomize.py").write_text(NOTES_ADDRESSES, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("NOTED", str(tmp_path / "noted.txt"))
    processes = []

    def started(*tasks: str) -> Started:
        folders = [str(played(task)) for task in tasks]
        processes.append(Scripts(tmp_path).start("playground", *folders, "--port", "0", fresh=True))
        return Started(processes[-1], tmp_path / "noted.txt")

    yield started
    for process in processes:
        process.kill()
        process.communicate()


def shares(page: Any) -> list[float]:
    return [float(text.strip("<>%")) for text in page.locator(".bar .share").all_inner_texts()]


def type_a_review(page: Any) -> None:
    """Type a review, and check that the probabilities change."""
    page.wait_for_selector(".bar", timeout=WAIT)  # the answer to the example
    before, box = shares(page), page.locator("form.typed textarea").first
    assert len(before) == 5
    assert 99 < sum(before) < 101
    box.fill("")
    page.wait_for_selector("text=Type a review", timeout=WAIT)
    box.press_sequentially("This is the worst book", delay=5)
    page.wait_for_selector("[data-run='0'] .word:text-is('book')", timeout=WAIT)
    middle = shares(page)
    box.press_sequentially(", I love it <img src=x onerror=alert(1)>", delay=5)
    page.wait_for_selector("[data-run='0'] .word:text-is('>')", timeout=WAIT)
    assert before != middle != shares(page)
    assert page.locator("[data-run='0'] img").count() == 0
    words = page.locator("[data-run='0'] .word").all_inner_texts()
    assert words[:9] == ["this", "is", "the", "worst", "book", ",", "i", "love", "it"]
    assert words[9:] == ["<", "img", "src", "=", "x", "onerror", "=", "alert", "(", "1", ")", ">"]


def ask_for_another_class(page: Any) -> None:
    page.click(".bar[data-label='2 stars']")
    page.wait_for_selector(".bar[data-label='2 stars'][aria-pressed=true]", timeout=WAIT)
    page.wait_for_selector(".says b:text-is('2 stars')", timeout=WAIT)
    assert page.evaluate("document.activeElement.dataset.label") == "2 stars", "the keyboard stays where it was"


def hover(page: Any, word: str, others: str, verb: str) -> None:
    """Hover a word, and check that the others are colored by attention until the mouse leaves."""
    page.hover(word)
    answer = page.locator(".looking")
    assert answer.count() == 1
    assert re.search(rf"{verb} \S.* \d+%", answer.locator(".looks").inner_text())
    colors = set(page.locator(others).evaluate_all("all => all.map(e => e.style.cssText)"))
    assert sum("--look: color-mix" in color for color in colors) > 1
    page.hover("h1")
    assert page.locator(".looking").count() == 0


def generate(page: Any) -> None:
    form = page.locator("form.written")
    form.locator("textarea").fill("ROMEO.")
    form.locator("[name=tokens]").fill("90")
    form.locator("[name=seed]").fill("7")
    texts = []
    for button in ("Write", "Another", "Write"):
        form.get_by_role("button", name=button).click()
        page.wait_for_selector("[data-run='1'] :text('90 characters in')", timeout=WAIT)
        assert page.locator("[data-run='1'] .output .token").count() == 90
        texts.append(page.locator("[data-run='1'] .output").evaluate("e => e.textContent"))
        if button == "Another":
            form.locator("[name=seed]").fill("7")
    assert texts[0] == texts[2] != texts[1]
    assert texts[0].startswith("ROMEO.")


def look_at_what_was_considered(page: Any) -> None:
    token = page.locator("[data-run='1'] .token").nth(30)
    token.click()
    drawn = page.locator(".considered .row.drawn .name")
    shown = token.evaluate("e => e.textContent")
    assert drawn.inner_text() == shown.replace("⏎\n", "⏎").replace(" ", "␣")
    assert page.locator(".considered .row").count() in (11, 12)  # with a heading
    page.locator("[data-run='1'] .output").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".token.chosen").get_attribute("data-token") == "31"


STOP_AT_FIRST_WORD = """() => {
    const button = document.querySelector("form.written .stop");
    const ready = !button.disabled && document.querySelector("[data-run='1'] .token");
    if (ready) button.click();
    return ready;
}"""  # within the page, because a fast machine writes 2,000 tokens in the time of a few messages to the browser


def stop(page: Any) -> None:
    """Stop a long text, and check that its beginning remains."""
    form = page.locator("form.written")
    form.locator("[name=tokens]").fill("2000")
    form.get_by_role("button", name="Write").click()
    page.wait_for_function(STOP_AT_FIRST_WORD, timeout=WAIT)
    page.wait_for_selector(".said :text-is('stopped')", timeout=WAIT)
    assert 0 < page.locator("[data-run='1'] .token").count() < 2000
    assert form.get_by_role("button", name="Stop").is_disabled()


def translate(page: Any) -> None:
    box = page.locator("[data-kind=translator] textarea")
    box.fill("A man <b>sleeps</b>.")
    page.wait_for_selector("[data-run='2'] .word[data-column]:has-text('man')", timeout=WAIT)
    page.select_option("[data-kind=translator] [name=head]", "1")
    page.wait_for_selector("[data-kind=translator] [name=head]:has([value='1'][selected])", timeout=WAIT)
    assert page.locator("[data-run='2'] b b").count() == 0


def paste_far_too_much(page: Any) -> None:
    for number, kind in enumerate(("classifier", "generator", "translator")):
        page.locator(f"[data-kind={kind}] textarea").fill("good <book> " * 9000)
        if kind == "generator":
            page.locator("[name=tokens]").fill("3")
            page.get_by_role("button", name="Write").click()
        page.wait_for_selector(f"[data-run='{number}'] .note:has-text('10,000 characters are read')", timeout=WAIT)


def end_while_it_writes(page: Any, started: Started) -> None:
    """Press Ctrl-C while two runs write, and check that the page says so at the next click."""
    form = page.locator("form.written")
    form.locator("textarea").fill("<i>Ma</i>")
    form.locator("[name=tokens]").fill("2000")
    form.get_by_role("button", name="Write").click()
    for run in (1, 3):
        page.wait_for_selector(f"[data-run='{run}'] .token", timeout=WAIT)
    assert page.locator("[data-run='3'] .prompt").first.evaluate("e => e.textContent") == "<i>Ma</i>"
    assert started.end() == (0, "")
    form.get_by_role("button", name="Write").click()
    page.wait_for_selector("text=The playground does not answer", timeout=WAIT)


def nothing_left_the_machine(opened: Opened, started: Started) -> None:
    assert (opened.errors, opened.foreign) == ([], [])
    listening = re.findall(r"socket\.bind \('127\.0\.0\.1', 0\)\n", started.noted.read_text())
    assert len(listening) == 1
    assert started.noted.read_text() == listening[0], "nothing was connected to, sent to or looked up"


def test_a_person_tries_every_kind_of_run(start: Callable[..., Started], browser: Any) -> None:
    started = start("stars", "shakespeare", "translation", "names")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+ shows .*task-stars, .*; press Ctrl-C to end\n", started.first_line)
    opened = open_address(browser, started.address)
    type_a_review(opened.page)
    ask_for_another_class(opened.page)
    hover(opened.page, "[data-run='0'] [data-row='3']", "[data-run='0'] [data-column]", "attends to")
    generate(opened.page)
    look_at_what_was_considered(opened.page)
    stop(opened.page)
    translate(opened.page)
    written = "[data-run='2'] [data-row='0']"
    hover(opened.page, written, "[data-run='2'] [data-column]", "attends to")
    paste_far_too_much(opened.page)
    width = opened.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 1200, "nothing is wider than the window"
    nothing_left_the_machine(opened, started)
    end_while_it_writes(opened.page, started)
