"""Caches of keys and values, with which a decoder does not recompute those of earlier tokens for each new token."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from firstlight.networks.positions import RotaryPositions


class RecentCache:
    """The last few inputs of a causal convolution. Before the first token they are zero."""

    vectors: Tensor | None = None  # (batch, count, dim)

    def extend(self, new: Tensor, count: int) -> Tensor:
        """Return the last `count` vectors and the new ones, (batch, count + new, dim), and store the last `count`."""
        if self.vectors is None:
            self.vectors = new.new_zeros(new.shape[0], count, new.shape[2])
        both = torch.cat((self.vectors, new), dim=1)  # (batch, count + new, dim)
        self.vectors = both[:, -count:]
        return both

    def select(self, rows: Tensor) -> None:
        """Keep some rows of the batch; see `KeyValueCache.select`."""
        if self.vectors is not None:
            self.vectors = self.vectors[rows]


class LayerCache:
    """What one block stores of earlier tokens. It is changed in place. Use it under `torch.no_grad()`.

    pairs: the keys and then the values of self-attention, (batch, 2 · heads, capacity, head_dim). before_attention,
    before_feed_forward: the last inputs of the causal convolutions. memory: the keys and values of cross-attention,
    (batch, heads, sources, head_dim) each; None until its first call.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.length = capacity, 0
        self.before_attention, self.before_feed_forward = RecentCache(), RecentCache()
        self.pairs = torch.empty(0)
        self.memory: tuple[Tensor, Tensor] | None = None
        self.weights: tuple[Tensor, Tensor | None] | None = None

    def joined(self, projections: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
        """Return the weights of several projections as one matrix, and their biases as one vector or None.

        They are joined only at the first call. For a single token, one large product takes half of the time of three
        small ones.
        """
        if self.weights is None:
            biases: list[Tensor] = [each.bias for each in projections if each.bias is not None]
            weights: list[Tensor] = [each.weight for each in projections]
            self.weights = torch.cat(weights), torch.cat(biases) if biases else None
        return self.weights

    def append(self, new: Tensor) -> tuple[Tensor, Tensor]:
        """Append new tokens. Return the keys and the values of all tokens, (batch, heads, tokens, head_dim) each.

        new: the keys and then the values of the new tokens, (batch, 2 · heads, new, head_dim). With grouped heads,
        `heads` is the number of heads of the keys and values.
        """
        texts, both, count, head_dim = new.shape
        start, end = self.length, self.length + count
        assert end <= self.capacity, f"{end} tokens in a cache for {self.capacity}"
        if start == 0:
            shape = (texts, both, self.capacity, head_dim)
            if (self.pairs.shape, self.pairs.dtype, self.pairs.device) != (shape, new.dtype, new.device):
                self.pairs = new.new_empty(shape)
        assert texts == len(self.pairs), f"{texts} texts in a cache that holds {len(self.pairs)}"
        self.pairs.narrow(2, start, count).copy_(new)
        self.length = end
        keys, values = self.pairs.narrow(2, 0, end).chunk(2, dim=1)
        return keys, values

    def select(self, rows: Tensor, *, same_memory: bool = False) -> None:
        """Keep only the given rows of the batch; see `KeyValueCache.select`."""
        old, self.pairs = self.pairs, self.pairs.new_empty((len(rows), *self.pairs.shape[1:]))
        self.pairs[:, :, : self.length] = old[rows, :, : self.length]  # only the part in use is copied
        self.before_attention.select(rows)
        self.before_feed_forward.select(rows)
        if self.memory is not None and not same_memory:
            self.memory = self.memory[0][rows], self.memory[1][rows]

    def forget_oldest(self, rotary: RotaryPositions | None) -> None:
        """Remove the oldest token, and move the others by one position. rotary: by which the keys are rotated."""
        keys, values = self.pairs[:, :, 1 : self.length].chunk(2, dim=1)
        keys = keys if rotary is None else rotary.moved_back(keys)
        self.length -= 1
        self.pairs[:, :, : self.length] = torch.cat((keys, values), dim=1)

    def clear(self) -> None:
        """Delete the tokens. Their memory stays allocated."""
        self.length = 0
        self.before_attention, self.before_feed_forward = RecentCache(), RecentCache()


class KeyValueCache:
    """Keys and values of all attention layers of a decoder, for generation token by token.

    `Generator.new_cache` and `EncoderDecoder.new_cache` return an empty cache. Pass it to each call of the network,
    together with only the new tokens. It is changed in place. Use it under `torch.no_grad()`.

    Args:
        num_layers: number of blocks that a call of the network runs.
        capacity: the largest number of tokens, which is the context length of the network.

    Attributes:
        layers: the cache of each block.

    Example:
        >>> import torch
        >>> from firstlight.networks import Generator, GeneratorConfig
        >>> network = Generator(GeneratorConfig(dim=8, context_length=16), vocab_size=11).eval()
        >>> cache = network.new_cache()
        >>> with torch.no_grad():
        ...     _ = network(torch.tensor([[1, 2, 3]]), cache)
        ...     logits = network(torch.tensor([[4]]), cache)  # only the fourth token
        >>> cache.length, logits.shape
        (4, torch.Size([1, 1, 11]))
    """

    def __init__(self, num_layers: int, capacity: int) -> None:
        self.layers = [LayerCache(capacity) for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """The number of tokens in the cache."""
        return self.layers[0].length

    def clear(self) -> None:
        """Delete the target tokens. The keys and values of the source are kept."""
        for layer in self.layers:
            layer.clear()

    def select(self, rows: Tensor, *, same_memory: bool = False) -> None:
        """Keep only the given rows of the batch, in the given order, as beam search does.

        rows: (new batch,) int; a row may be repeated. same_memory: whether to leave the sources unchanged, because each
        row keeps its source.
        """
        for layer in self.layers:
            layer.select(rows, same_memory=same_memory)

    def positions(self, num_new: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the positions of the next tokens, (new,), and of all tokens including them, (length + new,)."""
        keys = torch.arange(self.length + num_new, device=device)
        return keys[self.length :], keys
