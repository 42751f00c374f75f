"""The options of the commands that read runs: their help, and keys that are typed as for `train`."""

import importlib
import re
import sys
from dataclasses import dataclass, field
from typing import Literal, get_type_hints

import pytest

from firstlight.__main__ import COMMANDS
from firstlight.command_options import examples_of, parse, refuse_keys
from firstlight.commands.evaluate import EvaluateOptions
from firstlight.errors import UserError
from tests_support import captured


def help_of(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    module = importlib.import_module(f"firstlight.commands.{name}")
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.setenv("COLUMNS", "80")
    with captured() as (out, _), pytest.raises(SystemExit):
        parse(getattr(module, f"{name.capitalize()}Options"), name)
    return out.getvalue()


def test_every_command_with_options_of_its_own_has_examples() -> None:
    assert {command for command in COMMANDS if not examples_of(command)} == {"train", "new", "check"}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"train", "check"}))
def test_help_names_values_in_words_and_shows_examples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = help_of(name, monkeypatch)
    assert not [word for word in ("STR", "{None", "default: None", "(default: )") if word in text]
    for example in examples_of(name):
        assert f"firstlight {name} {example}".rstrip() in text
        listed = text.rpartition(f"firstlight {name} {example}".rstrip())[2]
        assert all(flag in listed for flag in re.findall(r"--[a-z.-]+", example)), "an option of another command"
    assert max(map(len, text.splitlines()[1:])) <= 80


def test_help_shows_a_docstring_in_one_paragraph(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Group:
        source_column: str | None = None

    @dataclass
    class Options:
        """Do something that
        takes a while."""

        run: str
        """What
        to read."""
        figures: list[str] = field(default_factory=list)
        split: Literal["train", "test"] | None = None
        size: int = 4
        data: Group = field(default_factory=Group)

    monkeypatch.setattr(sys, "argv", ["it", "--run", "here", "--figures", "a", "b", "--data.source-column", "en"])
    assert parse(Options, "it") == Options("here", ["a", "b"], data=Group("en"))
    monkeypatch.setattr(sys, "argv", ["it", "--help"])
    with captured() as (out, _), pytest.raises(SystemExit):
        parse(Options, "it")
    text = out.getvalue()
    assert "  Do something that takes a while.\n" in text
    for shown in ("--run RUN", "--figures FIGURE [FIGURE ...]", "--split {train,test}", "--size N", "(default: 4)"):
        assert shown in text
    assert "--data.source-column COLUMN" in text


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["latest", "split=validation"], "split=validation: it takes options with dashes; write --split validation"),
        (["latest", "data.path=my.csv"], "data.path=my.csv: it takes options with dashes; write --data.path my.csv"),
        (["labels=stars"], "labels=stars: it takes options with dashes; write --data.labels stars"),
    ],
)
def test_a_key_as_for_train_is_answered_with_the_option(typed: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        refuse_keys(typed, EvaluateOptions, "it")
    assert str(error.value) == message


@pytest.mark.parametrize("typed", ["--data.path split=1.csv", "best:val/loss=1", "--split=test latest", "logs/seed=1"])
def test_a_value_with_an_equals_sign_is_no_key(typed: str) -> None:
    refuse_keys(typed.split(), EvaluateOptions, "evaluate")


def test_a_second_parse_adds_nothing_to_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["evaluate", "latest"])
    first = parse(EvaluateOptions, "evaluate")
    hints = get_type_hints(EvaluateOptions, include_extras=True)
    assert parse(EvaluateOptions, "evaluate") == first
    assert get_type_hints(EvaluateOptions, include_extras=True) == hints
