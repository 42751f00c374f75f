"""Classifiers without attention and without word order, as baselines for the transformer."""

import torch
from torch import Tensor, nn

from firstlight.classifier.options import ClassifierConfig
from firstlight.networks.layers import TokenDropout


class BagOfWords(nn.Module):
    """A classifier that averages the vectors of the words and applies a linear layer.

    It is a baseline that ignores the order of the words.

    Args:
        config: options; only `dim`, `context_length`, `dropout`, `token_dropout` and `embedding_std` are used.
        vocab_size: number of token ids.
        num_outputs: number of logits: 1 for a binary classifier, else the number of classes.
        unknown_id: the token id that replaces the tokens that `config.token_dropout` drops.

    Shape:
        - token_ids: (batch, length) int
        - padding_mask: (batch, length) bool
        - output: (batch, num_outputs) logits

    Example:
        >>> import torch
        >>> from firstlight.networks import BagOfWords, ClassifierConfig
        >>> network = BagOfWords(ClassifierConfig(dim=8), vocab_size=100, num_outputs=5).eval()
        >>> there, back = torch.tensor([[4, 7, 9]]), torch.tensor([[9, 7, 4]])
        >>> torch.allclose(network(there), network(back))
        True
    """

    def __init__(self, config: ClassifierConfig, vocab_size: int, num_outputs: int, unknown_id: int = 1) -> None:
        super().__init__()
        self.context_length = config.context_length
        self.token_dropout = TokenDropout(config.token_dropout, unknown_id)
        self.embedding = nn.Embedding(vocab_size, config.dim)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(config.dim, num_outputs)

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Return the logits of each text.

        Args:
            token_ids: (batch, length) int.
            padding_mask: (batch, length) bool, True where a token is real; None: all tokens are real.

        Returns:
            (batch, num_outputs) float.
        """
        mask = _real(token_ids, padding_mask)[:, :, None]
        hidden = self.embedding(self.token_dropout(token_ids)) * mask  # (batch, length, dim)
        mean = hidden.sum(dim=1) / mask.sum(dim=1).clamp(min=1)  # (batch, dim)
        return self.head(self.dropout(mean))


class LogisticRegression(nn.Module):
    """Multinomial logistic regression on word counts: one weight for each word and class (post 5, 2022).

    All weights are zero at first. The shapes are those of `BagOfWords`.

    Args:
        config: options; only `context_length` and `token_dropout` are used.
        vocab_size: number of token ids.
        num_outputs: number of logits: 1 for a binary classifier, else the number of classes.
        unknown_id: the token id that replaces the tokens that `config.token_dropout` drops.

    Example:
        >>> import torch
        >>> from firstlight.networks import ClassifierConfig, LogisticRegression, num_parameters
        >>> network = LogisticRegression(ClassifierConfig(), vocab_size=100, num_outputs=5)
        >>> network(torch.tensor([[4, 7, 9]])).shape
        torch.Size([1, 5])
        >>> num_parameters(network)
        505
    """

    def __init__(self, config: ClassifierConfig, vocab_size: int, num_outputs: int, unknown_id: int = 1) -> None:
        super().__init__()
        self.context_length = config.context_length
        self.token_dropout = TokenDropout(config.token_dropout, unknown_id)
        self.weights = nn.Embedding(vocab_size, num_outputs)
        nn.init.zeros_(self.weights.weight)
        self.bias = nn.Parameter(torch.zeros(num_outputs))

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Return the logits of each text: the sum of the weights of its words plus a bias.

        The arguments and the shape are those of `BagOfWords.forward`.
        """
        mask = _real(token_ids, padding_mask)[:, :, None]
        weights = self.weights(self.token_dropout(token_ids)) * mask  # (batch, length, outputs)
        return weights.sum(dim=1) + self.bias


def _real(token_ids: Tensor, padding_mask: Tensor | None) -> Tensor:
    """Return the padding mask, or a mask that is True everywhere if it is None."""
    return torch.ones_like(token_ids, dtype=torch.bool) if padding_mask is None else padding_mask
