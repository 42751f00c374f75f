"""Processes of the tests: forked from a server that has imported the libraries, or newly started."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from fork_server import LIBRARIES

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


class ForkedProcess(subprocess.Popen[str]):
    """A process of the fork server, which gets a command in place of a program that is started."""

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
        self._server, self._own_group = server, own_group
        output = subprocess.PIPE if terminal is None else terminal
        given = subprocess.DEVNULL if terminal is None else terminal
        streams: dict[str, Any] = {"stdin": given, "stdout": output, "stderr": output, "encoding": "utf-8"}
        super().__init__(list(arguments), cwd=folder, env=environment, **streams)

    def _execute_child(self, args: Any, *options: Any) -> None:
        """Send the command to the server. Popen calls this to start a program."""
        folder, environment = options[4:6]
        ends = options[9:15]  # of the pipes of input, output and errors: for reading, for writing
        self._status, status = os.pipe()
        command = {"arguments": args, "folder": str(folder), "environment": dict(environment)}
        try:
            descriptors = [ends[0], ends[3], ends[5], status]
            self._server.send(command | {"own_group": self._own_group}, descriptors)
        finally:
            os.close(status)
            self._close_pipe_fds(*ends)  # type: ignore[attr-defined]
        self.pid = self._line()

    def _line(self) -> int:
        """Return the next number of the status pipe."""
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(self._status, 1)
            if not byte:
                raise RuntimeError(f"the fork server has ended; it was to run {self.args}")
            line += byte
        return int(line)

    def _try_wait(self, flags: int) -> tuple[int, int]:
        """Return the process id and the status, as os.waitpid does, or (0, 0) while the process runs."""
        if flags & os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        status = self._line()
        os.close(self._status)
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and (ended := self._try_wait(os.WNOHANG))[0]:
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        return self.returncode


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
        if shared is None:
            self._start(libraries, "")
            return
        with FileLock(shared / "fork_server.lock"), contextlib.chdir(shared):  # a socket's path must be short
            try:
                self._requests = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                self._requests.connect("fork_server")
            except (FileNotFoundError, ConnectionRefusedError):  # the server is not started, or it has ended
                self._requests.close()
                Path("fork_server").unlink(missing_ok=True)
                with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
                    listener.bind("fork_server")
                    listener.listen()
                    self._start(libraries, str(shared / COMPOSED), listener)

    def _start(self, libraries: Sequence[str], composed: str, *listener: socket.socket) -> None:
        self._requests, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
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
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the status pipe reports it
            socket.send_fds(self._requests, [json.dumps(command).encode()], descriptors)

    def close(self) -> None:
        """End the server and its processes, and wait for it, so that its processor time is counted.

        The server that other workers share ends after the last of them.
        """
        self._requests.close()
        if self.process is not None:
            self.process.wait()
