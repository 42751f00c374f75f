"""The networks before the first attention head in post 4 (names, 2023): a bigram table, running averages, affinities.

`model._target_` chooses them, as in `conf/ladder/`. Each has the arguments and the result of a `Generator`.
"""

import math

import torch
from torch import Tensor, nn

from firstlight.generator.options import GeneratorConfig
from firstlight.networks import masks


class UncachedGenerator(nn.Module):
    """Base class of generators that read the context again for each token that they generate.

    `model._target_` chooses one of them. It has the arguments and the result of a `Generator`.

    Args:
        config: options of the network; most have no effect.
        vocab_size: number of token ids.
        width: size of the vector of a token.

    Shape:
        - token_ids: (batch, length) int
        - output: (batch, length, vocab_size) logits
    """

    is_causal = False  # so that a generation uses no cache

    def __init__(self, config: GeneratorConfig, vocab_size: int, width: int) -> None:
        super().__init__()
        self.context_length, self.vocab_size = config.context_length, vocab_size
        self.embedding = nn.Embedding(vocab_size, width)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)


class BigramTable(UncachedGenerator):
    """A trainable table of the next token: the vector of a token is its row of logits.

    Example:
        >>> import torch
        >>> from firstlight.networks import BigramTable, GeneratorConfig
        >>> network = BigramTable(GeneratorConfig(context_length=10), vocab_size=27)
        >>> network.embedding.weight.shape
        torch.Size([27, 27])
        >>> network(torch.randint(27, (2, 5))).shape
        torch.Size([2, 5, 27])
    """

    def __init__(self, config: GeneratorConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size, width=vocab_size)

    def forward(self, token_ids: Tensor, cache: None = None) -> Tensor:  # noqa: ARG002
        """Return the logits, (batch, length, vocab_size). token_ids: (batch, length) int."""
        return self.embedding(token_ids)


class WeightedMeans(UncachedGenerator):
    """Base class of networks with a weighted mean of the vectors of a token and of all tokens before it."""

    def __init__(self, config: GeneratorConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size, config.dim)
        self.scale = 1 / math.sqrt(config.dim) if config.scale_scores else 1.0
        self.head = nn.Linear(config.dim, vocab_size, bias=config.head_bias)

    def forward(self, token_ids: Tensor, cache: None = None) -> Tensor:  # noqa: ARG002
        """Return the logits, (batch, length, vocab_size). token_ids: (batch, length) int."""
        hidden = self.embedding(token_ids)  # (batch, length, dim)
        return self.head(self.weights(hidden) @ hidden)

    def weights(self, hidden: Tensor) -> Tensor:
        """Return the weights of all tokens for each token, (batch, length, length). Each row sums to 1.

        hidden: (batch, length, dim).
        """
        places = torch.arange(hidden.shape[1], device=hidden.device)
        scores = self.scores(hidden)  # (batch, length, length)
        return masks.masked_softmax(scores, masks.causal(places, places)[0])

    def scores(self, hidden: Tensor) -> Tensor:
        """Return the scores whose softmax are the weights, (batch, length, length). hidden: (batch, length, dim)."""
        raise NotImplementedError


class RunningAverages(WeightedMeans):
    """The mean of the vectors of a token and of all tokens before it, and a linear layer.

    Example:
        >>> import torch
        >>> from firstlight.networks import GeneratorConfig, RunningAverages
        >>> network = RunningAverages(GeneratorConfig(dim=8, context_length=10), vocab_size=27)
        >>> hidden = torch.randn(1, 3, 8)
        >>> bool(torch.allclose(network.weights(hidden)[0, 2], torch.tensor([1 / 3, 1 / 3, 1 / 3])))
        True
    """

    def scores(self, hidden: Tensor) -> Tensor:
        return hidden.new_zeros(*hidden.shape[:2], hidden.shape[1])


class RawAffinities(WeightedMeans):
    """A mean weighted by the softmax of x·xᵀ: attention without queries, keys and values, and a linear layer.

    Example:
        >>> import torch
        >>> from firstlight.networks import GeneratorConfig, RawAffinities
        >>> config = GeneratorConfig(dim=8, context_length=10, scale_scores=False)
        >>> network = RawAffinities(config, vocab_size=27)
        >>> hidden = torch.eye(8)[None, [0, 1, 0]]  # the third vector is the first
        >>> (network.weights(hidden)[0, 2] * 100).round().tolist()
        [42.0, 16.0, 42.0]
    """

    def scores(self, hidden: Tensor) -> Tensor:
        return hidden @ hidden.transpose(1, 2) * self.scale
