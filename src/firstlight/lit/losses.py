"""From logits to probabilities and losses, for two classes or many."""

import torch
import torch.nn.functional as F
from torch import Tensor


def probabilities(logits: Tensor) -> Tensor:
    """(batch, 1) logits of a yes or no, or (batch, classes) logits -> (batch, classes) probabilities."""
    if logits.shape[1] > 1:
        return logits.softmax(dim=1)
    yes = logits.sigmoid()
    return torch.cat((1 - yes, yes), dim=1)


def classification_loss(
    logits: Tensor, targets: Tensor, class_weights: Tensor | None = None, label_smoothing: float = 0.0
) -> Tensor:
    """Binary cross entropy of one logit (post 1), else cross entropy; a mean, weighted by the targets' class weights.

    logits: (batch, 1) or (batch, classes); targets: (batch,) int; class_weights: (classes,).
    """
    if logits.shape[1] > 1:
        return F.cross_entropy(logits, targets, weight=class_weights, label_smoothing=label_smoothing)
    yes = targets.to(logits.dtype) * (1 - label_smoothing) + label_smoothing / 2
    losses = F.binary_cross_entropy_with_logits(logits.squeeze(1), yes, reduction="none")
    if class_weights is None:
        return losses.mean()
    weights = class_weights[targets]
    return (losses * weights).sum() / weights.sum()
