"""Caches of keys and values, with which a decoder does not recompute those of earlier tokens for each new token."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class RecentCache:
    """The last few inputs of a causal convolution. Before the first token they are zero."""

    def __init__(self) -> None:
        self.vectors: Tensor | None = None  # (batch, count, dim)

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

    keys, values: those of self-attention. before_attention, before_feed_forward: the last inputs of the causal
    convolutions. memory: the keys and values of cross-attention, (batch, heads, sources, head_dim) each; None until its
    first call.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.length = capacity, 0
        self.before_attention, self.before_feed_forward = RecentCache(), RecentCache()
        self.keys, self.values = torch.empty(0), torch.empty(0)
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

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens, each (batch, heads, new, head_dim). Return those of all tokens.

        With grouped heads, `heads` is the number of heads of the keys and values.
        """
        count = key.shape[2]
        start, end = self.length, self.length + count
        assert end <= self.capacity, f"{end} tokens in a cache for {self.capacity}"
        if start == 0:
            self._allocate(key, value)
        assert len(key) == len(self.keys), f"{len(key)} texts in a cache that holds {len(self.keys)}"
        self.keys.narrow(2, start, count).copy_(key)
        self.values.narrow(2, start, count).copy_(value)
        self.length = end
        return self.keys.narrow(2, 0, end), self.values.narrow(2, 0, end)

    def _allocate(self, key: Tensor, value: Tensor) -> None:
        """Make buffers for keys and values of this kind, unless they exist."""
        shape = (*key.shape[:2], self.capacity, key.shape[3])
        if (self.keys.shape, self.keys.dtype, self.keys.device) != (shape, key.dtype, key.device):
            self.keys, self.values = key.new_empty(shape), value.new_empty(shape)

    def select(self, rows: Tensor, *, same_memory: bool = False) -> None:
        """Keep only the given rows of the batch; see `KeyValueCache.select`."""
        self.keys, self.values = self._chosen(self.keys, rows), self._chosen(self.values, rows)
        self.before_attention.select(rows)
        self.before_feed_forward.select(rows)
        if self.memory is not None and not same_memory:
            self.memory = self.memory[0][rows], self.memory[1][rows]

    def clear(self) -> None:
        """Delete the tokens. Their memory stays allocated."""
        self.length = 0
        self.before_attention, self.before_feed_forward = RecentCache(), RecentCache()

    def _chosen(self, old: Tensor, rows: Tensor) -> Tensor:
        """Return some rows of a buffer. Only the part in use is copied."""
        new = old.new_empty((len(rows), *old.shape[1:]))
        new[:, :, : self.length] = old[rows, :, : self.length]
        return new


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
