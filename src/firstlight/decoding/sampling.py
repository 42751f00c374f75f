"""Sampling of the next token."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from firstlight.spelling import option


@dataclass(frozen=True)
class Sampling:
    """Options for choosing the next token.

    temperature: a value below 1 sharpens the distribution, a value above 1 flattens it; top_k: draw from the k most
    likely tokens; top_p: draw from the most likely tokens whose probabilities together reach p ("nucleus", Holtzman et
    al. 2020); greedy: always choose the most likely token; never: ids that are never chosen.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    greedy: bool = False
    never: Sequence[int] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if a value is out of range."""
        if not 0 < self.temperature < math.inf:
            remedy = f"for the most likely token, use {option('greedy')}"
            raise ValueError(f"temperature={self.temperature:g} must be above 0; {remedy}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k={self.top_k} must be at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p:g} must be above 0 and at most 1")

    def choose(self, logits: Tensor, random: torch.Generator | None = None) -> Tensor:
        """Return the chosen ids, (batch,), for logits, (batch, vocab_size)."""
        if self.greedy:
            return self._possible(logits).argmax(dim=1)
        return torch.multinomial(self.probabilities(logits), 1, generator=random).squeeze(1)

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the probabilities from which the next token is drawn: (batch, vocab_size). Each row sums to 1."""
        scores = self._possible(logits).to(finest(logits.device))
        scores = (scores - scores.amax(dim=1, keepdim=True)) / self.temperature  # at most 0: no overflow
        if self.top_k is not None and self.top_k < scores.shape[1]:
            order = scores.argsort(dim=1, descending=True, stable=True)  # of equal scores the first, as in argmax
            scores = scores.scatter(1, order[:, self.top_k :], -math.inf)
        if self.top_p is not None and self.top_p < 1:
            scores = nucleus(scores, self.top_p)
        return scores.softmax(dim=1).to(logits.dtype)

    def _possible(self, logits: Tensor) -> Tensor:
        if not self.never:
            return logits
        never = torch.tensor(list(self.never), device=logits.device)
        return logits.index_fill(1, never, -math.inf)


def finest(device: torch.device) -> torch.dtype:
    """Return the most precise type of a device. An Apple GPU has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def nucleus(scores: Tensor, top_p: float) -> Tensor:
    """Return the scores with -inf for all but the most likely tokens that together reach top_p: (batch, vocab_size)."""
    ordered, order = scores.sort(dim=1, descending=True, stable=True)
    shares = ordered.softmax(dim=1)
    before = shares.cumsum(dim=1) - shares  # it is 0 for the most likely token, which is always kept
    return scores.masked_fill((before >= top_p).scatter(1, order, before >= top_p), -math.inf)
