"""Keys and values of the tokens that a network has read already, so that the next one need not read them again."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


class RecentCache:
    """The last few vectors that a causal convolution has seen; before the first token there are zeros."""

    def __init__(self) -> None:
        self.vectors: Tensor | None = None  # (batch, count, dim)

    def extend(self, new: Tensor, count: int) -> Tensor:
        """The last `count` vectors, then the new ones, (batch, new, dim); the end of both is kept for the next call."""
        if self.vectors is None:
            self.vectors = new.new_zeros(new.shape[0], count, new.shape[2])
        both = torch.cat((self.vectors, new), dim=1)  # (batch, count + new, dim)
        self.vectors = both[:, -count:]
        return both

    def clear(self) -> None:
        """Forget the vectors."""
        self.vectors = None

    def select(self, rows: Tensor) -> None:
        """As LayerCache.select."""
        if self.vectors is not None:
            self.vectors = self.vectors[rows]


class LayerCache:
    """The keys and values of one attention; for `torch.no_grad()`, since it writes in place.

    And, where there are convolutions, what stood last before the attention and before the feed-forward layer.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity, self.length = capacity, 0
        self.before_attention, self.before_feed_forward = RecentCache(), RecentCache()
        self.keys, self.values = torch.empty(0), torch.empty(0)
        self.weights: tuple[Tensor, Tensor | None] | None = None

    def joined(self, projections: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
        """The weights and biases of the projections, one below the other; as they were when the first token was read.

        One large product takes half of the time of three small ones, where there is but one token.
        """
        if self.weights is None:
            biases: list[Tensor] = [each.bias for each in projections if each.bias is not None]
            weights: list[Tensor] = [each.weight for each in projections]
            self.weights = torch.cat(weights), torch.cat(biases) if biases else None
        return self.weights

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens, each (batch, heads, new, head_dim); returns all so far."""
        end = self.length + key.shape[2]
        assert end <= self.capacity, f"{end} tokens in a cache for {self.capacity}"
        shape = (*key.shape[:2], self.capacity, key.shape[3])
        if self.length == 0 and (self.keys.shape, self.keys.dtype, self.keys.device) != (shape, key.dtype, key.device):
            self.keys, self.values = key.new_empty(shape), value.new_empty(shape)
        assert self.keys.shape == shape, f"{key.shape[0]} texts in a cache that holds {self.keys.shape[0]}"
        self.keys.narrow(2, self.length, key.shape[2]).copy_(key)
        self.values.narrow(2, self.length, key.shape[2]).copy_(value)
        self.length = end
        return self.keys.narrow(2, 0, end), self.values.narrow(2, 0, end)

    def select(self, rows: Tensor) -> None:
        """Go on with some of the texts, in another order, or with copies of them. rows: (new batch,) int."""
        self.keys, self.values = self._chosen(self.keys, rows), self._chosen(self.values, rows)
        self.before_attention.select(rows)
        self.before_feed_forward.select(rows)

    def clear(self) -> None:
        """Forget the tokens; the room for them stays."""
        self.length = 0
        self.before_attention.clear()
        self.before_feed_forward.clear()

    def _chosen(self, old: Tensor, rows: Tensor) -> Tensor:
        """The part in use of some rows, with the room behind it."""
        new = old.new_empty((len(rows), *old.shape[1:]))
        new[:, :, : self.length] = old[rows, :, : self.length]
        return new


class MemoryCache:
    """The keys and values of a text that does not grow, such as the source of a translation: read once."""

    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.values: Tensor | None = None

    def get(self, read: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """What was read the first time, each (batch, heads, keys, head_dim)."""
        if self.keys is None or self.values is None:
            self.keys, self.values = read()
        return self.keys, self.values

    def select(self, rows: Tensor) -> None:
        """As LayerCache.select."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]


class KeyValueCache:
    """One LayerCache for each block, filled in step, and one MemoryCache for its cross-attention, if it has one."""

    def __init__(self, num_layers: int, capacity: int) -> None:
        """num_layers: how many blocks are run; capacity: the most tokens, the context length of the network."""
        self.layers = [LayerCache(capacity) for _ in range(num_layers)]
        self.memories = [MemoryCache() for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """The tokens read so far."""
        return self.layers[0].length

    def clear(self) -> None:
        """Forget the tokens, but not the source that a decoder reads."""
        for layer in self.layers:
            layer.clear()

    def select(self, rows: Tensor, *, same_memory: bool = False) -> None:
        """As LayerCache.select; same_memory: the rows are copies of texts with the same source as before."""
        for layer in self.layers:
            layer.select(rows)
        if not same_memory:
            for memory in self.memories:
                memory.select(rows)

    def positions(self, num_new: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Where the new tokens stand, and all of them after they are read: (new,), (length + new,)."""
        keys = torch.arange(self.length + num_new, device=device)
        return keys[self.length :], keys
