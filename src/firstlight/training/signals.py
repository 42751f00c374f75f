"""The signals that interrupt a run: SIGTERM while it is prepared, and the signal that caused an error."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lightning.pytorch.utilities.exceptions import SIGTERMException

from firstlight.errors import Interrupted


@contextmanager
def sigterm_raises() -> Iterator[None]:
    """Raise Interrupted at SIGTERM until the training begins, which handles signals by callbacks/stop_signals.py."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: Any) -> None:
        raise Interrupted(number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
