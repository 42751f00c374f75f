"""The classes and settings of docs/extending.md work in a project that `firstlight new` makes."""

import json
import re
import sys

import pytest

from firstlight.commands import new
from tests_support import ROOT, Scripts, captured

PAGE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```(?:python|yaml)\n# ((?:birds|conf)/\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^firstlight train (task=birds .*)$", PAGE, re.MULTILINE)
SHORT = ("trainer.max_epochs=2", "trainer.log_every_n_steps=1", "threads=1", "trainer=cpu")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    """A new project with the files of the page."""
    folder = tmp_path_factory.mktemp("extending")
    with pytest.MonkeyPatch.context() as patch, captured():
        patch.chdir(folder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "birds"]:  # of another test
            patch.delitem(sys.modules, name)
        patch.setattr("sys.argv", ["firstlight", "birds"])
        new.main()
    for name, content in FILES:
        path = folder / "birds" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return Scripts(folder / "birds")


def test_the_page_shows_a_loss_an_attention_a_metric_data_and_an_optimizer() -> None:
    names = {name for name, _ in FILES}
    assert {f"birds/{name}.py" for name in ("losses", "attention", "metrics", "optimizers")} <= names
    assert {"conf/task/birds.yaml", "conf/optimizer/lion.yaml"} <= names
    assert len(COMMANDS) == 5


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_trains(project: Scripts, command: str) -> None:
    done = project.run_alone("train", *command.split(), *SHORT)
    assert done.returncode == 0, done.stderr
    run = project.newest_run()
    measured = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["metrics"]
    assert {"val/loss", "test/loss"} <= set(measured)
    for name in re.findall(r"callbacks\.(\w+)\._target_", command):
        assert {f"val/{name}", f"test/{name}"} <= set(measured)
        assert f"train/{name}" in (run / "history.jsonl").read_text(encoding="utf-8")
