"""`firstlight check` and `train --doctor`, as a user runs them."""

import math
import re
import sys

import pytest

from firstlight.commands import check
from firstlight.commands.frame import run
from firstlight.training.doctor import advice
from tests_support import Scripts

QUICK = ("task=names", "model=tiny", "data.source=sample", "threads=1", "trainer.accelerator=cpu")


def checked(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Return the exit code, the output and the errors of the command in this process."""
    sys.argv[1:] = arguments
    code = 0
    try:
        run(check.main)
    except SystemExit as error:
        code = int(str(error.code))
    return code, *capsys.readouterr()


def test_check_has_a_line_for_each_check_and_fails_with_code_1(tmp_path, capsys, monkeypatch, compiled_without_code):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    code, output, _ = checked(("firstlight.generator.network:Generator", *QUICK), capsys)
    assert code == 0
    assert re.findall(r"^(ok|-|FAIL) +(\w+)", output, re.MULTILINE) == [
        *(("ok", "loss"), ("ok", "gradients"), ("ok", "evaluation"), ("ok", "batch"), ("-", "padding")),
        *(("ok", "future"), ("ok", "cache"), ("ok", "export"), ("ok", "compile")),
    ]
    code, output, _ = checked((*QUICK, "model.causal=false"), capsys)
    assert code == 1
    assert re.search(r"^FAIL +future +a token sees later tokens", output, re.MULTILINE)
    code, _, errors = checked(("birds", *QUICK), capsys)
    assert (code, errors.count("\n")) == (2, 1)
    assert "birds does not name a class; write package.module:Class" in errors


def test_the_doctor_names_the_change_that_helps_and_writes_no_run(scripts: Scripts) -> None:
    done = scripts.succeed("train", "--doctor", *QUICK, "optimizer.lr=1e-4", "trainer.max_steps=400")
    assert "learning rate × 50, the default helps most" in done.stdout
    assert len(re.findall(r"val/loss \d+\.\d{4} after 50 steps", done.stdout)) == 5
    assert re.search(r"^ok +memorizing .* of AdamW with a rate of 0.003", done.stdout, re.MULTILINE)
    assert re.search(r"^ok +length +400 steps, of which 40 are the warm-up", done.stdout, re.MULTILINE)
    assert not (scripts.folder / "logs" / "names").exists()
    scripts.refuse("train", "--doctor", "-m", *QUICK)


def test_the_doctor_of_few_texts_names_their_number_and_a_search_without_success_a_page() -> None:
    changes: dict[str, dict[str, float]] = {"as configured": {}, "learning rate × 3": {"optimizer.lr": 3e-3}}
    better = advice(changes, {"as configured": 0.7, "learning rate × 3": 0.5}, 6)
    assert better.endswith("the loss after 50 steps, of only 6 texts, is 29% lower; try optimizer.lr=0.003")
    assert "docs/learning.md" in advice(changes, {"as configured": 0.7, "learning rate × 3": math.inf}, 60)


def test_a_small_file_trains_the_least_number_of_steps_and_max_steps_is_enough(scripts: Scripts) -> None:
    rows = [f"{('good', 'bad')[i % 2]} thing number {i},{i % 2}" for i in range(40)]
    (scripts.folder / "mine.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    quick = ("task=reviews", "data.path=mine.csv", "model=tiny", "threads=1", "trainer.accelerator=cpu", "test=false")
    for overrides, steps in {("min_steps=12", "epochs=3"): 12, ("trainer.max_steps=14",): 14}.items():
        run = scripts.train(*quick, *overrides, "callbacks.early_stopping=null")
        lines = [line for line in (run / "history.jsonl").read_text().splitlines() if '"val/loss"' in line]
        assert f'"step": {steps}' in lines[-1] or f'"step": {steps - 1}' in lines[-1], overrides
        if overrides == ("min_steps=12", "epochs=3"):
            assert len(lines) == 3  # as many validations as epochs
