"""A forked process behaves like a newly started one. Both run the same small programs."""

import functools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from processes import CAN_FORK, SERVER, ForkedProcess, ForkServer
from tests_support import Done, Scripts, children_of, environment, fork_server

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="forked processes require Linux")
Start = Callable[..., ForkedProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that forks a process and runs a program, given as a text."""
    started: list[ForkedProcess] = []

    def fork(program: str, *arguments: str, environ: dict[str, str] | None = None) -> ForkedProcess:
        command = [str(written(tmp_path, program)), *arguments]
        started.append(ForkedProcess(fork_server(), command, tmp_path, environment() | (environ or {})))
        return started[-1]

    yield fork
    for process in started:
        process.kill()


def written(folder: Path, program: str) -> Path:
    path = folder / f"program{len(list(folder.glob('program*')))}.py"
    path.write_text(program, encoding="utf-8")
    return path


def in_both_ways(folder: Path, program: str, *arguments: str, **environ: str) -> tuple[Done, Done]:
    """Run a program as a forked and as a new process, and return how each ended."""
    command = [str(written(folder, program)), *arguments]
    process = ForkedProcess(fork_server(), command, folder, environment() | environ)
    out, err = process.communicate(timeout=60)
    done = subprocess.run(
        [sys.executable, *command],
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
        "print('done')",
        *(f"raise SystemExit({code!r})" for code in (2, 143, None, "a message")),
        "import os; os._exit(7)",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import atexit; atexit.register(print, 'at the end'); raise SystemExit(3)",
        "import sys; sys.stdout.write('no line end'); sys.stderr.write('none here')",
        "import threading, time; threading.Timer(0.1, print, ['of a thread']).start(); print('first')",
    ],
)
def test_a_program_ends_and_prints_as_it_does_when_started_from_nothing(program: str, tmp_path: Path) -> None:
    forked, fresh = in_both_ways(tmp_path, program)
    assert forked == fresh


@pytest.mark.parametrize(
    ("raised", "code"), [("ValueError('what was wrong')", 1), ("KeyboardInterrupt", -signal.SIGINT)]
)
def test_an_exception_that_nobody_catches_ends_a_process_with_a_traceback(
    raised: str, code: int, tmp_path: Path
) -> None:
    forked, fresh = in_both_ways(tmp_path, f"raise {raised}")
    assert forked.returncode == fresh.returncode == code
    assert forked.stderr.startswith("Traceback (most recent call last):")
    assert forked.stderr.splitlines()[-1] == fresh.stderr.splitlines()[-1]


def test_a_program_sees_what_it_sees_when_started_from_nothing(tmp_path: Path) -> None:
    shown = (
        "sys.argv",
        "sys.path",
        "sys.orig_argv",
        "os.getcwd()",
        "__file__, __name__, __spec__, sys.modules['__main__'].__file__",
        "sorted(item for item in os.environ.items() if not item[0].startswith(('KMP_', 'PYTORCH_', 'TORCH')))",
        "sys.stdin.read()",
        "[(file.isatty(), file.line_buffering, file.encoding) for file in (sys.stdin, sys.stdout, sys.stderr)]",
        "{number: str(signal.getsignal(number)) for number in signal.valid_signals()}.values()",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [])",
        "logging.getLogger().handlers, logging.getLogger().level, logging.root.manager.disable",
        "os.getppid() > 0, os.getpgid(0), os.getsid(0)",
        "[name for name in sys.modules if name.partition('.')[0] in ('firstlight', 'hydra_plugins', 'fork_server')]",
        "sorted(os.listdir('/proc/self/fd'))",
    )
    (tmp_path / "own").mkdir()
    lines = (f"print(re.sub('0x[0-9a-f]+', '', str(({each}))))" for each in shown)
    program = "\n".join(["import logging, os, re, signal, sys", *lines])
    more = {"PYTHONPATH": str(tmp_path / "own"), "FIRSTLIGHT_DATA": "café"}
    forked, fresh = in_both_ways(tmp_path, program, "one", "It's two", **more)
    assert forked.returncode == 0, forked.stderr
    assert forked == fresh


def test_a_server_suits_what_differs_only_in_variables_that_are_read_late() -> None:
    server = fork_server()
    assert server.suits(server.environment | {"FIRSTLIGHT_DATA": "x", "WANDB_MODE": "offline", "PYTHONPATH": "x"})
    assert not server.suits(server.environment | {"HF_HOME": "x"})
    assert not server.suits(server.environment | {"PYTHONHASHSEED": "1"})


def test_a_command_leaves_nothing_to_the_next_one(start: Start) -> None:
    change = (
        "import os, random, sys, logging, numpy, signal, torch\n"
        "os.environ['LEFT'] = '1'; os.chdir('/'); sys.path.append('/left'); sys.modules['left'] = sys\n"
        "logging.getLogger().setLevel(7); torch.set_num_threads(3); torch.manual_seed(1); torch.left = True\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); sys.stdout.close()\n"
    )
    look = (
        "import os, sys, logging, signal, torch\n"
        "print('LEFT' in os.environ, os.getcwd() == '/', '/left' in sys.path, 'left' in sys.modules)\n"
        "print(logging.getLogger().level == 7, signal.getsignal(signal.SIGTERM) == signal.SIG_IGN)\n"
        "print(hasattr(torch, 'left'), torch.get_num_threads() == 3, torch.initial_seed() == 1)"
    )
    first = start(change)
    first.communicate(timeout=60)
    assert first.returncode == 0
    out, err = start(look).communicate(timeout=60)
    assert out.split() == ["False"] * 9, err


def test_two_commands_draw_different_random_numbers(start: Start) -> None:
    program = "import random, numpy, torch; print(random.random(), numpy.random.random(), torch.rand(1).item())"
    seen = [start(program).communicate(timeout=60)[0].split() for _ in range(2)]
    assert len(set(seen[0] + seen[1])) == 6


def test_commands_run_at_the_same_time_and_each_has_its_own_end(start: Start, tmp_path: Path) -> None:
    program = (
        "import pathlib, sys, time\n"
        "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.01)\n"
        "print(sys.argv[1]); sys.exit(int(sys.argv[1]))"
    )
    processes = {code: start(program, str(code)) for code in (5, 6, 7)}
    assert len({process.pid for process in processes.values()}) == 3
    for code in (7, 5, 6):  # a different order than that of the starts
        assert processes[code].poll() is None
        (tmp_path / str(code)).touch()
        assert processes[code].communicate(timeout=60) == (f"{code}\n", "")
        assert processes[code].returncode == processes[code].poll() == processes[code].wait() == code


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_a_process_or_is_what_its_handler_makes_of_it(number: signal.Signals, start: Start) -> None:
    handler = f"import signal, sys\nsignal.signal({number:d}, lambda *_: sys.exit(9))\n"
    for program in ("", handler if number != signal.SIGKILL else ""):
        process = start(f"{program}import time\nprint('ready', flush=True)\ntime.sleep(60)")
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(timeout=60) == (9 if program else -number)
        process.send_signal(number)  # the process has ended; this is not an error


@pytest.mark.parametrize("fresh", [False, True])
def test_on_a_terminal_a_script_has_its_width_and_its_colours(fresh: bool, tmp_path: Path) -> None:
    done = Scripts(tmp_path).run_in_terminal("report", "--help", fresh=fresh)
    assert done.returncode == 0
    assert "\x1b[" in done.stdout
    assert max(map(len, done.stdout.split("\r\n"))) > 110 > 0


# --- a server that misbehaves ---


def test_workers_share_a_server(tmp_path: Path) -> None:
    """The server of the second worker is a fork of the first server, and continues after the first worker ends."""
    (tmp_path / "parent.py").write_text("import os; print(os.getppid())")
    first, second = (ForkServer(environment(), libraries=["json"], shared=tmp_path) for _ in range(2))

    def parent(server: ForkServer) -> int:
        process = ForkedProcess(server, [str(tmp_path / "parent.py")], tmp_path, environment())
        return int(process.communicate(timeout=60)[0])

    try:
        assert first.process is not None
        assert second.process is None
        assert parent(first) == first.process.pid
        assert parent(second) in children_of(first.process.pid)
        ending = threading.Thread(target=first.close)
        ending.start()
        assert parent(second) in children_of(first.process.pid)
    finally:
        second.close()
    ending.join(60)
    assert first.process.returncode == 0


@pytest.fixture
def small_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ForkServer]]:
    """Return a function that starts a separate server with few imports, which a test may break."""
    started: list[ForkServer] = []

    def begin(*libraries: str, **environ: str) -> ForkServer:
        started.append(ForkServer(environment() | environ, libraries=("numpy", *libraries)))
        return started[-1]

    yield begin
    for server in started:
        server.close()


def test_a_server_that_has_ended_is_an_error_and_not_an_exit_code(small_server, tmp_path: Path) -> None:
    server = small_server()
    run = functools.partial(ForkedProcess, server, [str(written(tmp_path, "import time; time.sleep(60)"))], tmp_path)
    process = run(environment())
    server.process.kill()
    server.process.wait()
    with pytest.raises(RuntimeError, match="the fork server has ended"):
        process.wait(timeout=60)
    with pytest.raises(RuntimeError, match="the fork server has ended"):
        run(environment())
    os.kill(process.pid, signal.SIGKILL)


def test_a_library_that_starts_a_thread_is_refused(small_server, tmp_path: Path) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=[60], daemon=True, name='a-thread').start()\n"
    )
    server = small_server("threaded", PYTHONPATH=str(tmp_path))
    with pytest.raises(RuntimeError, match="the fork server has ended"):
        ForkedProcess(server, [str(written(tmp_path, "pass"))], tmp_path, environment())
    assert server.process.wait(timeout=60) == 1


def test_what_still_runs_ends_with_the_server(small_server, tmp_path: Path) -> None:
    server = small_server()
    program = "import time; print('ready', flush=True); time.sleep(60)"
    process = ForkedProcess(server, [str(written(tmp_path, program))], tmp_path, environment())
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    server.close()
    assert process.stdout.readline() == ""
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    assert SERVER.is_file()
