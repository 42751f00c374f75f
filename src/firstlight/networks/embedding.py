"""The embedding of the tokens, and dropout of complete tokens."""

import math

import torch
from torch import Tensor, nn

from firstlight.networks.config import TransformerConfig


class ScaledEmbedding(nn.Embedding):
    """An embedding whose vectors are multiplied by a factor. An output layer with the same matrix has no factor.

    Vaswani et al. (2017) multiply by √dim. The vectors are then as large as the positions, although the initial weights
    are small enough for the output layer.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, scale: float) -> None:
        super().__init__(num_embeddings, embedding_dim)
        self.scale = scale

    def forward(self, token_ids: Tensor) -> Tensor:
        """Return the vectors of the tokens, (…, embedding_dim). token_ids: (…) int."""
        return super().forward(token_ids) * self.scale


class TokenDropout(nn.Module):
    """Dropout that replaces a share of the tokens by the unknown token in training.

    A prediction then does not depend on a single word.
    """

    def __init__(self, share: float, unknown_id: int) -> None:
        super().__init__()
        self.share, self.unknown_id = share, unknown_id

    def forward(self, token_ids: Tensor) -> Tensor:
        """Return the token ids, some of them replaced. token_ids: int of any shape; the output has the same shape."""
        if not self.training or self.share == 0:
            return token_ids
        dropped = torch.rand(token_ids.shape, device=token_ids.device) < self.share
        return token_ids.masked_fill(dropped, self.unknown_id)


def build_embedding(config: TransformerConfig, vocab_size: int, embedding_dim: int | None = None) -> nn.Embedding:
    """Return the embedding that the config describes. embedding_dim: size of its vectors; None: `config.dim`."""
    size = config.dim if embedding_dim is None else embedding_dim
    if config.scale_embeddings:
        embedding: nn.Embedding = ScaledEmbedding(vocab_size, size, math.sqrt(config.resolved_base_dim))
    else:
        embedding = nn.Embedding(vocab_size, size)
    nn.init.normal_(embedding.weight, std=config.embedding_std)
    return embedding
