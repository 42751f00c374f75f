"""Knowledge distillation: the predictions of a teacher are additional targets (Hinton, Vinyals & Dean 2015)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.lit.losses import two_logits

Teacher = Callable[[Any], Tensor]  # a batch -> the log probabilities of its targets, (targets, classes), no gradient


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
