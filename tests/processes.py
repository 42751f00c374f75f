"""Processes of the tests: forked from a server that has imported the libraries, or newly started."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from filelock import FileLock

from fork_server import LENGTH, LIBRARIES

COMPOSED = "composed"  # the folder of composed_once.py in the folder of the tests
SERVER = Path(__file__).with_name("fork_server.py")
CAN_FORK = sys.platform == "linux"  # the frameworks of macOS, which torch uses, do not work after a fork
# What scripts and libraries read when they are used, not when they are imported …
READ_LATE = ("FIRSTLIGHT_", "WANDB_", "COLUMNS", "LINES", "TERM", "PYTHONPATH", "NETRC", "PYTEST_", "NO_COLOR")
# … and what an import sets: in the tests' process once something has imported them, and in the server.
SET_BY_IMPORTS = (
    "KMP_DUPLICATE_LIB_OK",
    "KMP_INIT_AT_FORK",
    "PYTORCH_NVML_BASED_CUDA_CHECK",
    "TORCHINDUCTOR_CACHE_DIR",
)


class ForkedProcess:
    """A process of the fork server, with the methods of subprocess.Popen that the tests use."""

    def __init__(
        self,
        server: "ForkServer",
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        terminal: int | None = None,
        own_group: bool = False,
    ) -> None:
        """Run a script, the first of the arguments, in a folder.

        terminal: a file descriptor for input, output and errors; None: no input, and two pipes that are read as text.
        own_group: let the process lead a process group.
        """
        self.args = list(arguments)
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        self._readers: list[tuple[threading.Thread, list[str]]] = []
        with contextlib.ExitStack() as here:
            self._status, status = os.pipe()
            here.callback(os.close, status)
            if terminal is None:
                self.stdout, out = self._pipe(here)
                self.stderr, err = self._pipe(here)
                standard = [here.enter_context(open(os.devnull)).fileno(), out, err]
            else:
                standard = [terminal] * 3
            command = {"arguments": self.args, "folder": str(folder), "environment": dict(environment)}
            server.send(command | {"own_group": own_group}, [*standard, status])
        self.pid = self._line()

    @staticmethod
    def _pipe(here: contextlib.ExitStack) -> tuple[IO[str], int]:
        """Return a reader of a new pipe, and the other end, which only the process uses."""
        reader, writer = os.pipe()
        here.callback(os.close, writer)
        return open(reader, encoding="utf-8"), writer

    def _line(self) -> int:
        """Return the next number of the status pipe."""
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(self._status, 1)
            if not byte:
                raise RuntimeError(f"the fork server has ended; it was to run {' '.join(self.args)}")
            line += byte
        return int(line)

    def poll(self) -> int | None:
        """Return the exit code, or minus the signal that ended the process, or None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process, and return its exit code. Raises subprocess.TimeoutExpired."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None:
            waiting = select.poll()
            waiting.register(self._status, select.POLLIN)
            if waiting.poll(None if timeout is None else 1000 * max(0.0, timeout)):
                self.returncode = os.waitstatus_to_exitcode(self._line())
                os.close(self._status)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end of the process, and return its standard output and error."""
        end = None if timeout is None else time.monotonic() + timeout
        if not self._readers:
            self._readers = [self._reader(file) for file in (self.stdout, self.stderr) if file is not None]
        for thread, _ in self._readers:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
            if thread.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(None if end is None else max(0.0, end - time.monotonic()))
        out, err = ("".join(parts) for _, parts in self._readers)
        return out, err

    @staticmethod
    def _reader(file: IO[str]) -> tuple[threading.Thread, list[str]]:
        parts: list[str] = []

        def read() -> None:
            with file:
                parts.append(file.read())

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread, parts

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """Client of fork_server.py, which starts it, sends it commands and ends it."""

    def __init__(
        self, environment: Mapping[str, str], libraries: Sequence[str] = LIBRARIES, shared: Path | None = None
    ) -> None:
        """Start a server. environment: the environment of the server; libraries: the modules that it imports.

        shared: a folder; the first worker that names it starts a server, and the servers of the others are its forks.
        """
        self.environment = dict(environment)
        self.process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        if shared is None:
            self._start(libraries, "")
            return
        with FileLock(shared / "fork_server.lock"), contextlib.chdir(shared):  # a socket's path must be short
            try:
                self._requests = socket.socket(socket.AF_UNIX)
                self._requests.connect("fork_server")
            except (FileNotFoundError, ConnectionRefusedError):  # the server is not started, or it has ended
                self._requests.close()
                Path("fork_server").unlink(missing_ok=True)
                with socket.socket(socket.AF_UNIX) as listener:
                    listener.bind("fork_server")
                    listener.listen()
                    self._start(libraries, str(shared / COMPOSED), listener)

    def _start(self, libraries: Sequence[str], composed: str, *listener: socket.socket) -> None:
        self._requests, theirs = socket.socketpair()
        with theirs:
            numbers = [each.fileno() for each in (theirs, *listener)]
            self.process = subprocess.Popen(
                [sys.executable, str(SERVER), ",".join(map(str, numbers)), composed, *libraries],
                stdin=subprocess.DEVNULL,
                pass_fds=numbers,
                env=self.environment,
            )

    def suits(self, environment: Mapping[str, str]) -> bool:
        """Return whether a command with this environment behaves as in a new process.

        False if a variable differs that libraries or Python itself read at the start, such as HF_HOME.
        """
        differing = {key for key, _ in set(environment.items()) ^ set(self.environment.items())}
        return all(key.startswith(READ_LATE + SET_BY_IMPORTS) for key in differing)

    def send(self, command: dict[str, Any], descriptors: Sequence[int]) -> None:
        """Send a command and its file descriptors. The caller closes its own copies of them."""
        text = json.dumps(command).encode()
        message = LENGTH.pack(len(text)) + text
        with self._lock, contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the status pipe reports it
            sent = socket.send_fds(self._requests, [message], descriptors)
            self._requests.sendall(message[sent:])

    def close(self) -> None:
        """End the server and its processes, and wait for it, so that its processor time is counted.

        The server that other workers share ends after the last of them.
        """
        self._requests.close()
        if self.process is not None:
            self.process.wait()
