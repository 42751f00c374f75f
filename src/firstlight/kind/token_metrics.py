"""Metrics of tokens, as the callbacks log them, for evaluations outside of a training."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from firstlight.callbacks.token_metrics import Ratio, TokenMetric
from firstlight.lit.losses import token_losses


@torch.inference_mode()
def measure_tokens(
    run: Any,
    batches: Iterable[Any],
    metrics: Iterable[TokenMetric] | None = None,
    logits_of: Callable[[Any], Tensor] | None = None,
) -> dict[str, float]:
    """Return the loss of all batches in nats per token, and the value of each metric, in double precision.

    metrics: by default those of each training; metrics without a value are omitted, such as the loss of the last
    position without a complete window. logits_of: function that returns the logits of a batch, (…, vocab_size), for its
    targets, (…); by default those of the network for the inputs of the batch.
    """
    metrics = [metric() for metric in run.metric_callbacks] if metrics is None else metrics
    loss, ratios = Ratio(torch.float64), {metric: Ratio(torch.float64) for metric in metrics}
    for batch in batches:
        logits = run.network(*batch.inputs) if logits_of is None else logits_of(batch)
        outputs = {
            "token_losses": token_losses(logits, batch.targets).double(),
            "predicted": logits.argmax(dim=-1),
            "targets": batch.targets,
            "num_targets": batch.num_targets,
        }
        loss.update(outputs["token_losses"].sum(), batch.num_targets)
        for metric, ratio in ratios.items():
            metric.add(ratio, outputs, batch)
    values = {"loss": loss.compute()}
    for metric, ratio in ratios.items():
        values |= metric.named(ratio.compute()) if ratio.count else {}
    return {name: float(value) for name, value in values.items()}
