"""A process that has imported the libraries once. It is forked for each command that a test starts.

`python tests/fork_server.py NUMBERS FOLDER LIBRARY…` imports the libraries and reads commands from the Unix socket with
that file descriptor; processes.py is the other end. With a command come four file descriptors: standard input, output
and error, and a pipe for the status. The forked process writes its process id into that pipe when it is ready, and the
server writes the status that os.waitpid returns when the process has ended.

The workers of pytest-xdist share one server. If it also gets the file descriptor of a listening socket, it forks itself
for each worker that connects there. In the folder, composed_once.py stores the files that the workers share.

The server imports only libraries. A command imports the modules of firstlight itself, so that their state (the time of
the start, the schemas registered with Hydra) is the same as in a new process.
"""

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import selectors
import signal
import socket
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

LIBRARIES = (
    "torch",
    "torch.nn.attention.flex_attention",
    "lightning.pytorch",
    "torchmetrics",
    "hydra",
    "omegaconf",
    "numpy",
    "scipy.sparse.linalg",
    "sklearn.linear_model",
    "sklearn.feature_extraction.text",
    "datasets",
    "tokenizers",
    "sacrebleu",
    "matplotlib.figure",
    "rich.live",
    "tyro",
    "torch.utils.tensorboard",
)
MAY_RUN = {"jemalloc_bg_thd"}  # a thread of pyarrow's memory allocator, which handles fork itself
NEW_SEEDS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda numpy: numpy.random.seed(),
    "torch": lambda torch: torch.default_generator.seed(),
}
DESCRIPTORS, MOST_BYTES = 4, 2**20  # of a command


@dataclass
class Command:
    """The command that a forked process runs."""

    arguments: list[str]  # the script and its arguments
    folder: str
    environment: dict[str, str]
    own_group: bool = False  # whether it leads a process group, to which tests can send signals


