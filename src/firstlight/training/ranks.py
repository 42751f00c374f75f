"""The processes (ranks) of a training on several devices, which end together, whichever is stopped or dies."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import active_children
from typing import Any

from lightning.pytorch import Trainer
from torch.distributed import DistBackendError
from torch.multiprocessing import ProcessExitedException
from torch.multiprocessing.spawn import _prctl_pr_set_pdeathsig

from firstlight.callbacks.checkpoint import callback_of
from firstlight.callbacks.stop_signals import SIGNALS, StopAtStepEnd, handled, leave_dead_terminal
from firstlight.errors import Interrupted, RunError
from firstlight.lit.lightning_internals import at_the_death_of_a_rank, only_starts
from firstlight.terminal_text import say

REMEDY = "all processes have ended; resume= continues from the last checkpoint"
SECONDS_TO_NOTICE = 2  # between the error of a connection and the end of the process behind it
SECONDS_TO_END = 10  # for this process to end by itself after another has died


@contextmanager
def several(trainer: Trainer, record: Callable[[BaseException], object] = str) -> Iterator[None]:
    """Run a block in which a trainer may use several processes, which end together.

    If this process has only started the others, it passes signals on to them and waits for their end.

    record: a function that records the error for a dead process, if this process hangs because of it.

    Raises Interrupted or RunError if another process was ended by a signal.
    """
    launcher: Any = trainer.strategy.launcher
    over = threading.Event()

    def pass_on(number: int, _: Any) -> None:
        leave_dead_terminal(number)
        if not (ranks := active_children()):
            raise Interrupted(number)
        if stopping := callback_of(trainer, StopAtStepEnd):
            stopping.received = stopping.received or number
        for rank in ranks:
            rank.terminate()

    def end() -> None:
        if not over.wait(SECONDS_TO_END):
            record(error := _cause(trainer))
            say(f"error: {error}", to=sys.stderr)
            launcher.kill(signal.SIGKILL)
            os._exit(1)

    at_the_death_of_a_rank(end)
    if only_starts(trainer) and threading.current_thread() is threading.main_thread():
        for number in handled():
            signal.signal(number, pass_on)
    try:
        yield
    except Exception as error:
        if isinstance(error, ProcessExitedException | DistBackendError) or "gloo" in str(error):
            raise _cause(trainer) from error
        raise
    finally:
        over.set()
        if launcher is not None:
            launcher.kill(signal.SIGKILL)


def end_with_parent() -> None:
    """Let this process be killed when the one that started it dies. Only that one saves. It works only on Linux."""
    _prctl_pr_set_pdeathsig(signal.SIGKILL)


def _cause(trainer: Trainer) -> BaseException:
    """Return the error for the process that died first. Its end may be noticed a moment after its connections."""
    launcher: Any = trainer.strategy.launcher
    starts, codes, end = only_starts(trainer), dict[int, int](), time.monotonic() + SECONDS_TO_NOTICE
    while not any(codes.values()) and time.monotonic() < end:
        time.sleep(0.05)
        processes = enumerate(getattr(launcher, "procs", ()), 0 if starts else 1)  # this one is rank 0 if it trains
        codes = {rank: (each.exitcode if starts else each.poll()) or 0 for rank, each in processes}
    for rank, code in codes.items():
        if code < 0 and -code not in SIGNALS:
            return RunError(f"process {rank} of the training was ended by {signal.Signals(-code).name}; {REMEDY}")
    for number in SIGNALS:
        if {-number, 128 + number} & {*codes.values()}:
            stopping = callback_of(trainer, StopAtStepEnd)
            return Interrupted((stopping and stopping.received) or number)
    return RunError(f"another process of the training has ended; {REMEDY}")
