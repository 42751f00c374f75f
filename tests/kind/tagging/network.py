"""A transformer that predicts a tag for each word."""

from typing import Any

import torch
from torch import Tensor, nn

from firstlight.networks import LearnedPositions, build_block


class Tagger(nn.Module):
    """Embedding, positions, blocks and an output layer. The options of the blocks are those of `TaggerConfig`."""

    def __init__(self, config: Any, vocab_size: int, num_tags: int) -> None:
        super().__init__()
        self.context_length = config.context_length
        self.embedding = nn.Embedding(vocab_size, config.dim)
        self.positions = LearnedPositions(config.context_length, config.dim)
        self.blocks = nn.ModuleList(build_block(config) for _ in range(config.num_layers))
        self.head = nn.Sequential(nn.Dropout(config.tag_dropout), nn.Linear(config.dim, num_tags))

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Return the logits, (batch, length, tags). token_ids: (batch, length); padding_mask: True for real tokens."""
        mask = torch.ones_like(token_ids, dtype=torch.bool) if padding_mask is None else padding_mask
        hidden = self.positions(self.embedding(token_ids))  # (batch, length, dim)
        for block in self.blocks:
            hidden = block(hidden, mask=mask[:, None, None])
        return self.head(hidden)
