import logging
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback

from firstlight.callbacks import BestAndLast, ReseedEveryStep, StopAtStepEnd
from firstlight.callbacks.stop_signals import SIGNALS, signals_raise, signals_restored
from firstlight.errors import Interrupted
from firstlight.lit import TrainingLoss, linear, read_checkpoint


class MissedError(BaseException):
    """Error for a signal that the callback did not handle."""


@pytest.fixture(autouse=True)
def handlers():
    """Set handlers that protect the tests from their own signals. After a test, they must be restored."""

    def missed(number, _):
        raise MissedError(signal.Signals(number).name)

    before = {number: signal.signal(number, missed) for number in SIGNALS}
    yield
    left = {number: signal.signal(number, handler) for number, handler in before.items()}
    assert left == dict.fromkeys(before, missed), "the run has not restored the handlers"


def sends(number: int):
    return lambda _: signal.raise_signal(number)


def last(folder: Path, every: int | None = None) -> BestAndLast:
    return BestAndLast(str(folder), "val/loss", "min", every)


def interrupted(bench, *callbacks: Callback, **options: object) -> Interrupted:
    """Train until a signal stops the training, and return the error."""
    with pytest.raises(Interrupted) as error:
        bench.fit(*callbacks, **options)
    return error.value


def step_of(folder: Path) -> int:
    return read_checkpoint(folder / "last.ckpt")["global_step"]


class Counts(Callback):
    def __init__(self) -> None:
        self.batches = self.validations = 0

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.batches += 1

    def on_validation_end(self, trainer, pl_module):
        self.validations += 1


# --- in the middle of a step ---


@pytest.mark.parametrize(
    ("number", "hook", "call", "options", "step"),
    [
        (signal.SIGINT, "on_train_batch_start", 4, {}, 4),
        (signal.SIGTERM, "on_before_backward", 4, {}, 4),
        (signal.SIGHUP, "on_before_optimizer_step", 4, {}, 4),
        # in an epoch without validation, a run must not wait for one
        (signal.SIGINT, "on_before_backward", 2, {"val_check_interval": 2, "check_val_every_n_epoch": 2}, 2),
        # in the last step of an epoch, a signal waits for the next step
        (signal.SIGINT, "on_before_backward", 6, {"limit_val_batches": 0}, 7),
    ],
)
def test_a_step_is_finished_and_saved_before_the_run_ends(bench, at, tmp_path, number, hook, call, options, step):
    counts, sent = Counts(), at(hook, call, sends(number))
    error = interrupted(bench, counts, sent, StopAtStepEnd(), last(tmp_path), **({"max_epochs": 2} | options))
    assert error.exit_code == 128 + number
    assert (counts.batches, counts.validations) == (step, 0)
    assert step_of(tmp_path) == step


def test_a_second_ctrl_c_ends_at_once(bench, at, tmp_path) -> None:
    counts = Counts()

    def twice(_) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    twice_at_4 = at("on_before_backward", 4, twice)
    assert interrupted(bench, counts, twice_at_4, StopAtStepEnd(), last(tmp_path, every=2)).exit_code == 130
    assert counts.batches == 3
    assert step_of(tmp_path) == 2


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_further_signals_do_not_interrupt_the_step_or_the_save(bench, at, tmp_path, first: signal.Signals) -> None:
    """Slurm sends SIGTERM twice. Ctrl-C may be pressed again while a checkpoint is written."""

    class SendsAll(Callback):
        saves = 0

        def on_save_checkpoint(self, trainer, pl_module, checkpoint):
            self.saves += 1
            for number in SIGNALS:
                signal.raise_signal(number)

    def burst(_) -> None:
        for number in (first, signal.SIGTERM, signal.SIGHUP, signal.SIGTERM):
            signal.raise_signal(number)

    counts, sends_all = Counts(), SendsAll()
    error = interrupted(bench, counts, sends_all, at("on_before_backward", 4, burst), StopAtStepEnd(), last(tmp_path))
    assert error.exit_code == 128 + first
    assert (counts.batches, sends_all.saves) == (4, 1)
    assert step_of(tmp_path) == 4


def test_a_signal_that_nohup_ignores_stays_ignored(bench, at) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert bench.fit(at("on_before_backward", 4, sends(signal.SIGHUP)), StopAtStepEnd()).global_step == 6
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_first_signal_says_what_happens_next(bench, at, caplog) -> None:
    for number, text in ((signal.SIGINT, "; press Ctrl-C again to stop at once"), (signal.SIGTERM, "")):
        with caplog.at_level(logging.INFO, "firstlight"):
            interrupted(bench, at("on_before_backward", 4, sends(number)), StopAtStepEnd())
            ending = time.monotonic() + 10
            while f"Stopping after this step{text}" not in caplog.messages:  # another thread writes it
                assert time.monotonic() < ending
                time.sleep(0.01)


