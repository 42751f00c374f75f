"""A forked process behaves like a newly started one. Both run the same small programs."""

import subprocess
import sys
from pathlib import Path

import pytest

from processes import CAN_FORK, ForkedProcess, environment
from tests_support import Done

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="forked processes require Linux")


def forked(folder: Path, program: str, *arguments: str, **environ: str) -> ForkedProcess:
    """Fork a process that runs a program, given as a text."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    return ForkedProcess([str(folder / "program.py"), *arguments], folder, environment() | environ)


def in_both_ways(folder: Path, program: str, *arguments: str, **environ: str) -> tuple[Done, Done]:
    """Run a program as a forked and as a new process, and return how each ended."""
    process = forked(folder, program, *arguments, **environ)
    out, err = process.communicate(timeout=60)
    done = subprocess.run(
        [sys.executable, str(folder / "program.py"), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment() | environ,
        check=False,
    )
    return Done(process.wait(), out, err), Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    "program",
    [
        *(f"raise SystemExit({code!r})" for code in (2, None, "a message")),
        "import os; os._exit(7)",
        "import atexit; atexit.register(print, 'at the end'); raise SystemExit(3)",
        "import sys; sys.stdout.write('no line end'); sys.stderr.write('none here')",
        "import threading, time; threading.Timer(0.1, print, ['of a thread']).start(); print('first')",
    ],
)
def test_a_program_ends_and_prints_as_it_does_when_started_from_nothing(program: str, tmp_path: Path) -> None:
    forked, fresh = in_both_ways(tmp_path, program)
    assert forked == fresh


def test_a_program_sees_what_it_sees_when_started_from_nothing(tmp_path: Path) -> None:
    shown = (
        "sys.argv",
        "sys.path",
        "sys.orig_argv",
        "os.getcwd()",
        "__file__, __name__, __spec__, sys.modules['__main__'].__file__",
        "sorted(item for item in os.environ.items() if not item[0].startswith(('KMP_', 'PYTORCH_', 'TORCH')))",
        "sys.stdin.read()",
        "[(file.isatty(), file.encoding.lower()) for file in (sys.stdin, sys.stdout, sys.stderr)]",
        "{number: str(signal.getsignal(number)) for number in signal.valid_signals()}.values()",
        "logging.getLogger().handlers, logging.getLogger().level, logging.root.manager.disable",
        "[name for name in sys.modules if name.partition('.')[0] in ('firstlight', 'hydra_plugins')]",
    )
    (tmp_path / "own").mkdir()
    lines = (f"print(re.sub('0x[0-9a-f]+', '', str(({each}))))" for each in shown)
    program = "\n".join(["import logging, os, re, signal, sys", *lines])
    more = {"PYTHONPATH": str(tmp_path / "own"), "FIRSTLIGHT_DATA": "café"}
    forked, fresh = in_both_ways(tmp_path, program, "one", "It's two", **more)
    assert forked.returncode == 0, forked.stderr
    assert forked == fresh


def test_two_processes_draw_different_random_numbers(tmp_path: Path) -> None:
    program = "import random, numpy, torch; print(random.random(), numpy.random.random(), torch.rand(1).item())"
    seen = [forked(tmp_path, program).communicate(timeout=60)[0].split() for _ in range(2)]
    assert len(set(seen[0] + seen[1])) == 6
