"""Messages name an option as the user types it for the current command, or as a keyword in Python."""

import contextvars
from collections.abc import Iterator
from pathlib import Path

import pytest

import firstlight
from firstlight import spelling
from firstlight.commands.baseline import BaselineOptions
from firstlight.commands.evaluate import EvaluateOptions
from firstlight.commands.predict import PredictOptions
from firstlight.data import CharacterData, ReviewData
from firstlight.errors import RunError, UserError
from tests_support import Scripts

OVERRIDE = spelling.as_override
EVALUATE, PREDICT, BASELINE = map(spelling.as_options_of, (EvaluateOptions, PredictOptions, BaselineOptions))
MESSAGES = [
    (
        "a.csv:7: label 5 is outside 0 to 4; set data.lowest_label=1 if the file counts stars from 1",
        "a.csv:7: label 5 is outside 0 to 4; set --data.lowest-label 1 if the file counts stars from 1",
        "a.csv:7: label 5 is outside 0 to 4; set lowest_label=1 if the file counts stars from 1",
    ),
    (
        "data.path=my data.csv: there is no such file; check data.text_column.",
        "--data.path my data.csv: there is no such file; check --data.text-column.",
        "path=my data.csv: there is no such file; check text_column.",
    ),
    ("set data.labels=classes", "set --data.labels classes", 'set labels="classes"'),
    ("data.labels='x' must be", "--data.labels 'x' must be", "labels='x' must be"),
    ("or data.skip_too_long=true", "or data.skip_too_long=true", "or skip_too_long=True"),
    ("name another paths.log_dir=…", "name another --log-dir …", "name another log_dir=…"),
    ("call data.use_vocabulary_of(module)",) * 3,
    ("/my/data.path and my-data.path and x.data.path",) * 3,
]


@pytest.fixture
def in_python() -> Iterator[None]:
    """Spell options as in Python, where no command runs."""
    spelling.use(spelling.as_keyword)
    yield
    spelling.use(OVERRIDE)


@pytest.mark.parametrize(("written", "typed", "keyword"), MESSAGES)
@pytest.mark.parametrize("kind", [UserError, RunError])
def test_an_error_spells_options_as_the_user_types_them(kind, written, typed, keyword) -> None:
    for spell, expected in ((OVERRIDE, written), (EVALUATE, typed), (spelling.as_keyword, keyword)):
        spelling.use(spell)
        error = kind(written)
        assert str(error) == expected
        assert str(kind(str(error))) == expected  # an error that is made from another error
        assert error.args == (written,)


def test_each_command_has_its_own_options() -> None:
    spelling.use(PREDICT)
    assert str(UserError("check data.text_column and data.label_column")) == "check --text-column and data.label_column"


def test_an_option_is_spelled_by_itself() -> None:
    for spell, expected in (
        (OVERRIDE, "checkpoint=last"),
        (EVALUATE, "--checkpoint last"),
        (BASELINE, "checkpoint=last"),
        (spelling.as_keyword, 'checkpoint="last"'),
    ):
        spelling.use(spell)
        assert spelling.option("checkpoint", "last") == expected


def test_a_command_leaves_no_trace(scripts: Scripts) -> None:
    done = scripts.run("evaluate", "latest")
    assert (done.returncode, done.stderr) == (
        2,
        "error: latest: no trained run below logs; train one, or set --log-dir\n",
    )
    assert spelling.option("paths.log_dir") == "paths.log_dir"
    assert contextvars.copy_context().run(spelling.option, "paths.log_dir") == "paths.log_dir"


def weeks(label: int) -> str:
    return "text,label\n" + "".join(f"it broke after {i} weeks,{label}\n" for i in range(30))


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: ReviewData(class_names=["a", "b"]), r'^class_names requires labels="classes", not binary$'),
        (lambda: CharacterData(), "^path is not set; set it to a text file, as in path=my_novel.txt$"),
        (lambda: CharacterData(path="none.txt").prepare_data(), "^path=none.txt: the file or folder does not exist"),
        (lambda: ReviewData(path="weeks.csv").prepare_data(), r"^weeks.csv:2: label 5 .*; set lowest_label=1 if"),
        (lambda: ReviewData(path="weeks.csv", lowest_label=1).train_dataloader(), r'; .* set labels="classes"$'),
        (lambda: firstlight.load("latest"), "no trained run below logs; train one, or set log_dir$"),
    ],
)
def test_in_python_options_are_keywords(use, message, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("weeks.csv").write_text(weeks(5))
    with pytest.raises(ValueError, match=message):
        use()
