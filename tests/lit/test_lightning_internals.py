"""Lightning's private attributes that firstlight uses, and its hooks, of which only the overridden ones are called."""

import dis
import logging
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning.pytorch.trainer import call
from torch.utils.data import DataLoader

from firstlight.lit import lightning_internals as internals

Calls = list[tuple[object, ...]]
HOOKS = sorted(name for name in dir(Callback) if name.startswith("on_"))


def heard(calls: Calls, owner: str, name: str, module: Any, arguments: tuple[Any, ...]) -> None:
    described = [str(each.tolist()) if isinstance(each, torch.Tensor) else type(each).__name__ for each in arguments]
    calls.append((owner, name, module._current_fx_name, *described))


class Silent(Callback):
    """A callback that overrides nothing, as most do for most hooks."""


def recording(calls: Calls, owner: str, names: list[str]) -> Callback:
    def hook(name: str) -> Any:
        return lambda _, trainer, module, *arguments: heard(calls, owner, name, module, arguments)

    kind = type(owner, (Callback,), {name: hook(name) for name in names})
    return kind()


class Line(LightningModule):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch: torch.Tensor) -> torch.Tensor:
        return self.layer(batch).square().mean()

    def validation_step(self, batch: torch.Tensor) -> None:
        self.log("loss", self.layer(batch).square().mean())

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 2), "interval": "step"},
        }


def calls_of_a_fit(folder: Path) -> Calls:
    """Return all calls of overridden hooks in a fit with validation, accumulation and early stopping."""
    calls: Calls = []

    def own(name: str) -> Any:
        return lambda self, *arguments: heard(calls, "module", name, self, arguments)

    def of_strategy(self: Any, *arguments: Any) -> None:
        heard(calls, "strategy", "on_train_batch_start", self.lightning_module, arguments)

    steps = ("on_train_batch_start", "on_before_backward", "on_validation_batch_end")
    module = type("Loud", (Line,), {name: own(name) for name in steps})()
    strategy = type("Loud", (SingleDeviceStrategy,), {"on_train_batch_start": of_strategy})("cpu")
    late: Any = Silent()  # its hook is an attribute of the object, as in a mock
    late.on_before_zero_grad = lambda trainer, module, *given: heard(calls, "late", "attribute", module, given)
    all_hooks = recording(calls, "all", HOOKS)
    callbacks = [Silent(), all_hooks, late, recording(calls, "ends", ["on_train_batch_end"]), EarlyStopping("loss")]
    loader = DataLoader(torch.arange(6.0)[:, None], batch_size=1)
    trainer = Trainer(
        default_root_dir=folder,
        max_epochs=2,
        accumulate_grad_batches=2,
        callbacks=[*callbacks, ModelCheckpoint(folder, monitor="loss")],
        strategy=strategy,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        profiler=internals.NoProfiler(),
    )
    trainer.fit(module, loader, loader)
    heard(calls, "end", "weights", module, (module.layer.weight,))
    return calls


@pytest.mark.filterwarnings("ignore")
def test_the_calls_of_hooks_and_their_order_are_those_of_lightning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    internals.call_overridden_hooks_only()
    assert call._call_callback_hooks is internals._call_callback_hooks, f"lightning {lightning.__version__} is new"
    ours = calls_of_a_fit(tmp_path / "ours")
    for original in internals._LIGHTNINGS:
        monkeypatch.setattr(call, original.__name__, original)
    theirs = calls_of_a_fit(tmp_path / "theirs")
    assert ours == theirs
    assert {("late", "attribute"), ("strategy", "on_train_batch_start")} <= {each[:2] for each in ours}


def test_the_hooks_that_are_skipped_are_empty() -> None:
    nothing = {"RESUME", "LOAD_CONST", "RETURN_VALUE", "RETURN_CONST", "NOP"}
    for hook in internals.EMPTY_HOOKS:
        assert {each.opname for each in dis.get_instructions(hook)} <= nothing, hook


def test_an_unknown_version_of_lightning_calls_its_hooks_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for original in internals._LIGHTNINGS:
        monkeypatch.setattr(call, original.__name__, original)
    monkeypatch.setattr(lightning, "__version__", "99.0")
    with caplog.at_level(logging.DEBUG, internals.__name__):
        internals.call_overridden_hooks_only()
    assert call._call_callback_hooks is internals._LIGHTNINGS[0]
    assert "99.0" in caplog.text