# --- around a validation ---


@pytest.mark.parametrize(
    "options", [{}, {"val_check_interval": 2}, {"val_check_interval": 4, "check_val_every_n_epoch": None}], ids=str
)
def test_a_validation_is_finished_and_counts(bench, at, tmp_path, options: dict[str, object]) -> None:
    """This includes a validation that follows directly after the step."""
    for hook in ("on_validation_batch_start", "on_before_zero_grad"):
        counts, checkpoint = Counts(), last(tmp_path / hook)
        call = {"on_validation_batch_start": 1, "on_before_zero_grad": options.get("val_check_interval", 6)}[hook]
        sent = at(hook, call, sends(signal.SIGINT))
        interrupted(bench, counts, sent, StopAtStepEnd(), checkpoint, max_epochs=2, **options)
        assert counts.validations == 1
        assert counts.batches == options.get("val_check_interval", 6)
        assert step_of(tmp_path / hook) == counts.batches
        assert checkpoint.best_score is not None


@pytest.mark.parametrize("stage", ["validate", "test"])
def test_an_evaluation_by_itself_ends_at_once(bench, at, stage: str) -> None:
    hook = {"validate": "on_validation_batch_start", "test": "on_test_batch_start"}[stage]
    data = bench.data()
    trainer = bench.trainer(at(hook, 2, sends(signal.SIGTERM)), StopAtStepEnd())
    with pytest.raises(Interrupted) as error:
        getattr(trainer, stage)(bench.module(data), datamodule=data, verbose=False)
    assert error.value.exit_code == 143


def test_a_signal_after_the_last_step_ends_the_evaluation_that_follows(bench, at, tmp_path) -> None:
    data = bench.data()
    trainer = bench.fit(at("on_train_end", 1, sends(signal.SIGINT)), StopAtStepEnd(), last(tmp_path), data=data)
    with pytest.raises(Interrupted):
        trainer.validate(trainer.lightning_module, datamodule=data, verbose=False)


# --- before and after ---


def test_outside_the_main_thread_the_signals_are_left_alone(bench) -> None:
    """In Python, only the main thread may set handlers."""
    ended = []
    thread = threading.Thread(target=lambda: ended.append(bench.fit(StopAtStepEnd()).global_step))
    thread.start()
    thread.join()
    assert ended == [6]


# --- resuming ---


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.slow),  # the other cases include this one
        {"accumulate_grad_batches": 3},
        {"val_check_interval": 2},
    ],
    ids=str,
)
def test_an_interrupted_run_goes_on_to_the_same_end(bench, at, tmp_path, options: dict[str, object]) -> None:
    """The weights and the curve equal those of an uninterrupted run: within an epoch, at its end, and in the next."""

    def fit(*callbacks: Callback, ckpt_path: Path | None = None) -> dict[str, torch.Tensor]:
        data = bench.data(seed=3)
        module = bench.module(data, dropout=0.3, schedule=partial(linear, warmup_steps=2))
        callbacks = (ReseedEveryStep(3), TrainingLoss(), *callbacks, StopAtStepEnd(), last(tmp_path))
        settings = {"max_epochs": 2, "log_every_n_steps": 2} | options
        bench.fit(*callbacks, data=data, module=module, ckpt_path=ckpt_path, **settings)
        return module.state_dict()

    def curve() -> list[list[tuple[int, float]]]:
        curves = [bench.memory.curve("train/loss"), bench.memory.curve("val/loss")]
        bench.memory.lines.clear()
        return curves

    expected, expected_curve = fit(), curve()
    for batch in (4, 6, 8):
        with pytest.raises(Interrupted):
            fit(at("on_before_backward", batch, sends(signal.SIGINT)))
        torch.rand(batch)  # other draws between two batches must have no effect
        weights = fit(ckpt_path=tmp_path / "last.ckpt")
        assert all(torch.equal(weights[name], expected[name]) for name in expected)
        assert curve() == expected_curve


def test_a_repeated_signal_does_not_interrupt_the_writing_of_the_record() -> None:
    is_written = False
    with signals_restored(), pytest.raises(Interrupted), signals_raise():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            is_written = True
    assert is_written
