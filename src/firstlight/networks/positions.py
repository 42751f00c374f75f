"""Position encodings: how a network represents the order of its tokens.

`start` is the position of the first token of the input. It is above 0 if earlier tokens are in a cache.
"""

import torch
from torch import Tensor, nn

from firstlight.networks.config import WAVE_LENGTH_BASE, TransformerConfig
from firstlight.networks.variants import Positions


def sinusoid(positions: Tensor, dim: int, base: float = WAVE_LENGTH_BASE) -> Tensor:
    """Return the sinusoidal position encoding of "Attention is all you need" (Vaswani et al. 2017).

    PE(p, 2i) = sin(p / 10000^(2i/dim)) and PE(p, 2i+1) = cos(p / 10000^(2i/dim)).

    Args:
        positions: (length,) int or float.
        dim: size of the encoding.
        base: the number in place of 10000.

    Returns:
        (length, dim) float.

    Example:
        >>> import torch
        >>> from firstlight.networks import sinusoid
        >>> sinusoid(torch.arange(2), dim=4)
        tensor([[0.0000, 1.0000, 0.0000, 1.0000],
                [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    even = torch.arange(0, dim, 2, device=positions.device)
    angles = positions[:, None] * base ** (-even / dim)  # (length, ceil(dim / 2))
    waves = torch.stack((angles.sin(), angles.cos()), dim=-1)  # (length, ceil(dim / 2), 2)
    return waves.flatten(1)[:, :dim]


class FixedPositions(nn.Module):
    """Base class of encodings that are computed once and added to the embeddings. They have no parameters.

    table: (context_length, dim), or (context_length, 1) for the same number in each coordinate.
    """

    table: Tensor

    def __init__(self, table: Tensor) -> None:
        super().__init__()
        self.register_buffer("table", table, persistent=False)

    def forward(self, hidden: Tensor, start: int = 0) -> Tensor:
        """Return `hidden`, (batch, length, dim), plus the encoding of the positions start, start + 1, …."""
        return hidden + self.table[start : start + hidden.shape[1]]


class SinusoidalPositions(FixedPositions):
    """Sinusoidal position encoding, which is added to the embeddings; see `sinusoid`. It has no parameters.

    Args:
        context_length: number of positions.
        dim: size of the embeddings.
        first_position: number of the first position.
        scale: factor of the positions; below 1, a longer context has the positions of a shorter one (Chen et al. 2023).

    Shape:
        - input and output: (batch, length, dim)

    Example:
        >>> import torch
        >>> from firstlight.networks import SinusoidalPositions
        >>> SinusoidalPositions(context_length=50, dim=8)(torch.zeros(2, 5, 8)).shape
        torch.Size([2, 5, 8])
    """

    def __init__(self, context_length: int, dim: int, first_position: int = 0, scale: float = 1.0) -> None:
        positions = scale * torch.arange(first_position, first_position + context_length)
        super().__init__(sinusoid(positions, dim))


class FractionalPositions(FixedPositions):
    """Position j divided by the context length n_max, added to each coordinate (post 1, reviews). No parameters.

    The post names this encoding before it chooses the sinusoid. Its values do not exceed 1, but the difference of two
    neighbors depends on the context length.

    Args:
        context_length: number of positions, n_max.
        first_position: number j of the first position.

    Shape:
        - input and output: (batch, length, dim)

    Example:
        >>> import torch
        >>> from firstlight.networks import FractionalPositions
        >>> FractionalPositions(context_length=4)(torch.zeros(1, 3, 2))
        tensor([[[0.0000, 0.0000],
                 [0.2500, 0.2500],
                 [0.5000, 0.5000]]])
    """

    def __init__(self, context_length: int, first_position: int = 0) -> None:
        positions = torch.arange(first_position, first_position + context_length)
        super().__init__(positions[:, None] / context_length)


class LearnedPositions(nn.Module):
    """Learned positions: one vector for each position, which is added to the embeddings.

    Args:
        context_length: number of positions.
        dim: size of the embeddings.
        std: standard deviation of the initial vectors.

    Shape:
        - input and output: (batch, length, dim)

    Example:
        >>> import torch
        >>> from firstlight.networks import LearnedPositions
        >>> positions = LearnedPositions(context_length=50, dim=8)
        >>> positions(torch.zeros(2, 5, 8)).shape, positions.table.weight.shape
        (torch.Size([2, 5, 8]), torch.Size([50, 8]))
    """

    def __init__(self, context_length: int, dim: int, std: float = 1.0) -> None:
        super().__init__()
        self.table = nn.Embedding(context_length, dim)
        nn.init.normal_(self.table.weight, std=std)

    def forward(self, hidden: Tensor, start: int = 0) -> Tensor:
        """Return `hidden`, (batch, length, dim), plus the vectors of the positions start, start + 1, …."""
        return hidden + self.table.weight[start : start + hidden.shape[1]]


class RotaryPositions(nn.Module):
    """Rotary positions: queries and keys are rotated by angles that grow with the position (RoFormer, Su et al. 2021).

    The product of a query and a key then depends on the distance between them, not on their absolute positions. The
    coordinates i and i + head_dim / 2 form a pair, which is rotated. The module has no parameters.

    Args:
        context_length: number of positions.
        num_heads: largest number of heads.
        head_dim: size of one head, an even number.
        scale: factor of the positions, as in `SinusoidalPositions`.
        base: base of the wave lengths; a larger one turns the slow coordinates more slowly (Xiong et al. 2023).

    Shape:
        - input and output: (…, length, heads · head_dim), with at most num_heads heads

    Example:
        >>> import torch
        >>> from firstlight.networks import RotaryPositions
        >>> rotary = RotaryPositions(context_length=50, num_heads=4, head_dim=8)
        >>> query = torch.randn(2, 5, 32)
        >>> rotated = rotary(query)
        >>> torch.allclose(rotated.norm(dim=-1), query.norm(dim=-1), atol=1e-5)  # lengths do not change
        True
    """

    cos: Tensor
    sin: Tensor

    def __init__(
        self, context_length: int, num_heads: int, head_dim: int, scale: float = 1.0, base: float = WAVE_LENGTH_BASE
    ) -> None:
        super().__init__()
        self.head_dim = head_dim
        waves = sinusoid(scale * torch.arange(context_length), head_dim, base)  # (context_length, head_dim)
        sin, cos = waves[:, 0::2], waves[:, 1::2]  # (context_length, head_dim / 2)
        self.register_buffer("cos", torch.cat((cos, cos), dim=1).repeat(1, num_heads), persistent=False)
        self.register_buffer("sin", torch.cat((-sin, sin), dim=1).repeat(1, num_heads), persistent=False)

    def forward(self, projected: Tensor, start: int = 0) -> Tensor:
        """Return rotated queries or keys. All heads are rotated together, which takes half of the time.

        projected: (…, length, heads * head_dim), whose first token is at position `start`. The output has the same
        shape.
        """
        end, width = start + projected.shape[-2], projected.shape[-1]
        cos, sin = self.cos[start:end], self.sin[start:end]  # (length, num_heads * head_dim)
        if width < cos.shape[1]:  # fewer heads
            cos, sin = cos[:, :width], sin[:, :width]
        heads = projected.unflatten(-1, (-1, self.head_dim))  # (…, length, heads, head_dim)
        partners = heads.roll(self.head_dim // 2, -1).flatten(-2)  # the pairs are i and i + head_dim / 2
        return torch.addcmul(projected * cos, partners, sin)

    def moved_back(self, heads: Tensor) -> Tensor:
        """Return rotated keys, (…, heads, length, head_dim), as they are one position earlier."""
        cos, sin = self.cos[1:2, : self.head_dim], self.sin[1:2, : self.head_dim]
        return torch.addcmul(heads * cos, heads.roll(self.head_dim // 2, -1), sin, value=-1)


class RelativePositions(nn.Module):
    """Relative positions: each attention score gains the product of the query and a vector of the distance.

    The vectors are learned (Shaw et al. 2018) and shared by all heads. Memory grows linearly with the context length,
    not with its square (Music Transformer, Huang et al. 2018).

    Args:
        context_length: number of positions; there are 2 · context_length - 1 distances.
        head_dim: size of one head.
        std: standard deviation of the initial vectors; None: 1/√head_dim.

    Shape:
        - query: (batch, heads, queries, head_dim)
        - output: (batch, heads, queries, keys)

    Example:
        >>> import torch
        >>> from firstlight.networks import RelativePositions
        >>> relative = RelativePositions(context_length=50, head_dim=8)
        >>> relative(torch.randn(2, 4, 5, 8), num_keys=5).shape
        torch.Size([2, 4, 5, 5])
    """

    def __init__(self, context_length: int, head_dim: int, std: float | None = None) -> None:
        super().__init__()
        self.context_length = context_length
        self.table = nn.Embedding(2 * context_length - 1, head_dim)  # from -(context_length - 1) to context_length - 1
        nn.init.normal_(self.table.weight, std=head_dim**-0.5 if std is None else std)

    def forward(self, query: Tensor, num_keys: int, start: int = 0) -> Tensor:
        """Return the terms that are added to the scores before these are scaled.

        query: (batch, heads, queries, head_dim), whose first token is at position `start`; num_keys: the keys are
        at the positions 0, 1, …, num_keys - 1. Returns (batch, heads, queries, keys).
        """
        num_queries = query.shape[2]
        lowest = self.context_length - (start + num_queries)  # row of the last query's distance to key 0
        vectors = self.table.weight[lowest : lowest + num_queries + num_keys - 1]  # (distances, head_dim)
        return skew(query @ vectors.T, num_keys)


def skew(scores: Tensor, num_keys: int) -> Tensor:
    """Return scores by distance, (…, queries, queries + keys - 1), as scores by key, (…, queries, keys).

    Row i moves left by queries - 1 - i. Padding and reshaping do this without a gather.
    """
    num_queries, width = scores.shape[-2:]
    padded = nn.functional.pad(scores, (0, 1)).flatten(-2)  # rows of width + 1
    shifted = padded[..., num_queries - 1 : num_queries - 1 + num_queries * width]
    return shifted.unflatten(-1, (num_queries, width))[..., :num_keys]


class NoPositions(nn.Module):
    """The module that adds no positions."""

    def forward(self, hidden: Tensor, start: int = 0) -> Tensor:  # noqa: ARG002  (the interface of all positions)
        """Return `hidden`, (batch, length, dim), unchanged."""
        return hidden


def build_positions(config: TransformerConfig) -> nn.Module:
    """Return the module that adds positions to the embeddings. Rotary and relative positions are part of attention."""
    match config.positions:
        case Positions.sinusoidal:
            return SinusoidalPositions(config.context_length, config.dim, config.first_position, config.position_scale)
        case Positions.fraction:
            return FractionalPositions(config.context_length, config.first_position)
        case Positions.learned:
            return LearnedPositions(config.context_length, config.dim, config.embedding_std)
        case Positions.rotary | Positions.relative | Positions.none:
            return NoPositions()


def check_length(length: int, context_length: int, what: str = "text") -> None:
    """Raise ValueError if a text has more tokens than the context length."""
    if length > context_length:
        raise ValueError(f"a {what} of {length} tokens is longer than the context length, {context_length}")


def stretch(table: Tensor, length: int) -> Tensor:
    """Return a table of learned positions for a longer context, by linear interpolation (post 2, plays).

    table: (positions, dim). Returns (length, dim). The first and the last row are unchanged.
    """
    columns = table.T[None]  # (1, dim, positions)
    return nn.functional.interpolate(columns, size=length, mode="linear", align_corners=True)[0].T.contiguous()
