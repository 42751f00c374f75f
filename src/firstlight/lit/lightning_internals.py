"""Access to private attributes of Lightning 2.6.6. No other module uses private attributes of Lightning.

A new version of Lightning may change them. Then tests/lit/test_lightning_internals.py fails and names the attribute.
"""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, cast

import lightning
from lightning.fabric.strategies.launchers.subprocess_script import _ChildProcessObserver
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loops import training_epoch_loop
from lightning.pytorch.profilers import PassThroughProfiler
from lightning.pytorch.strategies.launchers import _MultiProcessingLauncher
from lightning.pytorch.trainer import call
from lightning.pytorch.utilities.signature_utils import is_param_in_hook_signature

log = logging.getLogger(__name__)

CHECKED_VERSIONS = ("2.6.6",)  # versions of Lightning that call hooks as `call_overridden_hooks_only` does
STEP_HOOKS = (  # of callbacks and modules, called in each step
    *(f"on_{split}_batch_{end}" for split in ("train", "validation", "test") for end in ("start", "end")),
    *("on_before_zero_grad", "on_before_backward", "on_after_backward", "on_before_optimizer_step"),
)
EMPTY_HOOKS = {getattr(base, name) for base in (Callback, LightningModule) for name in STEP_HOOKS}


def set_steps_done(trainer: Trainer, steps: int) -> None:
    """Set the number of steps of a trainer that determines when it logs next."""
    trainer.fit_loop.epoch_loop._batches_that_stepped = steps


def data_of_fit(trainer: Trainer) -> Any:
    """Return the source of the training batches: a data module, a module, or a loader."""
    return trainer.fit_loop._data_source.instance


def only_starts(trainer: Trainer) -> bool:
    """Return whether a trainer trains in processes that it forks or spawns, and not in this process."""
    return isinstance(trainer.strategy.launcher, _MultiProcessingLauncher)


def next_batch(trainer: Trainer) -> tuple[int, int]:
    """Return the number of the next training batch in its epoch and in the complete training, counted from 0."""
    progress = trainer.fit_loop.epoch_loop.batch_progress
    return progress.current.ready, progress.total.ready


def pass_over_steps(trainer: Trainer, idle_steps: Callable[[], int]) -> None:
    """Let a training pass over steps without a call of anything, as if it had run them.

    The training must have one optimizer with a schedule of each step, a `ResumableLoader` and no accumulation.

    idle_steps: is called before each step, and returns the number of steps to pass over.
    """
    loop, loader = trainer.fit_loop.epoch_loop, cast("Any", trainer.train_dataloader)
    advance, counts = loop.advance, loop.automatic_optimization.optim_progress.optimizer

    def pass_over_and_advance(fetcher: Any) -> None:
        if number := idle_steps():
            for progress in (loop.batch_progress, loop.scheduler_progress, counts.step, counts.zero_grad):
                progress.increment_by(number)
            loop._batches_that_stepped += number
            fetcher.fetched += number
            loader.batches.skipped += number
            (schedule,) = (each.scheduler for each in trainer.lr_scheduler_configs)
            schedule.last_epoch += number - 1
            schedule._step_count += number - 1
            schedule.step()
        advance(fetcher)

    loop.advance = pass_over_and_advance  # type: ignore[method-assign, assignment]


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


def call_overridden_hooks_only() -> None:
    """Make Lightning skip the hooks that nobody has overridden, in trainers with a `NoProfiler`.

    In each step, Lightning visits all callbacks for each of six hooks, sets attributes of the module in a slow way, and
    parses the signature of `training_step`. All other calls, their order and their arguments stay the same. Hooks of
    other trainers are called as ever. An unknown version of Lightning is left as it is.
    """
    if lightning.__version__ not in CHECKED_VERSIONS:
        log.debug("Lightning %s is not known to call hooks as %s does", lightning.__version__, CHECKED_VERSIONS)
        return
    call._call_callback_hooks, call._call_lightning_module_hook = _call_callback_hooks, _call_lightning_module_hook
    training_epoch_loop.is_param_in_hook_signature = _has_parameter  # type: ignore[assignment]


_LIGHTNINGS = (call._call_callback_hooks, call._call_lightning_module_hook)


def _call_callback_hooks(trainer: Any, hook_name: str, *args: Any, **kwargs: Any) -> None:
    """Replace Lightning's function; see `call_overridden_hooks_only`."""
    module = trainer.lightning_module
    if hook_name not in STEP_HOOKS or type(trainer.profiler) is not NoProfiler or module is None:
        _LIGHTNINGS[0](trainer, hook_name, *args, **kwargs)
        return
    attributes = module.__dict__  # setattr would search parameters, buffers and submodules first
    before, attributes["_current_fx_name"] = attributes["_current_fx_name"], hook_name
    for callback in trainer.callbacks:
        hook = getattr(callback, hook_name)
        if getattr(hook, "__func__", None) not in EMPTY_HOOKS:
            hook(trainer, module, *args, **kwargs)
    attributes["_current_fx_name"] = before


def _call_lightning_module_hook(trainer: Any, hook_name: str, *args: Any, **kwargs: Any) -> Any:
    """Replace Lightning's function; see `call_overridden_hooks_only`."""
    module = trainer.lightning_module
    hook = getattr(module, hook_name, None)
    if "pl_module" in kwargs or type(trainer.profiler) is not NoProfiler or not callable(hook):
        return _LIGHTNINGS[1](trainer, hook_name, *args, **kwargs)
    if getattr(hook, "__func__", None) in EMPTY_HOOKS:
        return None
    attributes = module.__dict__
    before, attributes["_current_fx_name"] = attributes["_current_fx_name"], hook_name
    output = hook(*args, **kwargs)
    attributes["_current_fx_name"] = before
    return output


@lru_cache(8)
def _is_in_signature(function: Any, *args: Any, **kwargs: Any) -> bool:
    return is_param_in_hook_signature(function, *args, **kwargs)


def _has_parameter(hook: Any, *args: Any, **kwargs: Any) -> bool:
    return _is_in_signature(getattr(hook, "__func__", hook), *args, **kwargs)
