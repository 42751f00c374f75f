"""Processes of the tests, forked by multiprocessing's fork server, which is forked from that of the tests."""

import atexit
import contextlib
import faulthandler
import functools
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver, resource_tracker, util
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

CAN_FORK = sys.platform == "linux"  # the frameworks of macOS, which torch uses, do not work after a fork
NO_NETWORK = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_DISABLE_TELEMETRY": "1"}
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload([])


def environment() -> dict[str, str]:
    """Return the environment without variables that would make a test depend on this machine or on earlier tests.

    Lightning's `seed_everything` sets PL_GLOBAL_SEED in the process of the tests.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("WANDB_", "FIRSTLIGHT_", "PL_"))}
    return kept | NO_NETWORK | {"COLUMNS": "200", "OMP_NUM_THREADS": "1"}


def start_server(prepare: Callable[[], None]) -> None:
    """Fork the server from this process, so that it has the imported libraries. It calls prepare() first."""

    def fork(path: bytes, arguments: Sequence[str], passed: Sequence[int]) -> int:
        """Run the code of `python -c code` in a forked process. multiprocessing starts a program in this place."""
        process = os.fork()
        if process:
            return process
        try:
            for number in {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2, *passed}:
                with contextlib.suppress(OSError):  # that of the list itself
                    os.close(number)
            faulthandler.disable()  # which pytest enables
            sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__module__.startswith("_pytest.")]
            for name in [each for each in sys.modules if each.partition(".")[0] in ("firstlight", "hydra_plugins")]:
                del sys.modules[name]  # which the conftest.py of a folder has imported
            prepare()
            exec(arguments[-1], {})  # noqa: S102
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)

    resource_tracker.ensure_running()  # which is a program
    with patch.object(util, "spawnv_passfds", fork), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest-xdist has a thread that waits for orders
        forkserver.ensure_running()


@functools.cache
def library_path() -> list[str]:
    """Return the path of a new process, without its own folder. That of the tests has folders of earlier tests too."""
    command = [sys.executable, "-c", "import sys; print(*sys.path[1:], sep='\\n')"]
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout.splitlines()


class ForkedProcess(subprocess.Popen[str]):
    """A process of the fork server that runs a script, in place of a program that is started."""

    def __init__(
        self,
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
        self._own_group = own_group
        output = subprocess.PIPE if terminal is None else terminal
        given = subprocess.DEVNULL if terminal is None else terminal
        streams: dict[str, Any] = {"stdin": given, "stdout": output, "stderr": output, "encoding": "utf-8"}
        super().__init__(list(arguments), cwd=folder, env=environment, **streams)

    def _execute_child(self, args: Any, *options: Any) -> None:
        """Fork a process. Popen calls this to start a program."""
        folder, environment = options[4:6]
        ends = options[9:15]  # of the pipes of input, output and errors: for reading, for writing
        streams = [Connection(os.dup(ends[number])) for number in (0, 3, 5)]  # multiprocessing passes them on
        composed = sys.modules["composed_once"].FOLDER
        what = (args, folder, dict(environment), self._own_group, streams, library_path(), composed)
        self._process = FORKED.Process(target=run_script, args=what)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        for stream in streams:
            stream.close()
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        self.returncode = self._process.exitcode
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        self._process.join(timeout)
        if self._internal_poll() is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode


def end_server() -> None:
    """End the server and its processes, and wait for it, so that its processor time is counted."""
    for process in multiprocessing.active_children():
        if process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)  # a worker of joblib has no working method `kill`
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


def run_script(
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    own_group: bool,
    streams: list[Connection],
    libraries: list[str],
    composed: Path,
) -> None:
    """Run a script in this forked process as `python script …` does."""
    sys.modules["composed_once"].FOLDER = composed  # type: ignore[attr-defined]
    if own_group:
        os.setpgid(0, 0)
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    typed = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = [str(Path(arguments[0]).parent), *typed, *libraries]
    sys.argv[:] = arguments
    sys.orig_argv[:] = [sys.executable, *arguments]
    sys.modules["numpy"].random.seed()  # as after an import; Python's own random module does it itself
    sys.modules["torch"].seed()
    try:
        runpy.run_path(arguments[0], run_name="__main__")
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
