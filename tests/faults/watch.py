"""A check of this process while it opens untrusted files: started programs, connections and written files."""

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import composed_once

STARTS_A_PROGRAM = ("os.system", "os.exec", "os.posix_spawn", "os.spawn", "subprocess.Popen", "pty.spawn")
CONNECTS = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "webbrowser.open", "urllib.Request")
CHANGES_FILES = ("os.remove", "os.rename", "os.truncate", "os.mkdir", "os.rmdir", "os.chmod", "os.link", "os.symlink")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
HARMLESS = ("git", "ldconfig", "uname")  # programs that describe the machine

_seen: list[str] | None = None  # the recorded actions; None outside of `watched`
_inside: tuple[str, ...] = ()  # the folders in which files may be written


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen is None:
        return
    if (event in STARTS_A_PROGRAM and not str(_program(arguments)).endswith(HARMLESS)) or event in CONNECTS:
        _seen.append(f"{event} {arguments!r:.200}")
    elif event in CHANGES_FILES:
        for path in arguments[:2]:
            if isinstance(path, str | bytes | os.PathLike) and not _may_write(path):
                _seen.append(f"{event} {os.fsdecode(path)}")
    elif event == "open":
        path, mode, flags = arguments
        writes = any(sign in mode for sign in "wax+") if isinstance(mode, str) else bool(flags & WRITES)
        if writes and not isinstance(path, int) and not _may_write(path):
            _seen.append(f"open {os.fsdecode(path)} for writing")


def _program(arguments: tuple[Any, ...]) -> Any:
    first = arguments[0]
    return first if first is not None or len(arguments) < 2 else arguments[1][0]


def _may_write(path: Any) -> bool:
    absolute = os.path.realpath(os.fsdecode(path))
    return f"{absolute}{os.sep}".startswith((*_inside, "/dev/", "/proc/")) or "__pycache__" in absolute


@functools.cache
def _listen() -> None:
    """Add the hook to this process, once, where it is used: it cannot be removed, and it sees every event."""
    sys.addaudithook(_audit)


@contextmanager
def watched(*folders: Path) -> Iterator[None]:
    """Fail if the block starts a program, opens a connection or writes outside the folders."""
    global _seen, _inside
    _listen()
    kept = composed_once.FOLDER  # in which the tests keep the merged configurations
    _inside = tuple(f"{folder.resolve()}{os.sep}" for folder in (*folders, kept))
    _seen = seen = []
    try:
        yield
    finally:
        _seen = None
    assert not seen, f"untrusted files made this process do: {'; '.join(dict.fromkeys(seen))}"
