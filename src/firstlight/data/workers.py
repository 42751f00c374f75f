"""Worker processes that load batches. They ignore signals, release locks, and end with their parent process."""

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from typing import Any

from torch.utils.data import DataLoader

from firstlight.errors import UserError
from firstlight.files import locks

LONGEST_SOCKET = 103 if sys.platform == "darwin" else 107  # the largest length of the path of a Unix socket in bytes
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # sent by a terminal, systemd or Slurm to all of a run

_workers: dict[int, set[BaseProcess]] = {}  # by the id of the parent process, since a fork copies the dict


def batches_of(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return an iterator over a loader. Its worker processes, if it has any, ignore signals from their start.

    The parent process handles signals. It may need more batches before it can stop at the end of a step.
    """
    if not loader.num_workers:
        return iter(loader)
    refuse_long_folder(tempfile.gettempdir())
    others = set(multiprocessing.active_children())
    with _signals_wait():
        batches = iter(loader)
    if os.getpid() not in _workers:
        _workers[os.getpid()] = set()
        Finalize(None, _kill_workers, exitpriority=0)
    running, own = set(multiprocessing.active_children()), _workers[os.getpid()]
    own.intersection_update(running)
    own.update(running - others)
    return batches


def refuse_long_folder(folder: str) -> None:
    """Raise UserError if the path of the temporary folder is too long for torch's sockets, which would hang."""
    longest = LONGEST_SOCKET - len("/pymp-xxxxxxxx/listener-xxxxxxxx")  # the names that multiprocessing gives them
    if len(os.fsencode(folder)) > longest:
        raise UserError(
            f"data.num_workers: the path of the folder for temporary files, {folder}, is longer than {longest} bytes, "
            "so processes cannot hand over batches; set TMPDIR to a shorter one, or data.num_workers=0"
        )


def become_worker(worker_id: int) -> None:  # noqa: ARG001
    """Prepare a process for loading batches, as the `worker_init_fn` of a DataLoader."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    locks.give_up_inherited()
    threading.Thread(target=_end_with_parent, daemon=True).start()


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Block signals while worker processes are started. They inherit the block until they ignore the signals."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """End this process as soon as its parent process has ended, for whatever reason."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a process of multiprocessing loads batches"
    parent.join()
    os._exit(1)


def _kill_workers() -> None:
    """Kill the workers that still run when this process ends; multiprocessing would send SIGTERM and wait."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch's handler would report each of them as a crash
    for worker in _workers[os.getpid()]:
        worker.kill()