class Server:
    """Server that forks a process for each command, and reports the status of each ended process."""

    def __init__(self, requests: socket.socket, listener: socket.socket | None = None) -> None:
        self.set_by_libraries: dict[str, str] = {}  # variables that imports have added to the environment
        self.on_interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests handle Ctrl+C, and end the server
        self.listener = listener
        self.begin(requests)

    def begin(self, requests: socket.socket) -> None:
        """Receive commands from this socket."""
        self.requests = requests
        self.running: dict[int, int] = {}  # the status pipe of each process, by process id
        self.servers: list[int] = []  # the process ids of the servers of other workers
        self.ended, wakeup = socket.socketpair()
        self.ended.setblocking(False)
        wakeup.setblocking(False)
        self.wakeup = wakeup
        signal.set_wakeup_fd(wakeup.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> Command | None:
        """Return the command in each forked process; return None in the server when the tests have ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.requests, selectors.EVENT_READ)
            selector.register(self.ended, selectors.EVENT_READ)
            if self.listener is not None:
                selector.register(self.listener, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self.ended:
                        self.ended.recv(4096)
                        self.report()
                        continue
                    if key.fileobj is self.listener:
                        other, _ = self.listener.accept()
                        process_id = fork()
                        if process_id == 0:
                            self.close()
                            self.begin(other)
                            return self.serve()
                        other.close()
                        self.servers.append(process_id)
                        continue
                    received = receive(self.requests)
                    if received is None:
                        self.finish()
                        return None
                    command, descriptors = received
                    process_id = fork()
                    if process_id == 0:
                        self.become(command, descriptors)
                        return command
                    self.running[process_id] = descriptors.pop()
                    for descriptor in descriptors:
                        os.close(descriptor)

    def report(self) -> None:
        """Write the status of each process that has ended into its pipe."""
        for process_id in list(self.running):
            ended, status = os.waitpid(process_id, os.WNOHANG)
            if ended:
                pipe = self.running.pop(process_id)
                tell(pipe, f"{status}\n")
                os.close(pipe)

    def finish(self) -> None:
        """End all running processes, so that none outlives the tests."""
        for process_id in self.running:
            os.kill(process_id, signal.SIGKILL)
            os.waitpid(process_id, 0)
        for process_id in self.servers:  # these end with their workers; waiting counts their processor time
            os.waitpid(process_id, 0)

    def close(self) -> None:
        """Close the server's own files in a forked process."""
        signal.set_wakeup_fd(-1)
        for mine in (self.requests, self.ended, self.wakeup, *filter(None, [self.listener])):
            mine.close()
        for pipe in self.running.values():
            os.close(pipe)
        self.listener = None

    def become(self, command: Command, descriptors: list[int]) -> None:
        """Make this forked process equal to a new process."""
        if command.own_group:
            os.setpgid(0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, self.on_interrupt)
        self.close()
        *standard, status = descriptors
        for number, descriptor in enumerate(standard):
            os.dup2(descriptor, number)
            os.close(descriptor)
        open_standard_streams()
        os.chdir(command.folder)
        os.environ.clear()
        os.environ.update(self.set_by_libraries | command.environment)
        tell(status, f"{os.getpid()}\n")
        os.close(status)


def fork() -> int:
    """Call os.fork without the warning of Python 3.12, which also counts the threads of MAY_RUN."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def open_standard_streams() -> None:
    """Open standard input, output and error again. The server's objects have stored whether its own files can seek."""
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        old = getattr(sys, name)
        buffering = 0 if isinstance(old.buffer, io.RawIOBase) else -1
        stream = io.TextIOWrapper(
            open(number, "rb" if name == "stdin" else "wb", buffering=buffering, closefd=False),  # noqa: SIM115
            encoding=old.encoding,
            errors=old.errors,
            line_buffering=os.isatty(number) if name == "stdout" else old.line_buffering,
            write_through=old.write_through,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def receive(requests: socket.socket) -> tuple[Command, list[int]] | None:
    """Return the next command and its file descriptors, or None if the other end is closed."""
    content, descriptors, _, _ = socket.recv_fds(requests, MOST_BYTES, DESCRIPTORS)
    return (Command(**json.loads(content)), descriptors) if content else None


def tell(pipe: int, line: str) -> None:
    """Write a line into a status pipe, whose reader may have ended."""
    try:
        os.write(pipe, line.encode())
    except BrokenPipeError:
        return


class QuickEnd:
    """Hook that ends a forked process after atexit. Otherwise Python frees all imported modules, which takes 0.4 s."""

    def __init__(self) -> None:
        self.code: int | None = None  # None: Python ends the process
        atexit.register(self.end)  # before the imports register theirs, so that it runs last

    @contextlib.contextmanager
    def noticing(self) -> Iterator[None]:
        """Store the exit code of the block. Exceptions are not caught, so that Python prints them."""
        try:
            yield
            self.code = 0
        except KeyboardInterrupt:  # it ends a process by a signal
            raise
        except SystemExit as error:
            self.code = error.code & 0xFF if isinstance(error.code, int) else int(error.code is not None)
            raise
        except BaseException:
            self.code = 1
            raise

    def end(self) -> None:
        if self.code is None:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # Python reports it
            return
        os._exit(self.code)


def execute(command: Command, library_path: list[str]) -> None:
    """Run the script as `python script …` does. An exception ends this process in the same way."""
    script = command.arguments[0]
    own_path = filter(None, command.environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = [str(Path(script).parent), *own_path, *library_path]
    sys.argv[:] = command.arguments
    sys.orig_argv[:] = [sys.executable, *command.arguments]
    for name, seed in NEW_SEEDS.items():  # as after an import; Python's own random module does it itself
        if name in sys.modules:
            seed(sys.modules[name])
    module: Any = types.ModuleType("__main__")
    module.__file__ = script
    sys.modules["__main__"] = module
    exec(compile(Path(script).read_bytes(), script, "exec"), module.__dict__)  # noqa: S102


def fork_workers() -> None:
    """Let joblib fork its workers. By default it starts new processes, and each imports the libraries again."""
    from joblib.externals.loky.backend.context import set_start_method

    set_start_method("fork")
    warnings.filterwarnings("ignore", "`fork` start method should not be used with `loky`")


def refuse_threads() -> None:
    """End with a message if an import has started a thread, since a fork copies none."""
    names = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    tasks = Path("/proc/self/task")
    own = str(os.getpid())
    names += [name for task in tasks.iterdir() if task.name != own and (name := name_of(task)) not in MAY_RUN]
    if names:
        sys.exit(f"fork_server.py: an import has started threads, which no fork can copy: {', '.join(names)}")


def name_of(task: Path) -> str:
    return (task / "comm").read_text().strip()


def main() -> None:
    """Import the libraries, then fork for each command until the tests end."""
    ending = QuickEnd()
    server = Server(*(socket.socket(fileno=int(number)) for number in sys.argv[1].split(",")))
    typed = {os.path.abspath(part) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part}
    library_path = [part for part in sys.path[1:] if part not in typed]
    given = set(os.environ)
    folder, *libraries = sys.argv[2:]
    for name in libraries:
        importlib.import_module(name)
    if "joblib" in sys.modules:
        fork_workers()
    quicker = contextlib.ExitStack()
    if "hydra" in sys.modules:
        from composed_once import ComposedOnce

        quicker.enter_context(ComposedOnce(Path(folder) if folder else None).active())
    if engine := getattr(sys.modules.get("matplotlib.layout_engine"), "ConstrainedLayoutEngine", None):
        quicker.enter_context(patch.object(engine, "execute", lambda *_: None))  # as in the tests' own process
    server.set_by_libraries = {key: value for key, value in os.environ.items() if key not in given}
    refuse_threads()
    gc.collect()
    gc.freeze()  # a garbage collection in a forked process would copy all memory pages
    command = server.serve()
    if command is None:
        ending.code = 0
    else:
        with ending.noticing(), quicker:
            execute(command, library_path)


if __name__ == "__main__":
    main()
