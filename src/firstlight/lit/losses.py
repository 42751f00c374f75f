"""Probabilities and losses of logits, for two classes or more, also from a teacher (Hinton, Vinyals & Dean 2015)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.data.row_options import refuse_unknown_groups
from firstlight.data.tables import IGNORED
from firstlight.errors import UserError

LossFunction = Callable[[Tensor, Tensor], Tensor]  # logits (n, classes), targets (n,) -> the loss of each target (n,)
Teacher = Callable[[Any], Tensor]  # a batch -> the log probabilities of its targets, (targets, classes), no gradient


def expected_loss(num_classes: int, vocab_size: int) -> float:
    """Return the loss of even probabilities in nats, which that of a new network is near.

    num_classes: 0 for a network that predicts tokens.
    """
    return math.log(num_classes or vocab_size)


def probabilities(logits: Tensor) -> Tensor:
    """Return the probabilities of the classes, (batch, classes).

    Args:
        logits: (batch, classes); or (batch, 1), the logit of the second of two classes.

    Example:
        >>> import torch
        >>> from firstlight.lit import probabilities
        >>> probabilities(torch.tensor([[0.0], [torch.inf]]))
        tensor([[0.5000, 0.5000],
                [0.0000, 1.0000]])
        >>> probabilities(torch.zeros(1, 4))
        tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
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
    loss: LossFunction | None = None,
    text_weights: Tensor | None = None,
) -> Tensor:
    """Return the mean loss of a batch in nats: binary cross entropy for one logit, otherwise cross entropy.

    Args:
        logits: (batch, classes); or (batch, 1), the logit of the second of two classes, as in the post on a review
            classifier (May 2022).
        targets: The true classes, (batch,), int.
        class_weights: The weight of each class in the mean, (classes,): that of the true class of a text, also with
            smoothing. torch's cross entropy weights the smoothed share of each class with its own weight instead.
        label_smoothing: The share of every target that is spread evenly over all classes (Szegedy et al. 2016).
        ordinal_smoothing: For ordered classes, such as stars. A class at distance d from the true one gets
            exp(-d / ordinal_smoothing) of its share (Díaz & Marathe 2019). 0 disables it.
        loss: A function that is used in place of the cross entropy. It accepts logits, (batch, classes), also for two
            classes, and targets, (batch,), and returns the loss of each target, (batch,). With smoothing, the loss of a
            text is the mean over the classes by their shares.
        text_weights: The weight of each text in the mean, (batch,).

    Returns:
        A scalar.

    Raises:
        UserError: If `loss` does not return one number for each target.

    Example:
        >>> import torch
        >>> from firstlight.lit import classification_loss
        >>> classification_loss(torch.zeros(3, 1), torch.tensor([0, 1, 1]))  # ln 2
        tensor(0.6931)
        >>> classification_loss(torch.zeros(3, 5), torch.tensor([0, 4, 2]), label_smoothing=0.1)  # ln 5
        tensor(1.6094)
    """
    is_plain = loss is None and text_weights is None and ordinal_smoothing == 0
    if is_plain and logits.shape[1] > 1 and (class_weights is None or not label_smoothing):
        return F.cross_entropy(logits, targets, weight=class_weights, label_smoothing=label_smoothing)
    num_classes = max(2, logits.shape[1])
    shares = soft_targets(num_classes, label_smoothing, ordinal_smoothing).to(logits)[targets]  # (batch, classes)
    if loss is not None and not label_smoothing and not ordinal_smoothing:
        losses = losses_by(loss, two_logits(logits), targets)
    elif loss is not None:
        of_classes = [losses_by(loss, two_logits(logits), torch.full_like(targets, i)) for i in range(num_classes)]
        losses = (shares * torch.stack(of_classes, dim=1)).sum(dim=1)
    elif logits.shape[1] == 1:
        losses = F.binary_cross_entropy_with_logits(logits.squeeze(1), shares[:, 1], reduction="none")
    else:
        losses = F.cross_entropy(logits, shares, reduction="none")
    weights = text_weights
    if class_weights is not None:
        weights = class_weights[targets] if weights is None else class_weights[targets] * weights
    if weights is None:
        return losses.mean()
    return (losses * weights).sum() / weights.sum()


class GroupTerms(NamedTuple):
    """Groups of rows in the training loss.

    numbers: the group of each row of the data, (rows,), int, 0 for rows that are not in training. log_priors:
    log P(class | group) with add-one smoothing, (groups, classes). weights: the weight of each group, (groups,), or
    None.
    """

    numbers: Tensor
    log_priors: Tensor
    weights: Tensor | None


def group_terms(data: Any) -> GroupTerms:
    """Return the groups of the training rows. data: a `ReviewData`. Raises UserError for the weight of no group."""
    rows, weights = data.rows("train"), data.options.group_weights
    names, groups = np.unique(data.groups(rows), return_inverse=True)
    refuse_unknown_groups("group_weights", weights or (), names)
    refuse_unknown_groups("finish_on", [name] if (name := data.options.finish_on) else (), names)
    counts = np.ones((len(names), data.num_classes))
    np.add.at(counts, (groups, data.targets[rows]), 1)
    numbers = np.zeros(len(data.targets), np.int64)
    numbers[rows] = groups
    log_priors = torch.from_numpy(np.log(counts / counts.sum(axis=1, keepdims=True))).float()
    of_groups = None if weights is None else torch.tensor([float(weights.get(name, 1)) for name in names.tolist()])
    return GroupTerms(torch.from_numpy(numbers), log_priors, of_groups)


