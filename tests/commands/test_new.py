"""`firstlight new`: what it creates, and what it refuses."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from firstlight.commands import new
from firstlight.errors import UserError
from tests_support import captured


def create(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str) -> str:
    """Run the command in a folder; returns what it prints."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["firstlight", name])
    with captured() as (out, _):
        new.main()
    return out.getvalue()


def test_a_project_has_its_own_data_classes_settings_and_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = create(monkeypatch, tmp_path, "birds")
    assert "cd birds\n" in said
    assert "firstlight train task=birds" in said
    found = {str(path.relative_to(tmp_path / "birds")) for path in (tmp_path / "birds").rglob("*") if path.is_file()}
    assert found == {
        *("pyproject.toml", "README.md", ".gitignore", "data/birds.csv", "tests/test_birds.py"),
        *("conf/task/birds.yaml", "conf/model/birds.yaml", "conf/callbacks/birds.yaml"),
        *("birds/__init__.py", "birds/callbacks.py", "birds/network.py"),
    }
    for path in (tmp_path / "birds").rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert not any(placeholder in text for placeholder in new.PLACEHOLDERS), path
    assert (tmp_path / "birds" / "birds" / "network.py").read_text().startswith('"""Networks of this project."""')


def test_its_settings_compose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from firstlight.config.checks import check
    from firstlight.config.schema import compose

    create(monkeypatch, tmp_path, "birds")
    monkeypatch.chdir(tmp_path / "birds")
    monkeypatch.syspath_prepend(tmp_path / "birds")
    config = compose(["task=birds"])
    check(config)
    assert config.model._target_ == "birds.network.ConvolutionalClassifier"
    assert config.callbacks.weight_norm._target_ == "birds.callbacks.WeightNorm"
    assert OmegaConf.to_container(config.model.options) == {"width": 3}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Birds", "Birds: not a name of a Python package"),
        ("a/b", "a/b: not a name of a Python package"),
        ("class", "class: not a name of a Python package"),
        ("data", "data: every project has a folder of this name"),
        ("sentiment", "sentiment: firstlight has a task or a model of this name"),
        ("torch", "torch: an installed package has this name"),
    ],
)
def test_a_name_that_would_not_work_is_refused(name, message, tmp_path, monkeypatch) -> None:
    with pytest.raises(UserError, match=message):
        create(monkeypatch, tmp_path, name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_exists_is_left_alone(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "robins"
    {"file": path.touch, "folder": path.mkdir, "link": lambda: path.symlink_to("nowhere")}[kind]()
    with pytest.raises(UserError, match="robins: a file or folder of this name exists already; choose another name"):
        create(monkeypatch, tmp_path, "robins")
    assert [entry.name for entry in tmp_path.iterdir()] == ["robins"]
