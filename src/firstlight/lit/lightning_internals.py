"""Access to private attributes of Lightning 2.6.6. No other module uses private attributes of Lightning.

A new version of Lightning may change them. Then tests/lit/test_lightning_internals.py fails and names the attribute.
"""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from lightning.fabric.strategies.launchers.subprocess_script import _ChildProcessObserver
from lightning.pytorch import Trainer
from lightning.pytorch.profilers import PassThroughProfiler
from lightning.pytorch.strategies.launchers import _MultiProcessingLauncher


def set_steps_done(trainer: Trainer, steps: int) -> None:
    """Set the number of steps of a trainer that determines when it logs next."""
    trainer.fit_loop.epoch_loop._batches_that_stepped = steps


def data_of_fit(trainer: Trainer) -> Any:
    """Return the source of the training batches: a data module, a module, or a loader."""
    return trainer.fit_loop._data_source.instance


def only_starts(trainer: Trainer) -> bool:
    """Return whether a trainer trains in processes that it forks or spawns, and not in this process."""
    return isinstance(trainer.strategy.launcher, _MultiProcessingLauncher)


def at_the_death_of_a_rank(act: Callable[[], None]) -> None:
    """Call `act` in a thread if a process that Lightning has started ends with an error.

    Lightning would kill this process within 5 s, before it can record why.
    """
    _ChildProcessObserver._terminate_all = lambda _: act()  # type: ignore


class NoProfiler(PassThroughProfiler):
    """A profiler without any work, since Lightning calls it a hundred times in each step."""

    _nothing = nullcontext()

    def profile(self, action_name: str) -> Any:  # noqa: ARG002
        return self._nothing
