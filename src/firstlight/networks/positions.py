"""How the order of the tokens enters a network."""

import torch
from torch import Tensor, nn

from firstlight.networks.config import Positions, TransformerConfig

WAVE_LENGTH_BASE = 10_000.0


def sinusoid(positions: Tensor, dim: int) -> Tensor:
    """The position encoding of "Attention is all you need" (2017).

    positions: (length,) numbers. Returns (length, dim): PE(p, 2i) = sin(p / 10000^(2i/dim)), PE(p, 2i+1) = cos(same).
    """
    even = torch.arange(0, dim, 2, device=positions.device)
    angles = positions[:, None] * WAVE_LENGTH_BASE ** (-even / dim)  # (length, ceil(dim / 2))
    waves = torch.stack((angles.sin(), angles.cos()), dim=-1)  # (length, ceil(dim / 2), 2)
    return waves.flatten(1)[:, :dim]


class SinusoidalPositions(nn.Module):
    """Add the sinusoid to the embeddings; nothing to learn."""

    table: Tensor

    def __init__(self, context_length: int, dim: int, first_position: int = 0) -> None:
        super().__init__()
        positions = torch.arange(first_position, first_position + context_length)
        self.register_buffer("table", sinusoid(positions, dim), persistent=False)  # (context_length, dim)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden: (batch, length, dim); returns the same shape."""
        return hidden + self.table[: hidden.shape[1]]


class LearnedPositions(nn.Module):
    """Add one learned vector for each position."""

    def __init__(self, context_length: int, dim: int, std: float = 1.0) -> None:
        super().__init__()
        self.table = nn.Embedding(context_length, dim)
        nn.init.normal_(self.table.weight, std=std)

    def forward(self, hidden: Tensor) -> Tensor:
        """hidden: (batch, length, dim); returns the same shape."""
        return hidden + self.table.weight[: hidden.shape[1]]


class RotaryPositions(nn.Module):
    """Turn pairs of a query's or key's coordinates by an angle that grows with the position (RoFormer, 2021).

    Then the product of a query and a key depends on their distance, not on where they stand.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, context_length: int, head_dim: int) -> None:
        super().__init__()
        waves = sinusoid(torch.arange(context_length), head_dim)  # (context_length, head_dim)
        self.register_buffer("sin", waves[:, 0::2], persistent=False)  # (context_length, head_dim / 2)
        self.register_buffer("cos", waves[:, 1::2], persistent=False)

    def forward(self, heads: Tensor) -> Tensor:
        """heads: (batch, heads, length, head_dim); returns the same shape, each position turned by its own angle."""
        length = heads.shape[2]
        cos, sin = self.cos[:length], self.sin[:length]
        first, second = heads.chunk(2, dim=-1)  # coordinate i is paired with i + head_dim / 2
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def build_positions(config: TransformerConfig) -> nn.Module:
    """What is added to the embeddings; rotary positions act in the attention instead, so nothing is added here."""
    match config.positions:
        case Positions.sinusoidal:
            return SinusoidalPositions(config.context_length, config.dim, config.first_position)
        case Positions.learned:
            return LearnedPositions(config.context_length, config.dim, config.embedding_std)
        case Positions.rotary | Positions.none:
            return nn.Identity()
