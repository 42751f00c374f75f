"""Checks of the trainer's keys, before anything heavy is imported."""

from typing import Any

from omegaconf import DictConfig

from firstlight.errors import UserError

WHOLE_NUMBERS = ("max_epochs", "max_steps", "accumulate_grad_batches", "log_every_n_steps")
AT_LEAST_ONE = ("accumulate_grad_batches", "check_val_every_n_epoch")
ACCELERATORS = ("gpu", "cuda", "mps")
DIVIDED = ("fsdp", "deepspeed", "model_parallel")  # strategies
TRAINS_NOTHING_AT_0 = ("max_epochs", "max_steps", "limit_train_batches")


def check_trainer(config: DictConfig) -> None:
    """Raise UserError for an impossible number, for a training without steps and for several devices of a CPU."""
    trainer = config.trainer
    for key in WHOLE_NUMBERS:
        if not isinstance(trainer.get(key), int | None):
            raise UserError(f"trainer.{key}={trainer[key]} must be a whole number")
    for key in AT_LEAST_ONE:
        if is_number(trainer.get(key)) and trainer[key] < 1:
            raise UserError(f"trainer.{key}={trainer[key]} must be at least 1")
    interval = trainer.get("val_check_interval")
    if is_number(interval) and interval <= 0:
        raise UserError(
            f"trainer.val_check_interval={interval} must be a share of an epoch above 0, or a number of batches of at "
            "least 1; to train without validation, set trainer.limit_val_batches=0"
        )
    for key in TRAINS_NOTHING_AT_0:
        if config.train and is_number(trainer.get(key)) and trainer[key] == 0:
            raise UserError(
                f"trainer.{key}=0 would train nothing; set a larger number, or train=false to train nothing"
            )
    check_devices(trainer)
    strategy = str(trainer.get("strategy", "auto"))
    if strategy.startswith(DIVIDED):
        raise UserError(
            f"trainer.strategy={strategy} divides the parameters among processes, which firstlight does not support: "
            "weight decay and Muon depend on their shapes; use trainer=ddp"
        )
    finder = (config.get("callbacks") or {}).get("learning_rate_finder")
    if finder and config.train and str(trainer.get("devices")) not in ("1", "[0]"):
        raise UserError(
            f"callbacks.learning_rate_finder requires one process, but trainer.devices={trainer.get('devices')}; find "
            "the rate with trainer.devices=1, and set optimizer.lr"
        )


def check_devices(trainer: DictConfig) -> None:
    """Raise UserError for several devices of a CPU, unless a strategy starts several processes."""
    devices = str(trainer.get("devices"))
    if not devices.isdecimal() or int(devices) < 2 or str(trainer.get("strategy", "auto")) != "auto":
        return
    if trainer.get("accelerator") == "cpu" or (trainer.get("accelerator") == "auto" and not has_accelerator()):
        raise UserError(
            f"trainer.devices={devices}: a CPU is one device, and {devices} processes would share its cores; set "
            f"threads= for the cores of one process, or use trainer=ddp_sim trainer.devices={devices}"
        )


def check_accelerator(trainer: DictConfig) -> None:
    """Raise UserError for a GPU that this machine does not have. Imports torch, but only if a GPU is named."""
    accelerator, devices = trainer.get("accelerator"), str(trainer.get("devices"))
    if accelerator not in ACCELERATORS:
        return
    count = num_gpus(accelerator)
    if count == 0:
        raise UserError(f"trainer.accelerator={accelerator}: torch finds no such device; set trainer=cpu")
    if devices.isdecimal() and int(devices) > count:
        raise UserError(f"trainer.devices={devices}: torch finds {count}; set trainer.devices={count}")


def num_gpus(accelerator: str) -> int:
    """Return the number of GPUs that torch can use as `gpu`, `cuda` or `mps`. Imports torch."""
    import torch

    count = 0 if accelerator == "mps" else torch.cuda.device_count()  # which does not initialise CUDA
    return count or int(accelerator != "cuda" and torch.backends.mps.is_available())


def has_accelerator() -> bool:
    """Return whether this machine has a GPU that torch can use. Imports torch."""
    import torch

    return torch.cuda.is_available() or torch.backends.mps.is_available()


def is_number(value: Any) -> bool:
    """Return whether a value is a number and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)
