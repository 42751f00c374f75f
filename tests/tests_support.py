"""The entry scripts, run as a user runs them."""

import contextlib
import io
import os
import runpy
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
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
            code = 0
            with patch.dict(os.environ, environment(), clear=True):
                try:
                    runpy.run_path(script, run_name="__main__")
                except SystemExit as error:
                    code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
                except BaseException:  # what Python does with an exception that nobody catches
                    traceback.print_exc(file=err)
                    code = 1
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

    def train(self, *arguments: str) -> Path:
        """Train to the end; returns the run's folder."""
        done = self.run("train", *arguments)
        assert done.returncode == 0, done.stderr
        return self.newest_run()

    def newest_run(self) -> Path:
        files = (self.folder / "logs").glob("*/runs/*/metrics.json")
        return max(files, key=lambda file: file.stat().st_mtime_ns).parent


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
