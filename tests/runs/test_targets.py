"""The user's own classes by `_target_`: from the current folder, with one line for what cannot be used."""

import json
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
from omegaconf import OmegaConf

import firstlight
from firstlight.commands.frame import make_importable
from firstlight.errors import UserError
from firstlight.runs import record
from firstlight.runs.record import git_state, hash_of_code
from firstlight.runs.targets import check_targets, own_sources, targets
from tests_support import Scripts

QUICK = ["model.dim=14", "trainer.max_steps=3", "logger=none", "threads=1"]
NETWORK = """
import torch
from torch import nn


class Mean(nn.Module):
    def __init__(self, config, vocab_size, num_outputs, unknown_id=1):
        super().__init__()
        self.context_length = config.context_length
        self.embedding = nn.Embedding(vocab_size, config.dim)
        self.head = nn.Linear(config.dim, num_outputs, bias=config.options["bias"])

    def forward(self, token_ids, padding_mask=None):
        return self.head(self.embedding(token_ids).mean(dim=1))


class Nameless(nn.Module):
    def __init__(self, *_):
        super().__init__()


class Short(nn.Module):
    def __init__(self, vocab, classes):
        super().__init__()


class NoNetwork:
    pass
"""


@pytest.fixture
def own(scripts: Scripts) -> Scripts:
    """A folder with a module of the user's own, whose name no other test has."""
    (scripts.folder / f"{scripts.folder.name}_own.py").write_text(NETWORK, encoding="utf-8")
    return scripts


def named(own: Scripts, name: str) -> str:
    return f"model._target_={own.folder.name}_own.{name}"


def test_a_network_of_the_current_folder_trains_and_is_loaded_only_there(own, tiny_training, monkeypatch) -> None:
    run = own.train("task=sentiment", *tiny_training, *QUICK, named(own, "Mean"), "+model.options.bias=false")
    own_module = own.folder / f"{own.folder.name}_own.py"
    monkeypatch.chdir(own.folder)
    make_importable(own.folder)
    import_module(own_module.stem)
    loaded = firstlight.load(run)
    assert type(loaded.network).__name__ == "Mean"
    assert loaded.network.head.bias is None  # type: ignore[union-attr]
    assert set(loaded.predict("It works.").probabilities) == {"negative", "positive"}
    code = json.loads((run / "metrics.json").read_text())["code"]
    config = OmegaConf.create({"model": {"_target_": f"{own_module.stem}.Mean"}})
    assert code == hash_of_code(config) != hash_of_code(OmegaConf.create({}))
    own.succeed("explore", str(run), "--figures", "curves", "attributions")
    own.refuse("explore", str(run), "--figures", "attention")
    own_module.unlink()
    done = own.run_alone("predict", str(run), "--text", "It works.")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot be imported: No module named" in done.stderr
    assert done.stderr.endswith("start in its folder\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model._target_=Net", "model._target_=Net must be a class in a module, such as my_package.my_module.MyClass"),
        ("+callbacks.x._target_=nowhere.Thing", "x._target_=nowhere.Thing: the package nowhere is neither in "),
    ],
)
def test_a_package_that_does_not_exist_is_one_line(change: str, message: str, scripts: Scripts) -> None:
    assert message in scripts.refuse("train", "task=sentiment", change)
    assert not (scripts.folder / "logs").exists()


def test_a_class_that_cannot_be_used_is_one_line(own: Scripts, tiny_training: list[str]) -> None:
    module = f"{own.folder.name}_own"
    (own.folder / f"{module}_broken.py").write_text("import no_such_library\n", encoding="utf-8")
    expected = {
        named(own, "Nothing"): (
            f"model._target_={module}.Nothing: {module} has no Nothing; {module} has Mean, Nameless, Short, NoNetwork\n"
        ),
        named(own, "NoNetwork"): f"model._target_={module}.NoNetwork is not a subclass of torch.nn.Module",
        named(own, "Nameless"): "the network has no attribute context_length; set self.context_length",
        named(own, "Short"): "Short must accept the arguments config, vocab_size, num_outputs, unknown_id, in this ord",
        f"model._target_={module}_broken.Net": "cannot be imported: No module named 'no_such_library'",
        f"+callbacks.mine._target_={module}.Nothing": f"callbacks.mine._target_={module}.Nothing: {module} has no No",
        f"+module.loss._target_={module}.Nothing": f"module.loss._target_={module}.Nothing: {module} has no Nothing; ",
        f"+callbacks.mine._target_={module}.Short": "missing 2 required positional arguments: 'vocab' and 'classes'",
    }
    for change, message in expected.items():
        assert message in own.refuse("train", "task=sentiment", *tiny_training, *QUICK, change)
    assert not list(own.folder.glob("logs/*/runs/*")), "a mistake leaves no folder"


def test_only_what_is_not_installed_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_birds").mkdir()
    (tmp_path / "my_birds" / "__init__.py").touch()
    (tmp_path / "my_birds" / "nets.py").write_text("A = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    config = OmegaConf.create(
        {
            "a": {"_target_": "my_birds.nets.Net"},
            "b": [{"_target_": "lightning.pytorch.loggers.CSVLogger"}, {"_target_": "collections.OrderedDict"}],
            "c": {"_target_": "firstlight.classifier.module.Classification"},
            "hydra": {"sweeper": {"_target_": "nowhere.Sweeper"}},
        }
    )
    assert [key for key, _ in targets(config)] == ["a._target_", "b.0._target_", "b.1._target_", "c._target_"]
    check_targets(config)
    assert own_sources(config) == [tmp_path / "my_birds"]
    before = hash_of_code(config)
    record.hash_of_source.cache_clear()
    (tmp_path / "my_birds" / "nets.py").write_text("A = 2\n")
    assert hash_of_code(config) != before
    with pytest.raises(UserError, match=r"a\._target_=my birds\.Net must be a class in a module"):
        check_targets(OmegaConf.create({"a": {"_target_": "my birds.Net"}}))


def test_the_repository_of_the_code_or_of_the_current_folder_is_recorded(tmp_path, monkeypatch) -> None:
    mine, outside = tmp_path / "mine", tmp_path / "outside"
    (mine / "benchmarks" / "measured").mkdir(parents=True)
    outside.mkdir()
    git = ["git", "-C", str(mine), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "mine"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    for checkout, current, found in ((None, mine, commit), (None, outside, None), (mine, outside, commit)):
        monkeypatch.setattr(record, "CHECKOUT", checkout)
        monkeypatch.chdir(current)
        assert git_state() == (found and {"commit": found, "modified": False})
    for name, is_code in (("README.md", False), ("benchmarks/measured/a.json", False), ("a.py", True)):
        (mine / name).touch()
        subprocess.run([*git, "add", name], check=True)
        assert git_state() == {"commit": commit, "modified": is_code}, name
