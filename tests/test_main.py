"""The command `firstlight`: its sub-commands are the scripts of src/, and it imports only what it needs."""

import functools
import gc
import importlib
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import firstlight
from firstlight.__main__ import COMMANDS, main
from firstlight.commands import frame
from tests_support import ROOT, Done, captured, environment

HEAVY = {"torch", "lightning", "hydra", "omegaconf", "numpy", "tyro", "rich"}
OF_A_TRAINING = {"torch", "lightning", "torchmetrics", "datasets", "wandb", "matplotlib"}


def start(*arguments: str, options: tuple[str, ...] = (), cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    """Run `python -m firstlight` as a separate process."""
    command = [sys.executable, *options, "-m", "firstlight", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """How a command ends that is started once for all tests; standard error also lists what it has imported."""
    folder = tmp_path_factory.mktemp("timed")
    return functools.cache(lambda *arguments: start(*arguments, options=("-X", "importtime"), cwd=folder))


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Done:
    """Run the command inside this process."""
    monkeypatch.setattr(sys, "argv", ["firstlight", *arguments])
    with captured() as (out, err):
        try:
            main()
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 0
    return Done(code, out.getvalue(), err.getvalue())


def test_garbage_collections_are_rare_in_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    thresholds: list[int] = []
    monkeypatch.setattr(gc, "set_threshold", thresholds.append)
    assert frame.run(lambda: "done") == "done"
    assert thresholds
    assert thresholds[0] > 100 * 700


def test_every_command_is_a_script_of_src_but_new() -> None:
    scripts = {path.stem for path in (ROOT / "src").glob("*.py")}
    modules = {path.stem for path in (ROOT / "src/firstlight/commands").glob("[!_]*.py")} - {"frame", "job"}
    assert set(COMMANDS) == modules == scripts | {"new"}


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"new"}))
def test_a_command_and_its_script_call_the_same_function(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = runpy.run_path(str(ROOT / "src" / f"{name}.py"))
    module = importlib.import_module(f"firstlight.commands.{name}")
    ran: list[Any] = []
    monkeypatch.setattr(frame, "run", ran.append)
    monkeypatch.setattr("firstlight.__main__.run", ran.append)
    monkeypatch.setattr(sys, "argv", ["firstlight", name])
    monkeypatch.delitem(sys.modules, module.__name__)
    main()
    assert script["run"] is frame.run or script["run"].__module__ == frame.__name__
    assert script["main"].__module__ == module.__name__
    assert [each.__module__ for each in ran] == [module.__name__], "and not of __main__"


@pytest.mark.parametrize("arguments", [(), ("--help",), ("help",), ("-h",)])
def test_help_lists_every_command(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    done = call(monkeypatch, *arguments)
    assert done.returncode == 0
    for name, summary in COMMANDS.items():
        assert any(line.split() == [name, *summary.split()] for line in done.stdout.splitlines())


@pytest.mark.parametrize("typed", [(), *((name,) for name in COMMANDS), ("train", "task=nothing"), ("runs", "nowhere")])
def test_the_version_is_that_of_the_package(typed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in typed:  # a process has not imported its own main module
        monkeypatch.delitem(sys.modules, f"firstlight.commands.{name}", raising=False)
    done = call(monkeypatch, *typed, "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"firstlight {firstlight.__version__}\n", "")


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("trian", "error: firstlight trian: there is no such command; did you mean train?\n"),
        ("raport", "error: firstlight raport: there is no such command; did you mean report?\n"),
        ("xyz", f"error: firstlight xyz: there is no such command; there are {', '.join(COMMANDS)}\n"),
        ("task=stars", "error: task=stars is an argument of a command; did you mean `firstlight train task=stars`?\n"),
    ],
)
def test_an_unknown_command_is_one_line_and_exit_code_2(typed, message, monkeypatch) -> None:
    done = call(monkeypatch, typed)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


@pytest.mark.parametrize(
    ("arguments", "not_imported"),
    [
        (("--help",), HEAVY),
        (("trian",), HEAVY),
        (("--version",), HEAVY),
        (("report", "--help"), {"torch", "lightning", "hydra"}),
        (("runs", "nowhere"), {"torch", "lightning", "hydra", "rich.table"}),
        (("train", "--help"), OF_A_TRAINING),
        (("train", "model.dim=50", "model.num_heads=3"), OF_A_TRAINING),
        (("baseline", "--task", "translation"), OF_A_TRAINING | {"sklearn"}),
    ],
)
def test_an_answer_does_not_wait_for_what_it_does_not_need(arguments, not_imported, timed) -> None:
    done = timed(*arguments)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time:" in line}
    assert "firstlight" in imported
    assert not imported & not_imported


@pytest.mark.parametrize("name", ["predict", "train", "new"])
def test_the_help_of_a_command_names_it_as_it_was_typed(name, monkeypatch, timed) -> None:
    module = timed(name, "--help")
    assert module.returncode == 0, module.stderr
    assert f"python -m firstlight {name} " in module.stdout
    if name == "predict":  # Hydra keeps state of the process, and tests import firstlight.commands.new
        inside = call(monkeypatch, "help", name)
        assert inside.returncode == 0
        assert f"usage: firstlight {name} " in inside.stdout


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["ru"], ["runs"]),
        (["evaluate", "latest", "--split", "v"], ["validation"]),
        (["runs", "--prun"], ["--prune", "--prune-checkpoints"]),
        (["predict", "lo"], []),  # a path, which bash completes
    ],
)
def test_bash_completes_commands_options_and_values(words: list[str], completed: list[str], monkeypatch) -> None:
    script = call(monkeypatch, "--tyro-print-completion", "bash").stdout
    assert "complete -o default -F _tyro_firstlight firstlight" in script
    line = " ".join(f"'{word}'" for word in ("firstlight", *words))
    asked = f'COMP_WORDS=({line}); COMP_CWORD={len(words)}; _tyro_firstlight; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (completed, "")


def test_zsh_gets_a_script_with_the_mended_places(monkeypatch: pytest.MonkeyPatch) -> None:
    script = call(monkeypatch, "--tyro-print-completion", "zsh").stdout
    assert script.startswith("#compdef firstlight\n")
    assert '"$((CURRENT - 1))"' in script
    assert "_files; return" in script
    done = call(monkeypatch, "--tyro-print-completion", "fish")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
