"""Test of what a new process imports to read a run: torch, and nothing that only trainings and figures need."""

import subprocess
import sys

from processes import environment
from tests_support import ROOT

HEAVY = ("lightning", "torchmetrics", "datasets", "scipy", "sklearn", "matplotlib", "transformers", "torch._dynamo")
PREDICT = f"""
import sys
from firstlight.commands import generate, predict
from firstlight.kind.registry import KINDS
sys.argv[0] = "predict"
predict.main()
for kind in KINDS.values():
    kind.get("run")
print([name for name in {HEAVY} if name in sys.modules])
"""


def test_a_run_is_read_without_lightning(trained) -> None:
    arguments = [sys.executable, "-c", PREDICT, str(trained("sentiment")), "--text", "It works."]
    path = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(arguments, env=environment() | path, capture_output=True, text=True, check=True)
    prediction, imported = done.stdout.splitlines()
    assert "positive" in prediction
    assert imported == "[]"
