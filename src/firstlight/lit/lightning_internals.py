"""Access to private attributes of Lightning 2.6.6. No other module uses private attributes of Lightning.

A new version of Lightning may change them. Then tests/lit/test_lightning_internals.py fails and names the attribute.
"""

from typing import Any

from lightning.pytorch import Trainer


def set_steps_done(trainer: Trainer, steps: int) -> None:
    """Set the number of steps of a trainer that determines when it logs next."""
    trainer.fit_loop.epoch_loop._batches_that_stepped = steps


def data_of_fit(trainer: Trainer) -> Any:
    """Return the source of the training batches: a data module, a module, or a loader."""
    return trainer.fit_loop._data_source.instance
