"""Names and texts that would command a terminal or a console: every command shows them, and none obeys."""

import csv
from pathlib import Path

import pytest

from tests_support import Scripts

TITLE = "\x1b]0;owned\x07"  # sets the title of a terminal's window
SHOWN = "\\x1b]0;owned\\x07"
GOOD, BAD = f"[red]good{TITLE}", "[/b]bad\x9b31m\u202e"
COLUMN = f"[/b]stars{TITLE}"
FILE = f"[red]reviews{TITLE}.csv"
pytestmark = pytest.mark.filterwarnings("ignore:Glyph")  # whose message has the character as it is
COMMANDS = ("\x1b]", "\x07", "\x9b", "\u202e")


def assert_harmless(shown: str, *names: str) -> None:
    """No character of the names commands the terminal, and all that can be read of them is there."""
    assert not [command for command in COMMANDS if command in shown]
    lines = "".join(shown.split())  # a table breaks long names
    for name in names:
        assert name in lines, shown


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    """A folder with a file of reviews whose name, columns and classes are hostile."""
    scripts = Scripts(tmp_path_factory.mktemp("hostile"))
    with (scripts.folder / FILE).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", COLUMN])
        table.writerows([f"a {word} thing number {i}{TITLE}", label] for i in range(60) for word, label in WORDS)
    return scripts


WORDS = [("nice", GOOD), ("poor", BAD)]


@pytest.fixture(scope="module")
def trained_on_hostile(hostile: Scripts) -> tuple[Path, str]:
    """The run's folder, and what the terminal showed."""
    done = hostile.run_in_terminal(
        "train",
        *("task=reviews", "data.labels=classes", f"data.path='{FILE}'", f"data.label_column='{COLUMN}'", "tags=[/b]"),
        *("model=tiny", "context_length=7", "trainer.max_epochs=1", "trainer.accelerator=cpu", "threads=1"),
        *("paths.log_dir='logs[/b]'", "data.test_fraction=0.2", "data.validation_fraction=0.2"),
        "trainer.enable_progress_bar=false",
    )
    assert done.returncode == 0, done.stdout
    (record,) = hostile.folder.rglob("metrics.json")
    return record.parent, done.stdout


def test_a_training_shows_names_as_they_are_and_obeys_none(trained_on_hostile: tuple[Path, str]) -> None:
    folder, shown = trained_on_hostile
    assert "epoch 1/1" not in shown, "a progress bar"
    assert_harmless(shown, f"[red]good{SHOWN}", "[/b]bad\\x9b31m\\u202e", "logs[/b]")
    assert_harmless((folder / "train.log").read_text(encoding="utf-8"))
    assert (folder / "confusion_matrix" / "test.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("evaluate", ["{run}"], ["logs[/b]", f"[red]reviews{SHOWN}.csv"]),
        ("report", ["logs["], ["logs["]),
        ("predict", ["{run}", "--input", FILE, "--text-column", TITLE], [f"nocolumn{SHOWN}", f"[/b]stars{SHOWN}"]),
        ("evaluate", ["{run}", "--data.label-column", TITLE], [f"thecolumn'{SHOWN}'doesnotexist", f"[/b]stars{SHOWN}"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_commands_show_names_as_they_are(name, arguments, says, hostile, trained_on_hostile) -> None:
    run = str(trained_on_hostile[0].relative_to(hostile.folder))
    done = hostile.run(name, *(argument.format(run=run) for argument in arguments))
    assert "Traceback" not in done.stderr
    assert_harmless(done.stdout + done.stderr, *says)


def test_a_prediction_is_visible_on_a_terminal_and_as_it_is_in_a_pipe(hostile, trained_on_hostile) -> None:
    (hostile.folder / "few.csv").write_text(f"text\na nice thing{TITLE}\na poor thing\n", encoding="utf-8")
    arguments = [str(trained_on_hostile[0]), "--input", "few.csv"]
    done = hostile.run_in_terminal("predict", *arguments)
    assert_harmless(done.stdout, f"anicething{SHOWN}", f"[red]good{SHOWN}", "[/b]bad\\x9b31m\\u202e")
    rows = list(csv.DictReader(hostile.run("predict", *arguments).stdout.splitlines()))
    assert [row["text"] for row in rows] == [f"a nice thing{TITLE}", "a poor thing"]
    assert list(rows[0]) == ["text", "label", f"probability_{BAD}", f"probability_{GOOD}"]
