"""Worker processes ignore signals, release locks, and end with their parent process."""

import multiprocessing
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset

from firstlight.data.batches import TableLoader
from firstlight.data.workers import refuse_long_folder
from firstlight.errors import UserError
from firstlight.files import locks
from processes import CAN_FORK

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="forked processes are for Linux alone")
FORK = multiprocessing.get_context("fork")


class Rows(Dataset[torch.Tensor]):
    """Data set of row numbers. A worker that loads row 9 hangs."""

    def __getitem__(self, rows: np.ndarray) -> torch.Tensor:
        if 9 in rows:
            time.sleep(60)
        return torch.from_numpy(rows)


def loader(*rows: int) -> TableLoader:
    """Return a loader with one row per batch and two workers."""
    return TableLoader(Rows(), [np.array([row]) for row in rows], num_workers=2)


def in_a_process(function: Callable[[], None]) -> tuple[int | None, bool]:
    """Return the exit code of a process that calls a function, and whether its children have ended too."""
    reading, writing = os.pipe()  # each child has a copy of the writing end
    process = FORK.Process(target=function)
    process.start()
    os.close(writing)
    process.join(20)
    process.kill()
    ended, _, _ = select.select([reading], [], [], 20)
    os.close(reading)
    return process.exitcode, bool(ended)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_workers_stops_no_batch(number: int) -> None:
    def load() -> None:
        batches = iter(loader(*range(8)))
        for worker in multiprocessing.active_children():  # at any time after their start
            os.kill(worker.pid, number)
        first = next(batches)
        for worker in multiprocessing.active_children():
            os.kill(worker.pid, number)
        assert [int(row) for row in (first, *batches)] == list(range(8))

    assert in_a_process(load) == (0, True)


def test_signals_mean_the_same_after_the_workers_have_started() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    list(loader(1, 2))
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_workers_hold_no_lock_of_the_process_that_started_them(tmp_path: Path) -> None:
    lock = locks.take(tmp_path / "lock")
    assert lock is not None
    batches = iter(loader(*range(8)))
    next(batches), next(batches)  # one from each worker
    assert locks.is_taken(tmp_path / "lock")
    locks.release(lock)
    assert not locks.is_taken(tmp_path / "lock")
    assert len(list(batches)) == 6


def test_workers_end_with_a_process_that_is_killed() -> None:
    def be_killed() -> None:
        batches = iter(loader(1, 2, 9, 9))
        next(batches)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_process(be_killed) == (-signal.SIGKILL, True)


def test_a_process_ends_though_its_workers_do_not_answer() -> None:
    def end() -> None:
        global kept
        kept = iter(loader(1, 2, 9, 9))  # until the process ends
        next(kept)

    assert in_a_process(end) == (0, True)


def test_a_folder_for_temporary_files_that_is_too_long_for_sockets_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_long_folder("/" + "x" * 70)
    monkeypatch.setattr("tempfile.tempdir", "/" + "x" * 75)
    with pytest.raises(UserError, match=r"longer than \d+ bytes.*set TMPDIR to a shorter one, or data.num_workers=0"):
        iter(loader(1))
