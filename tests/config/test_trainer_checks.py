"""Numbers of the trainer that nobody can train with are refused before anything is imported."""

import re
from typing import Any

import pytest
from omegaconf import OmegaConf

from firstlight.config import checks
from firstlight.config.checks import check_accelerator, check_numbers
from firstlight.errors import UserError

DEFAULT = {"accelerator": "cpu", "devices": 1, "strategy": "auto", "max_epochs": 10, "max_steps": -1}


@pytest.mark.parametrize(
    ("trainer", "count", "message"),
    [
        ({"accelerator": "gpu"}, 0, "trainer.accelerator=gpu: torch finds no such device; set trainer=cpu"),
        ({"accelerator": "gpu", "devices": 3}, 2, "trainer.devices=3: torch finds 2; set trainer.devices=2"),
        ({"accelerator": "gpu", "devices": -1}, 2, None),
        ({"accelerator": "auto"}, 0, None),
    ],
)
def test_a_gpu_that_the_machine_lacks_is_refused(trainer, count, message, monkeypatch) -> None:
    monkeypatch.setattr(checks, "num_gpus", lambda _: count)
    config = OmegaConf.create(DEFAULT | trainer)
    if message is None:
        check_accelerator(config)
    else:
        with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
            check_accelerator(config)


ADAMW, COSINE = {"_target_": "torch.optim.AdamW"}, {"_target_": "firstlight.lit.schedules.cosine"}
TRAINER, EARLY = {"_target_": "lightning.pytorch.Trainer"}, {"_target_": "lightning.pytorch.callbacks.EarlyStopping"}


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("optimizer", ADAMW | {"weight_decay": True}, "optimizer.weight_decay=true must be a number"),
        ("optimizer", ADAMW | {"betas": [0.9, "x"]}, "optimizer.betas=[0.9,x] must be a list of numbers"),
        ("callbacks", {"early": EARLY | {"patience": "x"}}, "callbacks.early.patience=x must be a number"),
    ],
)
def test_an_argument_that_its_class_reads_as_a_number_must_be_one(section, values, message) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        check_numbers(OmegaConf.create({section: values}))


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("optimizer", {"_target_": "my.Optimizer", "lr": None, "mode": "fast", "betas": [0.9, 0.98]}),
        ("trainer", TRAINER | {"val_check_interval": "00:05:00", "devices": "auto", "precision": "bf16-mixed"}),
        ("callbacks", {"early_stopping": None}),
        ("callbacks", None),
    ],
)
def test_other_values_are_not_checked_as_numbers(section: str, values: Any) -> None:
    check_numbers(OmegaConf.create({section: values}))
