"""The callback of a trainer by its class."""

from typing import TypeVar

from lightning.pytorch import Callback, Trainer

Found = TypeVar("Found", bound=Callback)


def callback_of(trainer: Trainer, kind: type[Found]) -> Found | None:
    """Return the trainer's first callback of a class, or None if it has none."""
    callbacks: list[Callback] = trainer.callbacks  # type: ignore[attr-defined]
    return next((callback for callback in callbacks if isinstance(callback, kind)), None)
