from typing import Any

import pytest
from lightning.pytorch import Callback

from callback_fixtures import on
from firstlight.callbacks import Throughput, throughput


class Batches(Callback):
    """Callback that counts tokens and examples separately."""

    def __init__(self) -> None:
        self.tokens = self.padding = self.examples = 0

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.tokens += int(batch.padding_mask.sum())
        self.padding += int((~batch.padding_mask).sum())
        self.examples += len(batch.targets)


@pytest.fixture
def clock(monkeypatch):
    """Return a clock for the callback, which advances only when a test calls `go`."""

    class Clock:
        now = 1000.0

        def perf_counter(self) -> float:
            return self.now

        process_time = perf_counter

        def go(self, seconds: float) -> None:
            self.now += seconds

    clock = Clock()
    monkeypatch.setattr(throughput, "time", clock)
    return clock


def takes(clock: Any, step: float = 0, validation: float = 0) -> Callback:
    """Return a callback that advances the clock by given seconds for each step and for each validation."""
    return on(
        on_before_optimizer_step=lambda _: clock.go(step), on_validation_epoch_start=lambda _: clock.go(validation)
    )


def test_only_real_tokens_are_counted(bench) -> None:
    measured, batches = Throughput(), Batches()
    data = bench.data(context_length=60)  # so that most texts are shorter
    bench.fit(measured, batches, data=data)
    assert batches.padding > 0
    assert (measured.tokens, measured.examples) == (batches.tokens, batches.examples)


def test_the_rate_is_what_was_done_over_the_seconds_that_it_took(bench, clock) -> None:
    measured, batches = Throughput(), Batches()
    bench.fit(measured, batches, takes(clock, step=2), log_every_n_steps=3)
    assert measured.seconds == pytest.approx(6 * 2)
    assert measured.tokens_per_second == pytest.approx(batches.tokens / 12)
    assert bench.memory.curve("train/examples_per_second") == [(2, 10.0), (5, 10.0)]  # 3 batches of 20 in 6 s
    shares = [value * 6 for _, value in bench.memory.curve("train/tokens_per_second")]
    assert sum(shares) == pytest.approx(batches.tokens)


def test_only_the_time_of_steps_counts_but_the_processor_time_is_that_of_the_whole_fit(bench, clock) -> None:
    measured = Throughput()
    before_and_between = on(on_fit_start=lambda _: clock.go(300), on_train_epoch_end=lambda _: clock.go(300))
    taken = takes(clock, step=2, validation=500)
    bench.fit(measured, taken, before_and_between, max_epochs=2, val_check_interval=2)
    assert measured.seconds == pytest.approx(12 * 2)
    assert {value for _, value in bench.memory.curve("train/examples_per_second")} == {10.0}
    clock.go(70)  # after the fit
    assert measured.processor_seconds == pytest.approx(12 * 2 + 6 * 500 + 2 * 300)  # not that before the training


@pytest.mark.parametrize("batch", [4, 6], ids=["in mid-epoch", "at the end of an epoch"])
def test_a_resumed_run_goes_on_counting_and_leaves_out_the_time_between(bench, at, clock, tmp_path, batch: int) -> None:
    path = tmp_path / "last.ckpt"
    saved = at("on_train_batch_end", batch, lambda trainer: trainer.save_checkpoint(path))
    bench.fit(Throughput(), takes(clock, step=2), saved)
    clock.go(86_400)
    measured = Throughput()
    assert measured.tokens_per_second is None
    bench.fit(measured, takes(clock, step=2), max_epochs=2, ckpt_path=path)
    assert measured.processor_seconds == pytest.approx(12 * 2)
    assert measured.examples == 12 * 20
    assert measured.seconds == pytest.approx(12 * 2)
    assert {value for _, value in bench.memory.curve("train/examples_per_second")} == {10.0}
