"""Many runs of one command: the jobs of a grid or a search, their launchers and their progress.

The signals of a cluster count from the first moment of a process on, while it still imports PyTorch.
"""

import os
import signal
from types import FrameType

TIME_IS_UP = signal.SIGUSR2  # which Slurm sends some time before a limit
RECEIVED: list[int] = []  # signals, in their order


def keep_signals() -> None:
    """Keep the signals of this process from now on, for the moment at which it can end."""
    for number in (signal.SIGTERM, TIME_IS_UP):
        signal.signal(number, lambda number, _: RECEIVED.append(number))


def stop_when_time_is_up() -> None:
    """Let the end of the time do what SIGTERM does, from now on: a training saves at the end of its step."""

    def stop(number: int, _: FrameType | None) -> None:
        RECEIVED.append(number)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(TIME_IS_UP, stop)
