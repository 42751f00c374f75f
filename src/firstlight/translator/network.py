"""The encoder-decoder that translates (Vaswani et al. 2017; post 5, translation)."""

import torch
from torch import Tensor, nn

from firstlight.networks import masks
from firstlight.networks.block import build_block
from firstlight.networks.cache import KeyValueCache
from firstlight.networks.layers import Dropout, build_embedding, build_norm, normalize
from firstlight.networks.parametrization import build_output_multiplier, initialize
from firstlight.networks.positions import build_positions, check_length
from firstlight.translator.options import EncoderDecoderConfig


class EncoderDecoder(nn.Module):
    """A transformer that reads one text and scores the tokens of another (Vaswani et al. 2017; post 5, translation).

    The blocks of the encoder attend to the complete source. The blocks of the decoder attend to earlier target tokens
    and, by cross-attention, to the output of the encoder.

    Args:
        config: options of the network.
        source_vocab_size: number of token ids of the source.
        vocab_size: number of token ids of the target.

    Shape:
        - source_ids: (batch, sources) int
        - token_ids: (batch, targets) int
        - output: (batch, targets, vocab_size) logits

    Raises:
        ValueError: if `config.share_embeddings` is set and the two vocabularies have different sizes.

    Example:
        >>> import torch
        >>> from firstlight.networks import EncoderDecoder, EncoderDecoderConfig
        >>> network = EncoderDecoder(EncoderDecoderConfig(dim=8, num_heads=2), source_vocab_size=11, vocab_size=13)
        >>> source_ids, token_ids = torch.randint(11, (2, 5)), torch.randint(13, (2, 7))
        >>> network(source_ids, token_ids).shape
        torch.Size([2, 7, 13])
    """

    def __init__(self, config: EncoderDecoderConfig, source_vocab_size: int, vocab_size: int) -> None:
        super().__init__()
        if config.share_embeddings and source_vocab_size != vocab_size:
            problem = f"requires one vocabulary, but the two have {source_vocab_size} and {vocab_size} entries"
            raise ValueError(f"model.share_embeddings=true {problem}; set data.shared_vocabulary=true")
        self.context_length, self.vocab_size = config.context_length, vocab_size
        self.embedding = build_embedding(config, vocab_size)
        self.source_embedding = self.embedding
        if not config.share_embeddings:
            self.source_embedding = build_embedding(config, source_vocab_size)
        self.source_positions, self.positions = build_positions(config), build_positions(config)
        self.source_norm, self.embedding_norm = (
            build_norm(side) if config.embedding_norm else nn.Identity() for side in (config, config.of_decoder)
        )
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(build_block(config) for _ in range(config.num_layers))
        self.encoder_norm = build_norm(config) if config.final_norm else nn.Identity()
        layers = range(config.resolved_num_decoder_layers)
        self.decoder = nn.ModuleList(build_block(config.of_decoder, cross_attention=True) for _ in layers)
        self.decoder_norm = build_norm(config.of_decoder) if config.final_norm else nn.Identity()
        self.output_multiplier = build_output_multiplier(config)
        self.head = nn.Linear(config.dim, vocab_size, bias=config.head_bias)
        initialize(self, config)
        if config.tie_embeddings:
            self.head.weight = self.embedding.weight

    def forward(
        self,
        source_ids: Tensor,
        token_ids: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the logits of the next token at every position, given the true earlier tokens (teacher forcing).

        Args:
            source_ids: (batch, sources) int.
            token_ids: (batch, targets) int; the first token is [BEGIN].
            source_mask: (batch, sources) bool, True where a token is real; None: all tokens are real.
            target_mask: (batch, targets) bool, the same for the target.

        Returns:
            (batch, targets, vocab_size) float.

        Raises:
            ValueError: if a text is longer than the context length.
        """
        return self.decode(token_ids, self.encode(source_ids, source_mask), source_mask, target_mask)

    def encode(self, source_ids: Tensor, source_mask: Tensor | None = None) -> Tensor:
        """Return the memory of the sources, which `decode` attends to.

        Args:
            source_ids: (batch, sources) int.
            source_mask: (batch, sources) bool, True where a token is real; None: all tokens are real.

        Returns:
            (batch, sources, dim) float.

        Raises:
            ValueError: if a source is longer than the context length.
        """
        check_length(source_ids.shape[1], self.context_length, "source")
        mask = None if source_mask is None else masks.padding(source_mask)  # (batch, 1, 1, sources)
        placed = self.source_positions(self.source_embedding(source_ids))  # (batch, sources, dim)
        hidden = self.dropout(normalize(self.source_norm, placed, source_mask))
        for block in self.encoder:
            hidden = block(hidden, mask)
        return normalize(self.encoder_norm, hidden, source_mask)

    def decode(
        self,
        token_ids: Tensor,
        memory: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Return the logits of the next token at every position of the target.

        Args:
            token_ids: (batch, new) int, the tokens that follow those in the cache.
            memory: (batch, sources, dim) float, the output of `encode`.
            source_mask: (batch, sources) bool, True where a token is real; None: all tokens are real.
            target_mask: (batch, new) bool, the same for the target; not together with a cache.
            cache: keys and values of earlier target tokens and of `memory`; see `new_cache`.

        Returns:
            (batch, new, vocab_size) float.

        Raises:
            ValueError: if the target is longer than the context length.
        """
        start = 0 if cache is None else cache.length
        length = token_ids.shape[1]
        check_length(start + length, self.context_length, "target")
        mask, is_causal = self._look_ahead_mask(token_ids, target_mask, cache)
        memory_mask = None if source_mask is None else masks.padding(source_mask)  # (batch, 1, 1, sources)
        hidden = self.dropout(self.embedding_norm(self.positions(self.embedding(token_ids), start)))
        for i, block in enumerate(self.decoder):
            layer = None if cache is None else cache.layers[i]
            hidden = block(hidden, mask, is_causal=is_causal, cache=layer, memory=memory, memory_mask=memory_mask)
        return self.head(self.output_multiplier(self.decoder_norm(hidden)))  # (batch, new, vocab_size)

    def new_cache(self) -> KeyValueCache:
        """Return an empty `KeyValueCache` for a target of up to `context_length` tokens and for its source."""
        return KeyValueCache(len(self.decoder), self.context_length)

    def _look_ahead_mask(
        self, token_ids: Tensor, target_mask: Tensor | None, cache: KeyValueCache | None
    ) -> tuple[Tensor | None, bool]:
        """Return the mask of the decoder's self-attention or None, and whether self-attention is causal instead."""
        length = token_ids.shape[1]
        if target_mask is not None:
            assert cache is None, "a target with a cache must have no padding"
            places = torch.arange(length, device=token_ids.device)
            return masks.causal(places, places) & masks.padding(target_mask), False
        if cache is None or cache.length == 0:
            return None, True
        if length == 1:
            return None, False  # the last token may attend to all tokens
        return masks.causal(*cache.positions(length, token_ids.device)), False
