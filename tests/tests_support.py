"""The entry scripts, run as a user runs them.

A script runs in one of three ways. `Scripts.run` runs it inside the tests' own process and is the fastest. `start`,
`run_alone` and `run_in_terminal` run it in a separate process, for signals, exit codes and terminals. This process is
forked from one that has imported the libraries (processes.py). With `fresh=True` it is newly started.
"""

import bz2
import contextlib
import csv
import errno
import fcntl
import io
import json
import logging
import os
import pty
import runpy
import signal
import struct
import subprocess
import sys
import termios
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyte

from processes import CAN_FORK, ForkedProcess
from processes import environment as environment

ROOT = Path(__file__).parents[1]
Process = subprocess.Popen[str]
TRUE_PROCESSES = bool(os.environ.get("TRUE_PROCESSES"))  # start a new process for each script


@dataclass
class Done:
    """The exit code and the output of a script."""

    returncode: int
    stdout: str
    stderr: str


@dataclass
class Scripts:
    """Runner of src/<name>.py in a separate folder and without a network."""

    folder: Path

    def run(self, name: str, *arguments: str) -> Done:
        """Run a script inside this process, which has already imported torch."""
        script = str(ROOT / "src" / f"{name}.py")
        with captured() as (out, err), contextlib.chdir(self.folder), patch.object(sys, "argv", [script, *arguments]):
            code, log, known = 0, logging.getLogger(), set(sys.modules)
            level, handlers = log.level, list(log.handlers)
            with patch.dict(os.environ, environment(), clear=True), patch.object(sys, "path", list(sys.path)):
                try:
                    runpy.run_path(script, run_name="__main__")
                except SystemExit as error:
                    code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
                except BaseException:  # as Python does with an uncaught exception
                    traceback.print_exc(file=err)
                    code = 1
                finally:
                    for name in set(sys.modules) - known:  # a module of the user belongs to this folder
                        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(self.folder):
                            del sys.modules[name]
                    log.setLevel(level)  # the next test must not see a changed level
                    for handler in set(log.handlers) - set(handlers):
                        log.removeHandler(handler)
                        with contextlib.suppress(OSError):  # a full disk, which Python ignores too at its end
                            handler.close()
        return Done(code, out.getvalue(), err.getvalue())

    def succeed(self, name: str, *arguments: str) -> Done:
        """Run a script, which succeeds."""
        done = self.run(name, *arguments)
        assert done.returncode == 0, done.stderr
        return done

    def refuse(self, name: str, *arguments: str) -> str:
        """Run a script, which ends with exit code 2 and one line. Return the line."""
        done = self.run(name, *arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith("error: ")
        return done.stderr

    def start(
        self,
        name: str,
        *arguments: str,
        fresh: bool = False,
        environ: Mapping[str, str] | None = None,
        terminal: int | None = None,
        own_group: bool = False,
    ) -> Process:
        """Start a script as a separate process with its output in pipes or on a terminal, and return the process.

        fresh: start a new Python instead of forking; environ: additional variables; terminal: a file descriptor;
        own_group: let it lead a process group.
        """
        command = [str(ROOT / "src" / f"{name}.py"), *arguments]
        variables = environment() | (environ or {})
        if not fresh and CAN_FORK and not TRUE_PROCESSES:
            return ForkedProcess(command, self.folder, variables, terminal, own_group)
        output = subprocess.PIPE if terminal is None else terminal
        return subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=output,
            stderr=output,
            text=True,
            cwd=self.folder,
            env=variables,
            process_group=0 if own_group else None,
        )

    def run_alone(
        self, name: str, *arguments: str, fresh: bool = False, environ: Mapping[str, str] | None = None
    ) -> Done:
        """Run a script as a separate process, and wait for its end."""
        process = self.start(name, *arguments, fresh=fresh, environ=environ)
        out, err = process.communicate(timeout=300)
        return Done(process.returncode, out, err)

    def run_in_terminal(
        self,
        name: str,
        *arguments: str,
        fresh: bool = False,
        columns: int = 110,
        environ: Mapping[str, str] | None = None,
        interrupt: Callable[[bytes], bool] = lambda _: False,
    ) -> Done:
        """Run a script as a separate process on a terminal. The result's stdout has everything that was shown.

        interrupt: a function of the text so far that returns whether to press Ctrl-C, which happens only once.
        """
        terminal, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        attributes = termios.tcgetattr(inside)
        attributes[3] |= termios.NOFLSH  # else Ctrl-C discards the text that this test has not yet read
        termios.tcsetattr(inside, termios.TCSANOW, attributes)
        size = {"COLUMNS": str(columns), "LINES": "24", "TERM": "xterm-256color"}
        process = self.start(name, *arguments, fresh=fresh, environ=size | dict(environ or {}), terminal=inside)
        os.close(inside)
        shown, is_interrupted = b"", False
        with open(terminal, "rb", buffering=0) as file:
            try:
                while part := file.read(65536):
                    shown += part
                    if not is_interrupted and interrupt(shown):
                        is_interrupted = True
                        os.write(file.fileno(), b"\x03")  # the terminal shows ^C; it is not the one of the process,
                        os.kill(process.pid, signal.SIGINT)  # which therefore needs the signal too
            except OSError as error:  # Linux raises this when the other end is closed
                assert error.errno == errno.EIO
        return Done(process.wait(timeout=300), shown.decode(), "")

    def train(self, *arguments: str) -> Path:
        """Train to the end, and return the run folder."""
        self.succeed("train", *arguments)
        return self.newest_run()

    def newest_run(self) -> Path:
        files = (self.folder / "logs").glob("*/runs/*/metrics.json")
        return max(files, key=lambda file: file.stat().st_mtime_ns).parent


