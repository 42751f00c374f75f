"""Texts on a terminal are visible and complete, and control characters in them have no effect."""

import io
import os
import subprocess
import sys

import pytest
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from firstlight.console import Console
from firstlight.terminal_text import note, say, visible, write_out
from tests_support import ROOT

HOSTILE = "[red]\x1b]0;t\x07[/b] :smile: \x9b2J\u202e\udcff\r"
SHOWN = r"[red]\x1b]0;t\x07[/b] :smile: \x9b2J\u202e\udcff\r"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (HOSTILE, SHOWN),
        ("a\tb\nc", "a\tb\nc"),
        ("café ＼ 日本語 \u200fعربي\u200f 👩\u200d💻", "café ＼ 日本語 \u200fعربي\u200f 👩\u200d💻"),
        ("\x00\x7f\x85\u2066", "\\x00\\x7f\\x85\\u2066"),
    ],
)
def test_what_can_be_read_remains_and_what_commands_is_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_for_people_are_always_visible(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE, 7)
    note(HOSTILE)
    assert capsys.readouterr() == (f"{SHOWN} 7\n", f"note: {SHOWN}\n")


def test_a_result_is_visible_on_a_terminal_and_whole_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for is_terminal, expected in ((True, SHOWN), (False, HOSTILE)):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda is_terminal=is_terminal: is_terminal)
        monkeypatch.setattr(sys, "stdout", stream)
        write_out(HOSTILE, end="")
        assert stream.getvalue() == expected


@pytest.mark.parametrize("wrap", [str, Text], ids=["str", "Text"])
def test_a_console_shows_a_text_as_it_is(wrap: type) -> None:
    table = Table(title=wrap(HOSTILE))
    table.add_column(wrap(HOSTILE))
    table.add_row(wrap(HOSTILE))
    stream = io.StringIO()
    console = Console(file=stream, width=200, force_terminal=True, color_system=None)
    console.print(wrap(HOSTILE))
    console.print(table)
    assert stream.getvalue().count(SHOWN if wrap is str else r"[red]\x1b]0;t") == 4  # a Text leaves BEL and CR out
    assert not set(stream.getvalue()) & set("\x1b\x07\x9b\u202e\udcff")


def test_the_commands_of_a_console_itself_reach_the_terminal() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system="standard", width=80)
    console.show_cursor(False)
    console.print("x\x1b", style="bold")
    assert stream.getvalue() == "\x1b[?25l\x1b[1mx\\x1b\x1b[0m\n"
    assert next(iter(console.render(Text("\x1b")))) == Segment("\\x1b")


PROGRAM = """
import logging, warnings
from firstlight.commands.frame import run

def main():
    print("caf\\xe9 \\udcff")
    logging.getLogger("a").warning("\\x1b]0;log")
    warnings.warn("\\x1b]0;warning")
    raise ZeroDivisionError("\\x1b]0;trace")

run(main)
"""


@pytest.mark.parametrize(("encoding", "printed"), [("ascii", "caf\\xe9 \\udcff\n"), ("utf-8", "café \\udcff\n")])
def test_no_character_fails_to_be_printed_and_none_of_a_library_commands(encoding, printed, tmp_path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    environ = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, env=environ, capture_output=True, check=False, timeout=60
    )
    assert done.stdout.decode() == printed
    shown = done.stderr.decode()
    assert "\x1b" not in shown
    for text in ("log", "warning", "trace"):
        assert f"\\x1b]0;{text}" in shown


CLOSED = """
import logging, sys
from firstlight.console import Console
from firstlight.terminal_text import Handler

logging.basicConfig(handlers=[Handler()])
for _ in range(3):
    {first}
    {second}
sys.exit(3)
"""
LINES = ('Console().print("a line")', 'logging.warning("a record")')


@pytest.mark.parametrize("lines", [LINES, LINES[::-1]])
def test_a_closed_output_ends_nothing(lines: tuple[str, str]) -> None:
    """A training whose output is read by `head` continues."""
    reader, writer = os.pipe()
    os.close(reader)
    program = CLOSED.format(first=lines[0], second=lines[1])
    environ = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (3, b"")
