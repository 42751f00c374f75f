"""Lightning's hooks, of which only the overridden ones are called, and its private attributes that this needs."""

import dis
import logging
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch import Callback, LightningModule
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.trainer import call

from callback_fixtures import Bench
from firstlight.lit import lightning_internals as internals

HOOKS = sorted(name for name in dir(Callback) if name.startswith("on_"))


def hooks(calls: list[Any], owner: str, names: Any) -> dict[str, Any]:
    """Return methods that record their calls: the owner, the hook, what the module takes it for, and the arguments."""

    def hook(name: str) -> Any:
        def called(*arguments: Any) -> None:
            module = next(each for each in arguments if isinstance(each, LightningModule))
            shown = [str(each.tolist() if isinstance(each, torch.Tensor) else type(each)) for each in arguments]
            calls.append((owner, name, module._current_fx_name, shown))

        return called

    return {name: hook(name) for name in names}


def calls_of_a_fit(bench: Bench) -> list[Any]:
    """Return all calls of overridden hooks in a fit with validation and accumulation, and its weights."""
    calls: list[Any] = []
    data = bench.data()
    module = bench.module(data)
    of_module = ("on_train_batch_start", "on_before_backward", "on_validation_batch_end")
    module.__class__ = type(type(module).__name__, (type(module),), hooks(calls, "module", of_module))
    late: Any = Callback()  # its hook is an attribute of the object, as in a mock
    late.on_before_zero_grad = hooks(calls, "late", ["attribute"])["attribute"]
    loud = type("Loud", (Callback,), hooks(calls, "loud", HOOKS))()
    ends = type("Ends", (Callback,), hooks(calls, "ends", ["on_train_batch_end"]))()
    callbacks = [Callback(), loud, late, ends, EarlyStopping("val/loss"), ModelCheckpoint(bench.folder)]
    bench.fit(*callbacks, data=data, module=module, accumulate_grad_batches=2, profiler=internals.NoProfiler())
    return [*calls, [each.tolist() for each in module.parameters()]]


def test_the_calls_of_hooks_and_their_order_are_those_of_lightning(bench: Bench, monkeypatch) -> None:
    internals.call_overridden_hooks_only()
    assert call._call_callback_hooks is internals._call_callback_hooks, f"lightning {lightning.__version__} is new"
    ours = calls_of_a_fit(bench)
    for original in internals._LIGHTNINGS:
        monkeypatch.setattr(call, original.__name__, original)
    assert ours == calls_of_a_fit(bench)
    assert {"module", "loud", "late", "ends"} == {each[0] for each in ours[:-1]}


def test_the_hooks_that_are_skipped_are_empty() -> None:
    nothing = {"RESUME", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "NOP"}
    assert all({each.opname for each in dis.get_instructions(hook)} <= nothing for hook in internals.EMPTY_HOOKS)


def test_an_unknown_version_of_lightning_calls_its_hooks_itself(monkeypatch, caplog: pytest.LogCaptureFixture) -> None:
    for original in internals._LIGHTNINGS:
        monkeypatch.setattr(call, original.__name__, original)
    monkeypatch.setattr(lightning, "__version__", "99.0")
    with caplog.at_level(logging.DEBUG, internals.__name__):
        internals.call_overridden_hooks_only()
    assert (call._call_callback_hooks, "99.0" in caplog.text) == (internals._LIGHTNINGS[0], True)
