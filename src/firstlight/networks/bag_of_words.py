"""Classifiers without attention, which say what attention is worth: neither knows the order of the words."""

import torch
from torch import Tensor, nn

from firstlight.networks.config import ClassifierConfig
from firstlight.networks.token_dropout import TokenDropout


class BagOfWords(nn.Module):
    """The mean of the words' vectors, and a linear layer."""

    def __init__(self, config: ClassifierConfig, vocab_size: int, num_outputs: int, unknown_id: int = 1) -> None:
        """num_outputs and unknown_id as of Classifier; of the config, dim, the dropouts and embedding_std count."""
        super().__init__()
        self.context_length = config.context_length
        self.token_dropout = TokenDropout(config.token_dropout, unknown_id)
        self.embedding = nn.Embedding(vocab_size, config.dim)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(config.dim, num_outputs)

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Score every class for every text: (batch, length) ids, and which are real -> logits (batch, outputs)."""
        mask = _real(token_ids, padding_mask)[:, :, None]
        hidden = self.embedding(self.token_dropout(token_ids)) * mask  # (batch, length, dim)
        mean = hidden.sum(dim=1) / mask.sum(dim=1).clamp(min=1)  # (batch, dim)
        return self.head(self.dropout(mean))


class LogisticRegression(nn.Module):
    """Multinomial logistic regression on counts: one weight for each word and class (post 5's warm-up)."""

    def __init__(self, config: ClassifierConfig, vocab_size: int, num_outputs: int, unknown_id: int = 1) -> None:
        """As BagOfWords; of the config, token_dropout alone counts."""
        super().__init__()
        self.context_length = config.context_length
        self.token_dropout = TokenDropout(config.token_dropout, unknown_id)
        self.weights = nn.Embedding(vocab_size, num_outputs)
        nn.init.zeros_(self.weights.weight)
        self.bias = nn.Parameter(torch.zeros(num_outputs))

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Score every class for every text: the sum of its words' weights. As BagOfWords.forward."""
        mask = _real(token_ids, padding_mask)[:, :, None]
        weights = self.weights(self.token_dropout(token_ids)) * mask  # (batch, length, outputs)
        return weights.sum(dim=1) + self.bias


def _real(token_ids: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Which tokens count: all, where nothing is said."""
    return torch.ones_like(token_ids, dtype=torch.bool) if padding_mask is None else padding_mask
