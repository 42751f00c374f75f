"""The YAML of a run folder is read as data: it cannot expand, crash the parser, or be interpolated."""

import json
from pathlib import Path

import pytest

from firstlight.errors import UserError
from firstlight.files import plain_yaml
from firstlight.files.plain_yaml import read_config, read_yaml
from firstlight.lab.reports.all_runs import gather
from tests_support import Scripts

BOMB = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefghijklm", "bcdefghijklmn", strict=True)
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BOMB, "it has an alias, *a, in line 2"),
        ("[" * 100_000, "it is nested more than 100 levels deep"),
        ("a: [", "did not find expected node content"),
        ("x: !!python/object/apply:os.system [touch canary]", "could not determine a constructor"),
        ("x: " + "1" * 5_000, "Exceeds the limit"),
        ("a" * 101, "it is larger than 100 bytes, the limit of a configuration"),
    ],
)
def test_what_is_no_configuration_is_one_line(content, message, tmp_path, monkeypatch) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(content)
    if "bytes" in message:
        monkeypatch.setattr(plain_yaml, "MOST_BYTES", 100)
    with pytest.raises(UserError) as error:
        read_yaml(path)
    assert str(error.value).startswith(f"{path} cannot be read as YAML (")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_configuration_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("home: ${oc.env:HOME}\nlr: 1.0e-05\nnames: [a, null, true]\n")
    assert read_config(path) == {"home": "${oc.env:HOME}", "lr": 1e-5, "names": ["a", None, True]}


def test_a_bomb_ends_neither_explore_nor_the_report(scripts: Scripts) -> None:
    for name, overrides in {"one": ["optimizer.lr=0.1"], "two": []}.items():
        folder = scripts.folder / name
        (folder / ".hydra").mkdir(parents=True)
        record = {"task": "stars", "status": "finished", "overrides": overrides, "metrics": {"val/loss": 1.0}}
        (folder / "metrics.json").write_text(json.dumps(record))
        (folder / "config.yaml").write_text(BOMB)
        (folder / ".hydra" / "hydra.yaml").write_text("[" * 100_000)
    for content in (BOMB, "model: {pooling: mean}\ndata: {labels: stars}\n"):
        (scripts.folder / "two" / "config.yaml").write_text(content)
        assert "config.yaml is missing or broken" in scripts.refuse("explore", "two")
    (scripts.folder / "two" / "config.yaml").write_text(BOMB)
    assert [run.keys.get("optimizer.lr") for run in gather(scripts.folder)] == [0.1, None]
