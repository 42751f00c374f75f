"""Several processes of a training, which end together. They are forked from the tests' process."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from firstlight.callbacks.checkpoint import BestAndLast
from firstlight.callbacks.stop_signals import SIGNALS, StopAtStepEnd, several
from firstlight.errors import Interrupted, RunError
from firstlight.lit.checkpoint import read_checkpoint

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forked")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def fit(bench, at, folder: Path, rank: int, action) -> None:
    """Train in two processes. In the fourth step, one of them calls `action`."""

    def act(trainer) -> None:
        if trainer.global_rank == rank:
            action()

    data = bench.data()
    callbacks = [at("on_before_backward", 4, act), StopAtStepEnd(), BestAndLast(str(folder), "val/loss", "min", 2)]
    trainer = bench.trainer(*callbacks, strategy="ddp_fork", devices=2, limit_train_batches=12)
    with several(trainer):
        trainer.fit(bench.module(data), datamodule=data)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_process_that_started_the_others_ends_all_with_one_checkpoint(bench, at, tmp_path, number):
    def send() -> None:
        for _ in range(3):
            os.kill(os.getppid(), number)

    with pytest.raises(Interrupted) as error:
        fit(bench, at, tmp_path, 1, send)
    assert error.value.signal_number == number
    assert read_checkpoint(tmp_path / "last.ckpt")["global_step"] < 12


def test_a_signal_to_one_process_ends_all_at_the_same_step(bench, at, tmp_path) -> None:
    with pytest.raises(Interrupted) as error:
        fit(bench, at, tmp_path, 1, lambda: signal.raise_signal(signal.SIGTERM))
    assert error.value.exit_code == 143
    assert read_checkpoint(tmp_path / "last.ckpt")["global_step"] == 4


@pytest.mark.parametrize("rank", [0, 1])
def test_the_death_of_one_process_ends_all_with_its_name(bench, at, tmp_path, rank: int) -> None:
    with pytest.raises(RunError, match=f"process {rank} of the training was ended by SIGKILL"):
        fit(bench, at, tmp_path, rank, lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert read_checkpoint(tmp_path / "last.ckpt")["global_step"] == 2


def test_an_error_of_one_process_is_reported_as_it_is(bench, at, tmp_path) -> None:
    def fail() -> None:
        raise ZeroDivisionError("a bug")

    with pytest.raises(Exception, match="ZeroDivisionError: a bug"):
        fit(bench, at, tmp_path, 0, fail)