def losses_by(loss: LossFunction, logits: Tensor, targets: Tensor) -> Tensor:
    """Return the loss of each target by a function of the user, (n,). logits: (n, classes); targets: (n,).

    Raises UserError if it does not return one number for each target.
    """
    losses = loss(logits, targets)
    if losses.shape != targets.shape:
        raise UserError(f"module.loss must return {targets.shape}, not {losses.shape}; use reduction='none'")
    return losses


def soft_targets(num_classes: int, label_smoothing: float, ordinal_smoothing: float) -> Tensor:
    """Return the target probabilities for each true class, (classes, classes). The rows sum to one.

    label_smoothing, ordinal_smoothing: as in `classification_loss`.
    """
    shares = torch.eye(num_classes)
    if ordinal_smoothing:
        places = torch.arange(num_classes)
        shares = (-(places[:, None] - places).abs() / ordinal_smoothing).softmax(dim=1)
    return shares * (1 - label_smoothing) + label_smoothing / num_classes


def disagreement(logits: Tensor, others: Tensor) -> Tensor:
    """Return the mean of both Kullback-Leibler divergences of two predictions over a batch (R-Drop, Liang 2021).

    logits, others: (batch, 1) or (batch, classes).
    """
    one, other = two_logits(logits).log_softmax(dim=1), two_logits(others).log_softmax(dim=1)
    return ((one.exp() - other.exp()) * (one - other)).sum(dim=1).mean() / 2


def two_logits(logits: Tensor) -> Tensor:
    """Return (batch, 1), the logit of the second of two classes, as (batch, 2). Other logits are unchanged."""
    return F.pad(logits, (1, 0)) if logits.shape[1] == 1 else logits


def log_odds(logits: Tensor) -> Tensor:
    """Return the log-odds of each class, (batch, classes). logits: (batch, 1) or (batch, classes)."""
    logits = two_logits(logits)
    num_classes = logits.shape[1]
    own = torch.eye(num_classes, dtype=torch.bool)
    others = logits[:, None].expand(-1, num_classes, -1).masked_fill(own, -torch.inf)  # (batch, classes, classes)
    return logits - others.logsumexp(dim=2)


def mean_loss(loss: LossFunction, logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean loss by a function of the user, a scalar, 0 without targets.

    logits: (n, classes); targets: (n,). Raises UserError if it does not return one number for each target.
    """
    return losses_by(loss, logits, targets).sum() / max(len(targets), 1)


def token_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the loss of each token in nats, in the shape of the targets. It is 0 where the target is IGNORED.

    logits: (…, vocab_size); targets: (…). (…) is (batch, length) or (tokens,).
    """
    return F.cross_entropy(logits.movedim(-1, 1), targets, ignore_index=IGNORED, reduction="none")


@dataclass(frozen=True)
class Distillation:
    """A teacher, and how much its predictions count in the loss of a network.

    weight: the share of the loss that compares the network with the teacher. temperature: of both distributions.
    """

    teacher: Teacher
    weight: float
    temperature: float

    def loss(self, loss: Tensor, logits: Tensor, batch: Any) -> Tensor:
        """Return the weighted mean of a loss and of the divergence from the teacher.

        loss: a scalar; logits: (targets, classes), or (targets, 1) for two classes, of the batch.
        """
        divergence = teacher_divergence(logits, self.teacher(batch), self.temperature)
        return (1 - self.weight) * loss + self.weight * divergence


def teacher_divergence(logits: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Return the mean Kullback-Leibler divergence of a network from its teacher, times the temperature's square.

    With this factor, the size of the gradient hardly depends on the temperature (Hinton et al. 2015).

    logits: (targets, classes), or (targets, 1), the logit of the second of two classes; teacher: the logits or log
    probabilities of the teacher, (targets, classes). Returns a scalar, 0 without targets.
    """
    own = (two_logits(logits) / temperature).log_softmax(dim=1)
    given = (teacher / temperature).log_softmax(dim=1)
    total = F.kl_div(own, given, reduction="sum", log_target=True)
    return temperature**2 * total / max(len(logits), 1)


class NetworkTeacher:
    """Teacher that predicts each batch with one or more networks. The prediction is their mean probability."""

    def __init__(self, networks: Sequence[nn.Module], target_logits: Callable[[nn.Module, Any], Tensor]) -> None:
        """networks: in evaluation mode; target_logits: as `Training.target_logits`."""
        self.networks, self.target_logits = networks, target_logits

    @torch.no_grad()
    def __call__(self, batch: Any) -> Tensor:
        found = []
        for network in self.networks:
            network.to(batch.targets.device)
            found.append(two_logits(self.target_logits(network, batch)).log_softmax(dim=1))
        return torch.stack(found).logsumexp(dim=0) if len(found) > 1 else found[0]  # normalized by the divergence
