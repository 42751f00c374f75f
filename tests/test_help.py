"""`train --help`, and what is answered to guesses: names of other programs, other dialects, values that need quotes."""

import shlex
import sys
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException

from firstlight import config_files, spelling
from firstlight.commands.train import parsed
from firstlight.config.help import GROUPS, INTERNAL, help_text
from firstlight.config.keys import SECTIONS, keys_of
from firstlight.config.messages import ALSO_CALLED, explain
from firstlight.config.schema import compose
from firstlight.errors import UserError
from key_reference import all_keys


@pytest.fixture
def at_80_columns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("at_80_columns")
def test_help_shows_the_commands_every_group_the_keys_at_the_top_and_the_sections() -> None:
    text = help_text([], [])
    assert text.count("firstlight train ") >= 10
    assert max(map(len, text.splitlines())) <= 80
    for group in set(config_files.groups()) - set(INTERNAL):
        assert f"\n  {group}: {GROUPS[group]}\n" in text
    assert not [group for group in INTERNAL if f"\n  {group}:" in text]
    assert "\n  seed=\n      Seed of the initial weights" in text
    assert all(f"\n  --help {section}\n" in text for section in SECTIONS if section)


@pytest.mark.usefixtures("at_80_columns")
@pytest.mark.parametrize("section", ["model", "data", "trainer", "callbacks"])
def test_help_for_a_section_describes_its_first_ten_keys_and_names_the_others(section: str) -> None:
    text, complete = help_text([section], ["task=stars"]), help_text([section, "more"], ["task=stars"])
    shown, _, more = text.partition("  more: ")
    described = [line for line in shown.splitlines() if line.startswith(f"  {section}.")]
    names = [key.name for key in keys_of(compose(["task=stars"])) if key.section == section]
    assert 5 <= len(described) <= 10
    assert len(described) + more.partition(f"--help {section} more")[0].count(",") + 1 == len(names)
    assert all(f"\n  {name}" in complete for name in names)


@pytest.mark.usefixtures("at_80_columns")
def test_help_for_a_word_shows_only_what_has_this_name() -> None:
    task = help_text(["task"], [])
    assert "  task=names\n      First names" in task
    assert "seed=" not in task
    assert help_text(["lr"], []) == "  optimizer.lr=0.003\n      Learning rate.\n      Type: number."
    assert "  data.url=https://www.gutenberg.org" in help_text(["data", "more"], ["task=shakespeare"])
    assert "callbacks.translations.beam_size=4 (of callbacks=translations)" in help_text(["beam_size"], [])
    assert "model.num_decoder_layers=null (of a translator)" in help_text(["num_decoder_layers"], [])
    with pytest.raises(UserError, match="--help nothing: not a group or a key; `--help` lists them"):
        help_text(["nothing"], [])
    with pytest.raises(UserError, match=r"--help n_epochs: not a group or a key; did you mean epochs\?"):
        help_text(["n_epochs"], [])


@pytest.mark.usefixtures("at_80_columns")
def test_help_shows_the_values_of_other_arguments() -> None:
    text = help_text(["model", "optimizer"], ["task=stars", "model=large", "optimizer=muon", "callbacks=none"])
    assert "  model.dim=128\n" in text
    assert "  optimizer.matrix_lr=0.02\n" in text
    assert "_target_" not in text.replace("_target_, options", "")


@pytest.mark.usefixtures("at_80_columns")
def test_help_describes_the_users_own_class(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        'class Count:\n    """Counts the batches.\n\n    Args:\n        every: Steps.\n    """\n'
    )
    typed = ["+callbacks.count._target_=mine.Count", "+callbacks.count.every=3"]
    sys.path.append(str(tmp_path))
    try:
        text = help_text(["callbacks.count"], typed)
    finally:
        sys.path.remove(str(tmp_path))
    assert text == "  callbacks.count\n      Counts the batches.\n  callbacks.count.every=3\n      Steps."


def test_names_of_other_programs_lead_to_keys_that_exist() -> None:
    assert not {key for meant in ALSO_CALLED.values() for key in meant} - {*config_files.groups(), *all_keys()}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("tags=demo seed=3", "tags=[demo] seed=3"),
        ("tags=[demo] tags=null tags=", "tags=[demo] tags=null tags="),
        ("seed=1,2 -m tags=demo", "-m seed=1,2 tags=[demo]"),
        ("-m teacher=null,latest,[latest,logs/a]", "-m teacher=null,[latest],[latest,logs/a]"),
        ("task=stars --cfg job seed=3", "--cfg job task=stars seed=3"),
        ("task=stars --config-dir there -m", "--config-dir there -m task=stars"),
        ("~logger --config-dir=x +a.b=1", "--config-dir=x ~logger +a.b=1"),
        ("-m folds=3 seed=1,2", "-m data.folds=3 data.fold=0,1,2 seed=1,2"),
        ("data.path=~/x.csv", f"data.path={Path.home()}/x.csv"),
    ],
)
def test_arguments_reach_hydra_as_it_accepts_them(typed: str, expected: str) -> None:
    _, options, overrides = parsed(typed.split())
    assert [*options, *overrides] == expected.split()


QUOTES = "a value with spaces, commas, brackets or quotes must be quoted for Hydra and for the shell; write"


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("data.text_column=text (en)", f"{QUOTES} \"data.text_column='text (en)'\""),
        ("data.text_column=it's", f"{QUOTES} 'data.text_column='\"'\"'it\\'\"'\"'s'\"'\"''"),
    ],
)
def test_an_argument_that_hydra_cannot_read_is_answered_with_what_works(typed: str, message: str) -> None:
    assert explain(OverrideParseException(typed, "mismatched input")).startswith(f"{typed}: {message}")


def test_the_quoting_of_a_message_works() -> None:
    for name in ("text (en)", "a,b", "it's", 'say "x"', "[x]", "$HOME", "back\\slash", "end\\", "\\'", "null"):
        (argument,) = shlex.split(spelling.quoted_option("data.text_column", name))
        assert OverridesParser.create().parse_overrides([argument])[0].value() == name
    assert spelling.quoted_option("data.text_column", "plain_name") == "data.text_column=plain_name"
