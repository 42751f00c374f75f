import pytest
import torch
from lightning.pytorch import Callback

from firstlight.callbacks.learning_checks import NonFiniteGuard
from firstlight.errors import RunError


class SpoiltLoss(Callback):
    """Callback that makes the logits of one batch NaN or infinite, and stores the weights before it."""

    def __init__(self, batch: int, value: float) -> None:
        self.batch, self.value = batch, value
        self.before: dict[str, torch.Tensor] = {}

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if batch_idx == self.batch:
            self.before = {name: weight.clone() for name, weight in pl_module.state_dict().items()}
            pl_module.network.register_forward_hook(lambda _, inputs, logits: logits * 0 + self.value)


@pytest.mark.parametrize(("value", "accumulate"), [(float("nan"), 1), (float("inf"), 2)])
def test_a_loss_that_is_no_number_ends_the_run_before_the_weights_change(bench, value: float, accumulate: int) -> None:
    spoilt = SpoiltLoss(4, value)
    data = bench.data()
    module = bench.module(data)
    with pytest.raises(RunError, match=rf"^the loss is nan at step {4 // accumulate}; lower optimizer\.lr, or set"):
        bench.fit(NonFiniteGuard(), spoilt, data=data, module=module, accumulate_grad_batches=accumulate)
    assert all(torch.equal(module.state_dict()[name], spoilt.before[name]) for name in spoilt.before)


def test_an_infinite_loss_is_named(bench, monkeypatch) -> None:
    data = bench.data()
    module = bench.module(data)
    step = module.training_step
    monkeypatch.setattr(module, "training_step", lambda batch: step(batch) | {"loss": step(batch)["loss"] * 1e39})
    with pytest.raises(RunError, match=r"^the loss is inf at step 0"):
        bench.fit(NonFiniteGuard(), data=data, module=module)
