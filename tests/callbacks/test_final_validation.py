from pathlib import Path

import pytest
import torch

from firstlight.callbacks import BestAndLast, FinalValidation, TextSamples


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"max_steps": 4}, [3]),
        ({"max_epochs": 1, "check_val_every_n_epoch": 5}, [5]),
        ({"max_epochs": 3, "check_val_every_n_epoch": 2}, [11, 17]),
        ({"max_steps": 4, "val_check_interval": 3}, [2, 3]),
        ({"max_epochs": 1, "val_check_interval": 4}, [3, 5]),
        ({"max_steps": 4, "limit_val_batches": 0}, []),
    ],
)
def test_the_last_validation_of_a_training_is_after_its_last_step(bench, options: dict, steps: list[int]) -> None:
    checkpoint = BestAndLast(str(bench.folder / "kept"), "val/loss", "min")
    trainer = bench.fit(FinalValidation(), checkpoint, **options)
    assert [step for step, _ in bench.memory.curve("val/loss")] == steps
    assert (checkpoint.best_score is not None) == bool(steps)
    assert checkpoint.saved_step == trainer.global_step
    assert trainer.check_val_every_n_epoch == options.get("check_val_every_n_epoch", 1)


@pytest.mark.parametrize(
    ("short", "long", "steps"),
    [
        ({"max_steps": 4}, {"max_epochs": 2}, [3, 5, 11]),
        ({"max_steps": 6, "val_check_interval": 4}, {"max_epochs": 2, "val_check_interval": 4}, [3, 5, 9, 11]),
        ({"max_steps": 4, "check_val_every_n_epoch": 2}, {"max_epochs": 2, "check_val_every_n_epoch": 2}, [3, 11]),
        ({"max_steps": 2, "accumulate_grad_batches": 2}, {"max_epochs": 2, "accumulate_grad_batches": 2}, [1, 2, 5]),
    ],
)
def test_a_training_that_is_extended_continues_exactly_after_its_final_validation(bench, short, long, steps) -> None:
    def fit(options: dict, folder: str, **more: Path):
        checkpoint = BestAndLast(str(bench.folder / folder), "val/loss", "min")
        trainer = bench.fit(FinalValidation(), checkpoint, **options, **more)
        return trainer, dict(trainer.lightning_module.named_parameters())

    fit(short, "kept")
    trainer, weights = fit(long, "kept", ckpt_path=bench.folder / "kept" / "last.ckpt")
    extended, bench.memory.lines = bench.memory.lines, []
    whole, whole_weights = fit(long, "whole")
    assert all(torch.equal(weight, whole_weights[name]) for name, weight in weights.items())
    assert trainer.global_step == whole.global_step
    validated = [(step, line["val/loss"]) for step, line in extended if "val/loss" in line]
    assert [step for step, _ in validated] == steps
    assert {*bench.memory.curve("val/loss")} <= {*validated}


def test_the_validation_of_a_short_training_writes_samples(writer_bench, tmp_path: Path) -> None:
    samples = TextSamples(str(tmp_path / "samples"), num_samples=1, num_tokens=5)
    writer_bench.fit(FinalValidation(), samples, max_steps=2)
    assert [path.name for path in (tmp_path / "samples").iterdir()] == ["00000002.txt"]
