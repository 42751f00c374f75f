"""The heads of a classifier, which map the vectors of all tokens to logits. Padding does not change the logits."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.networks import masks
from firstlight.networks.variants import PoolingKind

Pool = Callable[[Tensor, Tensor], Tensor]  # of the vectors of the tokens and the padding mask


class PerToken(nn.Module):
    """The head of post 1 (reviews): one score for each token, then a linear layer from the scores to the outputs."""

    def __init__(self, dim: int, context_length: int, num_outputs: int) -> None:
        super().__init__()
        self.score = nn.Linear(dim, 1)
        self.outputs = nn.Linear(context_length, num_outputs)

    def forward(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """Return logits, (batch, outputs). hidden: (batch, length, dim); padding_mask: (batch, length)."""
        scores = self.score(hidden).squeeze(-1) * padding_mask  # (batch, length)
        return F.linear(scores, self.outputs.weight[:, : hidden.shape[1]], self.outputs.bias)


class Flatten(nn.Module):
    """One linear layer over all coordinates of all tokens."""

    def __init__(self, dim: int, context_length: int, num_outputs: int) -> None:
        super().__init__()
        self.outputs = nn.Linear(context_length * dim, num_outputs)

    def forward(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """Return logits, (batch, outputs). hidden: (batch, length, dim); padding_mask: (batch, length)."""
        flat = (hidden * padding_mask[..., None]).flatten(1)  # (batch, length * dim)
        return F.linear(flat, self.outputs.weight[:, : flat.shape[1]], self.outputs.bias)


class Pooled(nn.Module):
    """A function that reduces the tokens to one vector, followed by a linear layer."""

    def __init__(self, pool: Pool, dim: int, num_outputs: int) -> None:
        super().__init__()
        self.pool = pool
        self.outputs = nn.Linear(dim, num_outputs)

    def forward(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """Return logits, (batch, outputs). hidden: (batch, length, dim); padding_mask: (batch, length)."""
        pooled = self.pool(hidden, padding_mask) if hidden.shape[1] else hidden.sum(dim=1)  # no tokens: zeros
        return self.outputs(pooled)


def mean(hidden: Tensor, padding_mask: Tensor) -> Tensor:
    """Return the mean over the real tokens, (batch, dim), or zeros if there are none."""
    weights = padding_mask[..., None].to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)


def first(hidden: Tensor, padding_mask: Tensor) -> Tensor:
    """Return the first token, (batch, dim), or zeros if it is padding."""
    return hidden[:, 0] * padding_mask[:, :1]


def last(hidden: Tensor, padding_mask: Tensor) -> Tensor:
    """Return the last real token, (batch, dim), or zeros if there is none."""
    places = torch.arange(1, hidden.shape[1] + 1, device=hidden.device)  # (length,), from 1 so that padding is 0
    row = (places * padding_mask).argmax(dim=1)  # (batch,)
    chosen = hidden.gather(1, row[:, None, None].expand(-1, 1, hidden.shape[2])).squeeze(1)
    return chosen * padding_mask.any(dim=1, keepdim=True)


def largest(hidden: Tensor, padding_mask: Tensor) -> Tensor:
    """Return the largest value of each coordinate over the real tokens, (batch, dim), or zeros if there are none."""
    found = hidden.masked_fill(~padding_mask[..., None], -math.inf).amax(dim=1)
    return found.masked_fill(~padding_mask.any(dim=1, keepdim=True), 0.0)


class AttentionPool(nn.Module):
    """A mean of the real tokens, weighted by a learned score."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """Return the pooled vectors, (batch, dim). hidden: (batch, length, dim); padding_mask: (batch, length)."""
        weights = masks.masked_softmax(self.score(hidden).squeeze(-1), padding_mask)  # (batch, length)
        return (weights[:, None, :] @ hidden).squeeze(1)


class BertPool(nn.Module):
    """The first token through a linear layer and tanh (BERT, Devlin et al. 2018)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, hidden: Tensor, padding_mask: Tensor) -> Tensor:
        """Return the pooled vectors, (batch, dim). hidden: (batch, length, dim); padding_mask: (batch, length)."""
        return self.layer(hidden[:, 0]).tanh() * padding_mask[:, :1]


class FeatureHead(nn.Module):
    """A linear layer over the sum, the mean, and the sum weighted by magnitude of all tokens' features."""

    def __init__(self, num_features: int, num_outputs: int) -> None:
        super().__init__()
        self.score = nn.Linear(3 * num_features, num_outputs)
        nn.init.normal_(self.score.weight, std=0.02)

    def forward(self, features: Tensor, padding_mask: Tensor) -> Tensor:
        """Return logits, (batch, outputs). features: (batch, length, features); padding_mask: (batch, length)."""
        real = padding_mask[..., None]
        length = real.sum(dim=1).clamp(min=1)  # (batch, 1)
        total = (features * real).sum(dim=1)
        stressed = (features * features.abs() * real).sum(dim=1)
        return self.score(torch.cat((total / length.sqrt(), total / length, stressed / length.sqrt()), dim=-1))


POOLS: dict[PoolingKind, Callable[[int], Pool]] = {  # by the size of the vectors
    PoolingKind.mean: lambda _: mean,
    PoolingKind.first: lambda _: first,
    PoolingKind.last: lambda _: last,
    PoolingKind.max: lambda _: largest,
    PoolingKind.attention: AttentionPool,
    PoolingKind.bert: BertPool,
}


def build_head(kind: PoolingKind, dim: int, context_length: int, num_outputs: int) -> nn.Module:
    """Return the head that maps (batch, length, dim) and the padding mask to (batch, outputs)."""
    if kind in POOLS:
        return Pooled(POOLS[kind](dim), dim, num_outputs)
    head = PerToken if kind is PoolingKind.per_token else Flatten
    return head(dim, context_length, num_outputs)