def rendered(shown: str, columns: int) -> list[str]:
    """Return the lines of a terminal at the end, including lines that have scrolled out of sight."""
    return list(screens(shown, columns, len(shown) or 1))[-1]


def screens(shown: str, columns: int, step: int, rows: int = 24) -> Iterator[list[str]]:
    """Yield the lines of a terminal after every `step` characters, including lines that have scrolled out of sight."""
    screen = pyte.HistoryScreen(columns, rows, history=10_000)
    stream = pyte.Stream(screen)
    for start in range(0, max(len(shown), 1), step):
        stream.feed(shown[start : start + step])
        scrolled = ["".join(line[column].data for column in range(columns)) for line in screen.history.top]
        lines = [line.rstrip() for line in (*scrolled, *screen.display)]
        while lines and not lines[-1]:
            lines.pop()
        yield lines


def records(folder: Path) -> dict[str, dict[str, Any]]:
    """Return metrics.json of every run in a folder, such as a sweep, by the name of the run."""
    return {file.parent.name: json.loads(file.read_text()) for file in sorted(folder.glob("*/metrics.json"))}


def sample_rows(name: str, count: int, split: str = "train") -> list[dict[str, Any]]:
    """Return the first rows of a split of a generated sample."""
    return [json.loads(line) for line in islice(sample_lines(f"{name}/{split}.jsonl"), count)]


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_lines(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as lines of JSON."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def sample_reviews(count: int, split: str = "train") -> list[dict[str, Any]]:
    """Return the first generated reviews of a split with equally many of each label. count: a multiple of 5."""
    kept: dict[int, int] = dict.fromkeys(range(5), 0)
    reviews = []
    for review in map(json.loads, sample_lines(f"reviews/{split}.jsonl")):
        if len(reviews) == count:
            break
        if kept[review["label"]] < count // 5:
            kept[review["label"]] += 1
            reviews.append(review)
    return reviews


def sample_lines(file: str) -> Iterator[str]:
    """Yield the lines of a file of a generated sample, such as names.txt."""
    from firstlight.data.sources import SAMPLES

    with bz2.open(SAMPLES / f"{file}.bz2", "rt", encoding="utf-8") as opened:
        yield from opened


def write_short_samples(folder: Path) -> None:
    """Write the samples with only their first 1,000 rows of training, 100 of validation and 100 of test."""
    from firstlight.data.sources import SAMPLES

    for file in SAMPLES.glob("*/*.bz2"):
        count = {"train": 1_000}.get(file.name.partition(".")[0], 100)
        lines = islice(sample_lines(f"{file.parent.name}/{file.stem}"), count)
        write_packed(folder / file.parent.name / file.name, "".join(lines))


def write_packed(path: Path, text: str) -> None:
    """Write a text to a .bz2 file, as the samples are stored."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bz2.compress(text.encode()))


def some_names(count: int) -> str:
    """Return the first generated names, one on a line."""
    return "".join(islice(sample_lines("names.txt"), count))


def some_text(length: int) -> str:
    """Return the beginning of the generated plays."""
    text = "".join(islice(sample_lines("plays.txt"), length))  # a line has at least one character
    assert len(text) > length
    return text[:length]


def contents(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, for comparisons."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@contextlib.contextmanager
def captured() -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Capture the output of the block."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err


def imported_by(code: str) -> set[str]:
    """Return the modules that a new Python has imported after some code."""
    program = f"{code}\nimport sys; print(*sys.modules)"
    variables = {"PYTHONPATH": str(ROOT / "src"), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def wait_until(condition: Callable[[], bool], process: Process, seconds: float = 120) -> None:
    """Wait until a condition holds that a running process fulfills."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.002)


def children_of(process_id: int) -> list[int]:
    """Return the ids of the child processes of a process, or [] if there is no /proc."""
    tasks = Path(f"/proc/{process_id}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]
