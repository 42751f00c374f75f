from pathlib import Path

import pytest

from firstlight.callbacks.checkpoint import BestAndLast
from firstlight.callbacks.final_validation import FinalValidation
from firstlight.callbacks.text_samples import TextSamples


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"max_steps": 4}, [3]),
        ({"max_steps": 2, "accumulate_grad_batches": 2}, [1]),
        ({"max_epochs": 1, "check_val_every_n_epoch": 5}, [5]),
        ({"max_steps": 4, "val_check_interval": 3}, [2]),  # it has had one
        ({"max_steps": 8, "max_epochs": 2}, [5]),
        ({"max_steps": 4, "limit_val_batches": 0}, []),
    ],
)
def test_a_training_that_ends_before_its_first_validation_is_validated(bench, options: dict, steps: list[int]) -> None:
    checkpoint = BestAndLast(str(bench.folder / "kept"), "val/loss", "min")
    trainer = bench.fit(FinalValidation(), checkpoint, **options)
    assert [step for step, _ in bench.memory.curve("val/loss")] == steps
    assert (checkpoint.best_step is not None) == bool(steps)
    assert checkpoint.saved_step == trainer.global_step
    assert trainer.check_val_every_n_epoch == options.get("check_val_every_n_epoch", 1)


def test_a_resumed_training_that_was_validated_before_is_not_validated_again(bench) -> None:
    def checkpoint() -> BestAndLast:
        return BestAndLast(str(bench.folder / "kept"), "val/loss", "min")

    bench.fit(FinalValidation(), checkpoint(), max_steps=6)
    bench.fit(FinalValidation(), checkpoint(), max_steps=9, max_epochs=2, ckpt_path=bench.folder / "kept" / "last.ckpt")
    assert [step for step, _ in bench.memory.curve("val/loss")] == [5]


def test_the_validation_of_a_short_training_writes_samples(writer_bench, tmp_path: Path) -> None:
    samples = TextSamples(str(tmp_path / "samples"), num_samples=1, num_tokens=5)
    writer_bench.fit(FinalValidation(), samples, max_steps=2)
    assert [path.name for path in (tmp_path / "samples").iterdir()] == ["00000002.txt"]
