"""How the order of the tokens enters a network.

Whatever is told where its first token stands (`start`) serves a text that goes on after cached tokens too.
"""

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

    def __init__(self, context_length: int, dim: int, first_position: int = 0, scale: float = 1.0) -> None:
        """scale: below 1, a longer context is squeezed into the positions of a shorter one (Chen et al. 2023)."""
        super().__init__()
        positions = scale * torch.arange(first_position, first_position + context_length)
        self.register_buffer("table", sinusoid(positions, dim), persistent=False)  # (context_length, dim)

    def forward(self, hidden: Tensor, start: int = 0) -> Tensor:
        """hidden: (batch, length, dim), its first token at position start; returns the same shape."""
        return hidden + self.table[start : start + hidden.shape[1]]


class LearnedPositions(nn.Module):
    """Add one learned vector for each position."""

    def __init__(self, context_length: int, dim: int, std: float = 1.0) -> None:
        super().__init__()
        self.table = nn.Embedding(context_length, dim)
        nn.init.normal_(self.table.weight, std=std)

    def forward(self, hidden: Tensor, start: int = 0) -> Tensor:
        """hidden: (batch, length, dim), its first token at position start; returns the same shape."""
        return hidden + self.table.weight[start : start + hidden.shape[1]]


class RotaryPositions(nn.Module):
    """Turn pairs of a query's or key's coordinates by an angle that grows with the position (RoFormer, 2021).

    Then the product of a query and a key depends on their distance, not on where they stand.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, context_length: int, num_heads: int, head_dim: int, scale: float = 1.0) -> None:
        """scale: as of SinusoidalPositions."""
        super().__init__()
        self.num_heads = num_heads
        waves = sinusoid(scale * torch.arange(context_length), head_dim)  # (context_length, head_dim)
        sin, cos = waves[:, 0::2], waves[:, 1::2]  # (context_length, head_dim / 2)
        self.register_buffer("cos", torch.cat((cos, cos), dim=1).repeat(1, num_heads), persistent=False)
        self.register_buffer("sin", torch.cat((-sin, sin), dim=1).repeat(1, num_heads), persistent=False)

    def forward(self, projected: Tensor, start: int = 0) -> Tensor:
        """Turn all heads at once, which lie side by side: half as long as turning each by itself.

        projected: (…, length, heads * head_dim), the first at position start; returns the same shape.
        """
        end = start + projected.shape[-2]
        heads = projected.unflatten(-1, (self.num_heads, -1))  # (…, length, heads, head_dim)
        partners = heads.roll(heads.shape[-1] // 2, -1).flatten(-2)  # the pairs are i and i + head_dim / 2
        return torch.addcmul(projected * self.cos[start:end], partners, self.sin[start:end])


class RelativePositions(nn.Module):
    """One learned vector for each distance, which a query is multiplied with as with a key (Shaw et al. 2018).

    The heads share the vectors. The table grows with the context, not with its square, by the Music Transformer's trick
    (Huang et al. 2018): multiply with all distances at once, then skew.
    """

    def __init__(self, context_length: int, head_dim: int) -> None:
        super().__init__()
        self.context_length = context_length
        self.table = nn.Embedding(2 * context_length - 1, head_dim)  # from -(context_length - 1) to context_length - 1
        nn.init.normal_(self.table.weight, std=head_dim**-0.5)

    def forward(self, query: Tensor, num_keys: int, start: int = 0) -> Tensor:
        """What each query adds to its scores of the keys 0, 1, …, before they are divided by √head_dim.

        query: (batch, heads, queries, head_dim), the first at position start. Returns (batch, heads, queries, keys).
        """
        num_queries = query.shape[2]
        lowest = self.context_length - (start + num_queries)  # row of the last query's distance to key 0
        vectors = self.table.weight[lowest : lowest + num_queries + num_keys - 1]  # (distances, head_dim)
        return skew(query @ vectors.T, num_keys)


def skew(scores: Tensor, num_keys: int) -> Tensor:
    """Move row i of (…, queries, queries + keys - 1) left by queries - 1 - i: from distances to keys.

    Returns (…, queries, keys). Only shapes change, nothing is gathered.
    """
    num_queries, width = scores.shape[-2:]
    padded = nn.functional.pad(scores, (0, 1)).flatten(-2)  # rows of width + 1
    shifted = padded[..., num_queries - 1 : num_queries - 1 + num_queries * width]
    return shifted.unflatten(-1, (num_queries, width))[..., :num_keys]


class NoPositions(nn.Module):
    """Nothing is added to the embeddings: the attention knows the order, or nobody does."""

    def forward(self, hidden: Tensor, start: int = 0) -> Tensor:  # noqa: ARG002  (the interface of all positions)
        """hidden: (batch, length, dim), unchanged."""
        return hidden


def build_positions(config: TransformerConfig) -> nn.Module:
    """What is added to the embeddings; rotary and relative positions act in the attention instead."""
    match config.positions:
        case Positions.sinusoidal:
            return SinusoidalPositions(config.context_length, config.dim, config.first_position, config.position_scale)
        case Positions.learned:
            return LearnedPositions(config.context_length, config.dim, config.embedding_std)
        case Positions.rotary | Positions.relative | Positions.none:
            return NoPositions()


def stretch(table: Tensor, length: int) -> Tensor:
    """A trained table of positions for a longer context, by linear interpolation between its ends.

    table: (positions, dim). Returns (length, dim): position interpolation, as post 2 names it.
    """
    columns = table.T[None]  # (1, dim, positions)
    return nn.functional.interpolate(columns, size=length, mode="linear", align_corners=True)[0].T.contiguous()
