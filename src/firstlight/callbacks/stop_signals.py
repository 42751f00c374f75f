"""The signals that interrupt a run: in a training at the end of a step, with a checkpoint to resume from.

The processes (ranks) of a training on several devices end together, whichever is stopped or dies.
"""

import logging
import os
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import active_children
from types import FrameType
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch.distributed import DistBackendError
from torch.multiprocessing import ProcessExitedException
from torch.multiprocessing.spawn import _prctl_pr_set_pdeathsig

from firstlight.callbacks.checkpoint import BestAndLast, callback_of
from firstlight.errors import Interrupted, RunError
from firstlight.lit.lightning_internals import at_the_death_of_a_rank, only_starts
from firstlight.lit.running_mean import ends_a_step
from firstlight.terminal_text import say

log = logging.getLogger(__name__)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
REMEDY = "all processes have ended; resume= continues from the last checkpoint"
SECONDS_TO_NOTICE = 2  # between the error of a connection and the end of the process behind it
SECONDS_TO_END = 10  # for this process to end by itself after another has died


def handled() -> list[signal.Signals]:
    """Return the signals that interrupt a run. `nohup` starts a command with an ignored SIGHUP, which stays ignored."""
    return [each for each in SIGNALS if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN]


class StopAtStepEnd(Callback):
    """Stop a training on Ctrl-C, SIGTERM or SIGHUP at the end of the step, after a last checkpoint.

    In the middle of a step the weights and the counters may disagree, so a checkpoint from there could not be resumed
    exactly. The callback therefore waits for the end of the step or of the validation, lets `BestAndLast` save, and
    raises `Interrupted`. Further signals change nothing, except a second Ctrl-C, which stops at once unless a
    checkpoint is being written. `Trainer.validate` and `Trainer.test` have nothing to save and stop at the first
    signal. With several processes, all of them stop at the end of the same step, whichever of them got the signal.

    Raises:
        Interrupted: From `firstlight.errors`, with the number of the signal.

    Example:
        >>> import os, signal
        >>> import lightning as L
        >>> from firstlight.callbacks import StopAtStepEnd
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> module = Classification.for_data(data, dim=8, num_heads=2)
        >>> class Signal(L.Callback):
        ...     def on_train_batch_start(self, *_):
        ...         os.kill(os.getpid(), signal.SIGTERM)
        >>> trainer = L.Trainer(max_epochs=5, callbacks=[StopAtStepEnd(), Signal()])
        >>> trainer.fit(module, datamodule=data)
        Traceback (most recent call last):
        firstlight.errors.Interrupted: interrupted by signal 15
        >>> trainer.global_step
        1
    """

    def __init__(self) -> None:
        self.received: int | None = None  # the first signal of this process, or None
        self._agreed: int | None = None  # the signal at which all processes stop
        self._trainer: Trainer | None = None

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage == TrainerFn.FITTING:
            self.received = self._agreed = None
        if trainer.world_size > 1:  # else a signal raises an error until the training begins
            self._listen(trainer)

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.received_sigterm:  # while Lightning set things up
            raise Interrupted(signal.SIGTERM)
        self._listen(trainer)

    def on_validation_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._listen(trainer)

    def on_test_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._listen(trainer)

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if not ends_a_step(trainer, batch_idx):
            return
        self._agree(trainer)
        checkpoint = callback_of(trainer, BestAndLast)
        if checkpoint and (trainer.is_last_batch or checkpoint.validation_follows(trainer, batch_idx)):
            return  # on_train_batch_start and on_train_epoch_end stop
        if self._agreed is not None:
            if checkpoint and checkpoint.saved_step != trainer.global_step:
                checkpoint.save_last(trainer)
            raise Interrupted(self._agreed)

    def on_train_batch_start(self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int) -> None:
        if batch_idx % trainer.accumulate_grad_batches == 0:
            self._stop_if_saved(trainer)  # by the validation before this step

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._stop_if_saved(trainer)  # else one step more: the end of an epoch is kept by its validation alone

    def _listen(self, trainer: Trainer) -> None:
        """Take the signals until Lightning tears down: however a run ends, it puts back the handlers that it found."""
        self._trainer = trainer
        if threading.current_thread() is threading.main_thread():
            for number in handled():
                signal.signal(number, self._receive)
        if self.received is not None and trainer.state.fn is not TrainerFn.FITTING:  # at the very end of the training
            raise Interrupted(self.received)

    def _receive(self, number: int, _: FrameType | None) -> None:
        assert self._trainer is not None
        is_first = self.received is None
        self.received = self.received or number
        leave_dead_terminal(number)
        checkpoint = callback_of(self._trainer, BestAndLast)
        if is_first and self._trainer.state.fn is TrainerFn.FITTING:
            if self._trainer.is_global_zero:
                again = "; press Ctrl-C again to stop at once" if number == signal.SIGINT else ""
                # In this thread, a message that interrupts another one would be an error of the output's buffer.
                threading.Thread(target=log.info, args=("Stopping after this step%s", again)).start()
        elif is_first or (number == self.received == signal.SIGINT and not (checkpoint and checkpoint.is_saving)):
            raise Interrupted(number)

    def _agree(self, trainer: Trainer) -> None:
        """Let all processes stop at this step if one of them has received a signal."""
        self._agreed = self.received
        if trainer.world_size > 1:
            mine = torch.tensor(self.received or 0, device=trainer.strategy.root_device)
            torch.distributed.all_reduce(mine, torch.distributed.ReduceOp.MAX)
            self._agreed = int(mine) or None

    def _stop_if_saved(self, trainer: Trainer) -> None:
        number = self.received if trainer.world_size == 1 else self._agreed
        checkpoint = callback_of(trainer, BestAndLast)
        if number is not None and (checkpoint is None or checkpoint.saved_step == trainer.global_step):
            raise Interrupted(number)


def leave_dead_terminal(number: int) -> None:
    """At SIGHUP, write further output to nowhere if its terminal was closed, where each print would be an error."""
    for stream in (1, 2) if number == signal.SIGHUP else ():
        if stat.S_ISCHR(os.fstat(stream).st_mode) and not os.isatty(stream):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


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

    A training handles them by `StopAtStepEnd`.
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


# --- several processes ---


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
