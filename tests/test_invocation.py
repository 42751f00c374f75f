"""Messages name other commands in the form in which the user started the current one."""

import sys

import pytest

from firstlight import invocation as started
from firstlight.invocation import install_command, invocation
from tests_support import ROOT


@pytest.mark.parametrize(
    ("script", "original", "expected"),
    [
        (str(ROOT / "src" / "train.py"), ["python", "src/train.py"], "python src/predict.py"),
        ("/venv/bin/firstlight", ["python", "/venv/bin/firstlight", "train"], "firstlight predict"),
        ("/lib/commands/train.py", ["python", "-m", "firstlight", "train"], "python -m firstlight predict"),
        ("/lib/pytest/__main__.py", ["python", "-m", "pytest"], "firstlight predict"),
        ("", ["python"], "firstlight predict"),
    ],
)
def test_a_command_is_named_as_this_one_was_started(script, original, expected, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", [script])
    monkeypatch.setattr(sys, "orig_argv", original)
    assert invocation("predict") == expected


def test_an_extra_is_installed_from_the_checkout_or_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert install_command("optuna") == "pip install -c constraints.txt -e '.[optuna]'"
    monkeypatch.setattr(started, "CHECKOUT", None)
    assert install_command("optuna") == "pip install 'firstlight[optuna]'"
