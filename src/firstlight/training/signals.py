"""The signals that interrupt a run: those while it is prepared, and the signal that caused an error."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lightning.pytorch.utilities.exceptions import SIGTERMException

from firstlight.callbacks.stop_signals import handled, leave_dead_terminal
from firstlight.errors import Interrupted


@contextmanager
def signals_restored() -> Iterator[None]:
    """Restore the handlers of the signals at the end of a block in which `signals_raise` changes them."""
    before = {number: signal.getsignal(number) for number in handled()}
    try:
        yield
    finally:
        for number in before if threading.current_thread() is threading.main_thread() else ():
            signal.signal(number, before[number])


@contextmanager
def signals_raise() -> Iterator[None]:
    """Raise Interrupted at SIGTERM or SIGHUP in the block, and ignore them after it, while the record is written.

    A training handles them by callbacks/stop_signals.py.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    numbers = [number for number in handled() if number != signal.SIGINT]

    def stop(number: int, _: Any) -> None:
        for repeated in numbers:  # which must not interrupt the writing of the record
            signal.signal(repeated, signal.SIG_IGN)
        leave_dead_terminal(number)
        raise Interrupted(number)

    try:
        for number in numbers:
            signal.signal(number, stop)
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)


def signal_behind(error: BaseException) -> int | None:
    """Return the signal that ended a run, which Lightning may have turned into another exception; None for others."""
    match error:
        case Interrupted():
            return error.signal_number
        case SIGTERMException():  # Lightning would end with exit code 0
            return signal.SIGTERM
        case KeyboardInterrupt() | SystemExit(__context__=KeyboardInterrupt()):  # and with 1
            return signal.SIGINT
        case _:
            return None
