"""One process at a time in a folder: readers do not disturb it, and a file replaces the lock where there are none."""

import errno
import fcntl
import os
import subprocess
import threading
import time
from pathlib import Path
from socket import gethostname
from typing import Any

import pytest

from firstlight.errors import UserError
from firstlight.files import locks
from firstlight.runs.folder import LOCK, RunFolder


def test_readers_do_not_make_a_start_fail(tmp_path: Path) -> None:
    folder, is_over = RunFolder(tmp_path), threading.Event()

    def read() -> None:
        while not is_over.is_set():
            folder.is_locked()
            time.sleep(0.001)  # so that the start is not without processor time on a busy machine

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(50):
            with folder.locked():
                pass
    finally:
        is_over.set()
        for reader in readers:
            reader.join()


def test_readers_of_a_free_folder_do_not_find_one_another(tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    with (tmp_path / LOCK).open() as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert not RunFolder(tmp_path).is_locked()


def test_the_lock_names_its_owner_while_it_is_taken(tmp_path: Path) -> None:
    with RunFolder(tmp_path).locked():
        assert (tmp_path / LOCK).read_text() == f"{gethostname()} {os.getpid()}"
    assert (tmp_path / LOCK).read_text() == ""


@pytest.mark.parametrize("runs", [True, False])
def test_a_free_lock_with_an_owner_on_another_computer_is_taken_only_when_that_one_is_dead(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "SECONDS_TO_SETTLE", 0.01)
    monkeypatch.setattr(locks, "SECONDS_WITHOUT_BEAT", 1)
    folder, lock, is_over = RunFolder(tmp_path), tmp_path / LOCK, threading.Event()
    lock.write_text("elsewhere 1")
    assert folder.is_locked()

    def renew() -> None:
        while not is_over.wait(0.05):
            os.utime(lock)

    renewing = threading.Thread(target=renew)
    if runs:
        renewing.start()
        try:
            message = rf"^{tmp_path}: a process on elsewhere uses this folder, and the disk does not share its locks"
            with pytest.raises(UserError, match=message), folder.locked():
                pass
            assert lock.read_text() == "elsewhere 1"
        finally:
            is_over.set()
            renewing.join()
    else:
        with folder.locked():  # waits for a second
            assert lock.read_text() == f"{gethostname()} {os.getpid()}"
        assert not folder.is_locked()


@pytest.fixture
def owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that names the owner of a folder on a file system that has no locks."""

    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setattr(locks, "SECONDS_TO_SETTLE", 0.01)
    monkeypatch.setattr("firstlight.runs.folder.SECONDS_FOR_READERS", 0.05)
    return tmp_path / f"{LOCK}.owner"


def test_without_locks_a_file_names_the_only_process(owner, tmp_path, caplog) -> None:
    folder = RunFolder(tmp_path)
    assert not folder.is_locked()
    with folder.locked():
        assert owner.read_text() == f"{gethostname()} {os.getpid()}"
        assert folder.is_locked()
        with pytest.raises(UserError, match="another process is training this run"), folder.locked():
            pass
    assert not folder.is_locked()
    assert not owner.exists()
    assert caplog.messages == [
        f"{owner}: the file system has no locks; this file names the process that uses the folder"
    ]


def ended_process() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("text", "age", "is_taken"),
    [
        ("HERE ENDED", 0, False),
        ("HERE RUNS", 30, True),
        ("HERE RUNS", 90, False),  # another process has this id since
        ("elsewhere 1", 30, True),
        ("elsewhere 1", 90, False),
        ("", 30, True),  # its owner is writing it
        ("HERE 999999999999999999999999", 90, False),
    ],
)
def test_without_locks_the_owner_must_be_alive_or_must_have_renewed_its_file(text, age, is_taken, owner, tmp_path):
    folder = RunFolder(tmp_path)
    (tmp_path / LOCK).touch()
    text = text.replace("HERE", gethostname()).replace("RUNS", str(os.getpid()))
    owner.write_text(text := text.replace("ENDED", str(ended_process())))
    changed = owner.stat().st_mtime - age
    os.utime(owner, (changed, changed))
    assert folder.is_locked() is is_taken
    if is_taken:
        with pytest.raises(UserError, match="another process is training this run"), folder.locked():
            pass
        assert owner.read_text() == text
    else:
        with folder.locked():
            assert owner.read_text() == f"{gethostname()} {os.getpid()}"


def test_without_locks_the_owner_renews_its_file(owner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "SECONDS_BETWEEN_BEATS", 0.01)
    renewed, utime = threading.Event(), os.utime
    monkeypatch.setattr(os, "utime", lambda path: (utime(path), renewed.set()))
    with RunFolder(tmp_path).locked():
        assert renewed.wait(10)
        utime(owner, (0, 0))
        renewed.clear()
        assert renewed.wait(10)
        assert owner.stat().st_mtime > 0
