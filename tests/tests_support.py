"""The entry scripts, run as a user runs them."""

import contextlib
import errno
import fcntl
import io
import json
import logging
import os
import pty
import runpy
import struct
import subprocess
import sys
import termios
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parents[1]
NO_NETWORK = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_DISABLE_TELEMETRY": "1"}


@dataclass
class Done:
    """How a script ended."""

    returncode: int
    stdout: str
    stderr: str


@dataclass
class Scripts:
    """Runs src/<name>.py in a folder of its own and without a network."""

    folder: Path

    def run(self, name: str, *arguments: str) -> Done:
        """Run a script inside this process, which has torch at hand already."""
        script = str(ROOT / "src" / f"{name}.py")
        with captured() as (out, err), contextlib.chdir(self.folder), patch.object(sys, "argv", [script, *arguments]):
            code, level = 0, logging.getLogger().level
            with patch.dict(os.environ, environment(), clear=True):
                try:
                    runpy.run_path(script, run_name="__main__")
                except SystemExit as error:
                    code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
                except BaseException:  # what Python does with an exception that nobody catches
                    traceback.print_exc(file=err)
                    code = 1
                finally:
                    logging.getLogger().setLevel(level)  # the next test's log is as it would be without this one
        return Done(code, out.getvalue(), err.getvalue())

    def start(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a script as a process of its own."""
        return subprocess.Popen(
            [sys.executable, str(ROOT / "src" / f"{name}.py"), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=environment(),
        )

    def run_alone(self, name: str, *arguments: str) -> Done:
        """Run a script as a process of its own, to the end."""
        process = self.start(name, *arguments)
        out, err = process.communicate(timeout=300)
        return Done(process.returncode, out, err)

    def run_in_terminal(self, name: str, *arguments: str) -> Done:
        """Run a script as a process of its own on a terminal; stdout has everything that was shown there."""
        terminal, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 110, 0, 0))
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "src" / f"{name}.py"), *arguments],
            **dict.fromkeys(("stdin", "stdout", "stderr"), inside),
            cwd=self.folder,
            env=environment() | {"COLUMNS": "110", "LINES": "24", "TERM": "xterm-256color"},
        )
        os.close(inside)
        shown = b""
        with open(terminal, "rb", buffering=0) as file:
            try:
                while part := file.read(65536):
                    shown += part
            except OSError as error:  # how Linux says that nobody writes there any more
                assert error.errno == errno.EIO
        return Done(process.wait(timeout=300), shown.decode(), "")

    def train(self, *arguments: str) -> Path:
        """Train to the end; returns the run's folder."""
        done = self.run("train", *arguments)
        assert done.returncode == 0, done.stderr
        return self.newest_run()

    def newest_run(self) -> Path:
        files = (self.folder / "logs").glob("*/runs/*/metrics.json")
        return max(files, key=lambda file: file.stat().st_mtime_ns).parent


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """metrics.json of every run in a folder, such as a sweep's, by the run's name."""
    return {file.parent.name: json.loads(file.read_text()) for file in sorted(folder.glob("*/metrics.json"))}


def contents(folder: Path) -> dict[str, bytes]:
    """What every file below a folder holds, to see that nothing was written."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def environment() -> dict[str, str]:
    """The environment without what would let a test depend on this machine."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("WANDB_", "FIRSTLIGHT_"))}
    return kept | NO_NETWORK | {"COLUMNS": "200", "OMP_NUM_THREADS": "1"}


@contextlib.contextmanager
def captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """What is printed meanwhile."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 120) -> None:
    """Wait for something that a running process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.002)
