"""The decoder that generates text (post 2, plays; GPT, Radford et al. 2018)."""

from torch import Tensor, nn

from firstlight.generator.options import GeneratorConfig
from firstlight.networks import masks
from firstlight.networks.block import build_block
from firstlight.networks.cache import KeyValueCache
from firstlight.networks.layers import Dropout, build_embedding, build_norm
from firstlight.networks.parametrization import build_output_multiplier, initialize
from firstlight.networks.positions import NoPositions, build_positions, check_length


class Generator(nn.Module):
    """A causal transformer that scores the next token at every position (post 2, plays; GPT, Radford et al. 2018).

    If `config.num_loops` is above 1, the blocks are applied several times with the same weights (Universal Transformer,
    Dehghani et al. 2018; ALBERT, Lan et al. 2019).

    Args:
        config: options of the network.
        vocab_size: number of token ids.

    Shape:
        - token_ids: (batch, length) int
        - output: (batch, length, vocab_size) logits

    Example:
        >>> import torch
        >>> from firstlight.networks import Generator, GeneratorConfig, num_parameters
        >>> config = GeneratorConfig(dim=32, num_heads=4, num_layers=3, context_length=64, positions="learned")
        >>> network = Generator(config, vocab_size=71)
        >>> num_parameters(network)
        44487
        >>> network(torch.randint(71, (2, 5))).shape
        torch.Size([2, 5, 71])
    """

    def __init__(self, config: GeneratorConfig, vocab_size: int) -> None:
        super().__init__()
        self.context_length, self.vocab_size = config.context_length, vocab_size
        self.is_causal = config.causal
        self.embedding = build_embedding(config, vocab_size)
        self.positions = build_positions(config)
        self.moves_positions = isinstance(self.positions, NoPositions)  # those of attention depend on distances only
        self.embedding_norm = build_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.num_loops = config.num_loops
        width = config.causal_convolution
        self.blocks = nn.ModuleList(build_block(config, convolution=width) for _ in range(config.num_layers))
        self.final_norm = build_norm(config) if config.final_norm else nn.Identity()
        self.output_multiplier = build_output_multiplier(config)
        self.head = nn.Linear(config.dim, vocab_size, bias=config.head_bias)
        initialize(self, config, config.num_loops)
        if config.tie_embeddings:
            self.head.weight = self.embedding.weight

    def forward(self, token_ids: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Return the logits of the next token at every position.

        Args:
            token_ids: (batch, length) int.
            cache: keys and values of earlier tokens, to which those of `token_ids` are appended; see `new_cache`.

        Returns:
            (batch, length, vocab_size) float.

        Raises:
            ValueError: if the cached and the new tokens together exceed the context length.
        """
        start = 0 if cache is None else cache.length
        length = token_ids.shape[1]
        check_length(start + length, self.context_length)
        mask, is_causal = None, self.is_causal
        if cache is not None and start and is_causal:
            is_causal = False  # torch's causal mask requires equally many queries and keys
            mask = masks.causal(*cache.positions(length, token_ids.device)) if length > 1 else None
        placed = self.positions(self.embedding(token_ids), start)  # (batch, length, dim)
        hidden = self.dropout(self.embedding_norm(placed))
        for i, block in enumerate([*self.blocks] * self.num_loops):
            hidden = block(hidden, mask, is_causal=is_causal, cache=None if cache is None else cache.layers[i])
        return self.head(self.output_multiplier(self.final_norm(hidden)))  # (batch, length, vocab_size)

    def new_cache(self) -> KeyValueCache:
        """Return an empty `KeyValueCache` for up to `context_length` tokens.

        Raises:
            ValueError: if the network is not causal, because later tokens change the keys and values of earlier ones.
        """
        if not self.is_causal:
            raise ValueError("model.causal=false: a network that is not causal has no cache; call it without one")
        return KeyValueCache(len(self.blocks) * self.num_loops, self.context_length)

    def forget_oldest(self, cache: KeyValueCache) -> None:
        """Remove the oldest token from a cache, and move the others by one position towards the beginning.

        Positions that are added to the embeddings cannot be moved; see `moves_positions`.
        """
        for i, block in enumerate([*self.blocks] * self.num_loops):
            cache.layers[i].forget_oldest(block.self_attention.rotary)
