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
    logits: Tensor,
    targets: Tensor,
    class_weights: Tensor | None = None,
    label_smoothing: float = 0.0,
    ordinal_smoothing: float = 0.0,
) -> Tensor:
    """Binary cross entropy of one logit (post 1), else cross entropy; a mean, weighted by the targets' class weights.

    logits: (batch, 1) or (batch, classes); targets: (batch,) int; class_weights: (classes,).
    """
    if ordinal_smoothing == 0 and logits.shape[1] > 1:
        return F.cross_entropy(logits, targets, weight=class_weights, label_smoothing=label_smoothing)
    num_classes = max(2, logits.shape[1])
    shares = soft_targets(num_classes, label_smoothing, ordinal_smoothing).to(logits)[targets]  # (batch, classes)
    if logits.shape[1] == 1:
        losses = F.binary_cross_entropy_with_logits(logits.squeeze(1), shares[:, 1], reduction="none")
    else:
        losses = F.cross_entropy(logits, shares, reduction="none")
    if class_weights is None:
        return losses.mean()
    weights = class_weights[targets]
    return (losses * weights).sum() / weights.sum()


def soft_targets(num_classes: int, label_smoothing: float, ordinal_smoothing: float) -> Tensor:
    """What is wanted of the probabilities, for each class: (classes, classes), rows that sum to one.

    ordinal_smoothing: of classes in an order, such as stars, each gets exp(-distance / ordinal_smoothing) of what the
    right one gets (Díaz & Marathe 2019); label_smoothing: all get an equal part of that much (Szegedy 2016).
    """
    shares = torch.eye(num_classes)
    if ordinal_smoothing:
        places = torch.arange(num_classes)
        shares = (-(places[:, None] - places).abs() / ordinal_smoothing).softmax(dim=1)
    return shares * (1 - label_smoothing) + label_smoothing / num_classes


def disagreement(logits: Tensor, others: Tensor) -> Tensor:
    """The mean of both Kullback-Leibler divergences between two predictions, over the batch (R-Drop, Liang 2021).

    logits, others: (batch, 1) or (batch, classes).
    """
    if logits.shape[1] == 1:  # the same as of the logits (0, logit)
        logits, others = (F.pad(each, (1, 0)) for each in (logits, others))
    one, other = logits.log_softmax(dim=1), others.log_softmax(dim=1)
    return ((one.exp() - other.exp()) * (one - other)).sum(dim=1).mean() / 2
