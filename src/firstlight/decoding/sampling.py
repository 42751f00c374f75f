"""Choosing the next token."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn from its scores.

    temperature: below 1 sharpens the distribution, above 1 flattens it; top_k: only the k likeliest; top_p: only the
    likeliest that together reach p ("nucleus", Holtzman et al. 2020); greedy: always the likeliest; never: these not.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    greedy: bool = False
    never: Sequence[int] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for a number that leaves no distribution."""
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"temperature={self.temperature:g} must be above 0; for the likeliest token, use greedy")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k={self.top_k} must be at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p={self.top_p:g} must be above 0 and at most 1")

    def choose(self, logits: Tensor, random: torch.Generator | None = None) -> Tensor:
        """(batch, vocab_size) logits -> (batch,) ids."""
        if self.greedy:
            return self._possible(logits).argmax(dim=1)
        return torch.multinomial(self.probabilities(logits), 1, generator=random).squeeze(1)

    def probabilities(self, logits: Tensor) -> Tensor:
        """What is drawn from: (batch, vocab_size), rows summing to 1."""
        scores = self._possible(logits).double()
        scores = (scores - scores.amax(dim=1, keepdim=True)) / self.temperature  # the likeliest has 0: none overflows
        if self.top_k is not None and self.top_k < scores.shape[1]:
            order = scores.argsort(dim=1, descending=True, stable=True)  # of equal ones the first, as argmax has it
            scores = scores.scatter(1, order[:, self.top_k :], -math.inf)
        if self.top_p is not None and self.top_p < 1:
            scores = nucleus(scores, self.top_p)
        return scores.softmax(dim=1).to(logits.dtype)

    def _possible(self, logits: Tensor) -> Tensor:
        if not self.never:
            return logits
        never = torch.tensor(list(self.never), device=logits.device)
        return logits.index_fill(1, never, -math.inf)


def nucleus(scores: Tensor, top_p: float) -> Tensor:
    """-inf for all but the fewest, likeliest tokens whose probabilities reach top_p. (batch, vocab_size)."""
    ordered, order = scores.sort(dim=1, descending=True, stable=True)
    shares = ordered.softmax(dim=1)
    before = shares.cumsum(dim=1) - shares  # the likeliest token has 0, and is always kept
    return scores.masked_fill((before >= top_p).scatter(1, order, before >= top_p), -math.inf)
