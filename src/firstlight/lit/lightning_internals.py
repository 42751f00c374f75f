"""All that is read or set of Lightning's private attributes, seen in Lightning 2.6.6.

A new version of Lightning may change them. tests/lit/test_lightning_internals.py fails then, and names the attribute.
"""

from typing import Any

from lightning.pytorch import Trainer


def set_steps_done(trainer: Trainer, steps: int) -> None:
    """Set the number of steps at which a trainer logs next, where it has not taken them itself."""
    trainer.fit_loop.epoch_loop._batches_that_stepped = steps


def data_of_fit(trainer: Trainer) -> Any:
    """Return what a fit takes its batches from: a data module, a module, or the loader that it was given."""
    return trainer.fit_loop._data_source.instance
