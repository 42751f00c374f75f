"""Processes that load batches. They leave signals and locks to the process that started them, and end with it."""

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

LONGEST_SOCKET = 103 if sys.platform == "darwin" else 107  # bytes of the path of a Unix socket
SIGNALS = (signal.SIGINT, signal.SIGTERM)  # which a terminal, systemd or Slurm sends to all processes of a run

_workers: dict[int, set[BaseProcess]] = {}  # by the id of the process that started them; a fork copies the dict


def batches_of(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return an iterator over a loader. Its worker processes, if it has any, ignore the signals from their start.

    The process that started the workers decides what a signal means: it may need some more batches to end in good
    order.
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
    """Raise UserError for a folder of temporary files in which torch can make no socket: it would wait for ever."""
    longest = LONGEST_SOCKET - len("/pymp-xxxxxxxx/listener-xxxxxxxx")  # as multiprocessing names them
    if len(os.fsencode(folder)) > longest:
        raise UserError(
            f"data.num_workers: the path of the folder for temporary files, {folder}, is longer than {longest} bytes, "
            "so processes cannot hand over batches; set TMPDIR to a shorter one, or data.num_workers=0"
        )


def become_worker(worker_id: int) -> None:  # noqa: ARG001
    """Prepare a process for loading batches; the `worker_init_fn` of a DataLoader."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    locks.give_up_inherited()
    threading.Thread(target=_end_with_parent, daemon=True).start()


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Hold signals back while processes are started, which inherit this before they can ignore the signals."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """End this process as soon as the process that started it has ended, however that came."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a process of multiprocessing loads batches"
    parent.join()
    os._exit(1)


def _kill_workers() -> None:
    """Kill the workers that still run when this process ends: multiprocessing would send SIGTERM, and wait."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch's handler would call each of them a crash
    for worker in _workers[os.getpid()]:
        worker.kill()
