"""Metrics of tokens, as the callbacks log them, for evaluations outside of a training."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor

from firstlight.callbacks.token_metrics import Ratio, TokenMetric
from firstlight.lit.losses import token_losses

Batch = TypeVar("Batch")


@torch.inference_mode()
def measure_tokens(
    batches: Iterable[Batch], logits_of: Callable[[Batch], Tensor], metrics: Iterable[TokenMetric]
) -> dict[str, float]:
    """Return the loss of all batches in nats per token, and the value of each metric, in double precision.

    logits_of: function that returns the logits of a batch, (…, vocab_size), for its targets, (…). metrics: metrics
    without a value are omitted, such as the loss of the last position without a complete window.
    """
    loss, ratios = Ratio(torch.float64), {metric: Ratio(torch.float64) for metric in metrics}
    for each in batches:
        batch: Any = each
        logits = logits_of(each)
        outputs = {
            "token_losses": token_losses(logits, batch.targets).double(),
            "predicted": logits.argmax(dim=-1),
        }
        loss.update(outputs["token_losses"].sum(), batch.num_targets)
        for metric, ratio in ratios.items():
            metric.add(ratio, outputs, batch)
    values = {"loss": loss.compute()}
    for metric, ratio in ratios.items():
        values |= metric.named(ratio.compute()) if ratio.count else {}
    return {name: float(value) for name, value in values.items()}
