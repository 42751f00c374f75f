"""The encoder that fills in masked words (BERT, Devlin et al. 2018), and the batches that it reads."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from firstlight.data.batches import Rows
from firstlight.data.options import Truncation
from firstlight.data.tables import TokenTable, count_cuts, fitted
from firstlight.errors import UserError
from firstlight.masked.options import MaskedConfig
from firstlight.networks import masks
from firstlight.networks.block import HeadLayer, build_block
from firstlight.networks.layers import Dropout, ScaledEmbedding, ShortConvolution, build_embedding, build_norm
from firstlight.networks.parametrization import build_output_multiplier, initialize
from firstlight.networks.positions import build_positions, check_length
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import MASK, Tokenizer

LONGEST_QUOTE = 40  # characters of a text in a message


class MaskedLanguageModel(nn.Module):
    """A transformer encoder that scores all words of the vocabulary at each position (BERT, Devlin et al. 2018).

    A masked word has the id `mask_id`, which follows those of the vocabulary. Its vector is a separate parameter, so
    that the embedding, the convolution, the blocks and the last norm have the same names and shapes as in a
    `Classifier`. [MASK] itself is never predicted. BERT's additional layer before the output layer is an option
    (`config.head_layer`), because it increases the loss of networks of this size.

    Args:
        config: options of the network.
        vocab_size: number of token ids, without [MASK].

    Shape:
        - token_ids: (batch, length) int
        - padding_mask: (batch, length) bool
        - output: (batch, length, vocab_size) logits

    Attributes:
        mask_id: the id of [MASK], which is `vocab_size`.

    Example:
        >>> import torch
        >>> from firstlight.masked.network import MaskedLanguageModel
        >>> from firstlight.masked.options import MaskedConfig
        >>> network = MaskedLanguageModel(MaskedConfig(dim=32, num_heads=4), vocab_size=7000)
        >>> network.mask_id
        7000
        >>> token_ids = torch.tensor([[5, 7000, 2], [7, 3, 0]])
        >>> network(token_ids, padding_mask=token_ids != 0).shape
        torch.Size([2, 3, 7000])
    """

    def __init__(self, config: MaskedConfig, vocab_size: int) -> None:
        super().__init__()
        self.context_length, self.vocab_size, self.mask_id = config.context_length, vocab_size, vocab_size
        self.embedding = build_embedding(config, vocab_size)
        self.mask_vector = nn.Parameter(torch.empty(config.dim))
        nn.init.normal_(self.mask_vector, std=config.embedding_std)
        self.convolution = None if config.convolution is None else ShortConvolution(config.dim, config.convolution)
        self.positions = build_positions(config)
        self.embedding_norm = build_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(build_block(config) for _ in range(config.num_layers))
        self.final_norm = build_norm(config) if config.final_norm else nn.Identity()
        self.head_layer = HeadLayer(config) if config.head_layer else nn.Identity()
        self.output_multiplier = build_output_multiplier(config)
        self.head = nn.Linear(config.dim, vocab_size, bias=config.head_bias)
        initialize(self, config)
        if config.tie_embeddings:
            self.head.weight = self.embedding.weight

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None, places: Tensor | None = None) -> Tensor:
        """Return the logits of the word at each position.

        Args:
            token_ids: (batch, length) int, `mask_id` where a word is masked.
            padding_mask: (batch, length) bool, True where a token is real; None: all tokens are real. Padding does not
                change the logits of a real token.
            places: (places,) int, the positions to score, as row · length + column; None: all. The output layer does
                most of the arithmetic of a small network, and training needs only a few positions.

        Returns:
            (batch, length, vocab_size) float, or (places, vocab_size) if `places` is given.

        Raises:
            ValueError: if length exceeds the context length.
        """
        check_length(token_ids.shape[1], self.context_length)
        padding_mask = masks.real(token_ids, padding_mask)
        mask = masks.padding(padding_mask)  # (batch, 1, 1, length)
        hidden = self._embed(token_ids)  # (batch, length, dim)
        if self.convolution is not None:
            hidden = self.convolution(hidden, padding_mask)
        hidden = self.dropout(self.embedding_norm(self.positions(hidden)))
        for block in self.blocks:
            hidden = block(hidden, mask=mask)
        if places is not None:
            hidden = hidden.flatten(0, 1)[places]  # (places, dim)
        return self.head(self.output_multiplier(self.head_layer(self.final_norm(hidden))))

    def _embed(self, token_ids: Tensor) -> Tensor:
        """Return the embeddings of (batch, length) ids: (batch, length, dim)."""
        is_masked = token_ids == self.mask_id
        vectors = self.embedding(token_ids.masked_fill(is_masked, 0))
        mask_vector: Tensor = self.mask_vector
        if isinstance(self.embedding, ScaledEmbedding):
            mask_vector = mask_vector * self.embedding.scale
        return torch.where(is_masked[..., None], mask_vector, vectors)


class MaskedBatch(NamedTuple):
    """A batch of texts with masked words for a masked language model.

    Attributes:
        token_ids: Token ids, (batch, length), int. Shorter texts are padded with 0. The id of [MASK] is the size of the
            vocabulary.
        padding_mask: (batch, length), bool. True where a token is real.
        places: The places of the tokens to predict, (targets,), int, counted through all rows: row · length + column.
            At some of these places, token_ids has a random token or the true token instead of [MASK].
        targets: The true tokens at these places, (targets,), int.
        rows: The row number of each text in its data, (batch,), int.
        num_tokens: The number of real tokens in the batch.
        inputs: The inputs of a network: token_ids, padding_mask, places.
        num_targets: The number of targets.

    Example:
        >>> import torch
        >>> from firstlight.masked.network import MaskedBatch
        >>> token_ids = torch.tensor([[5, 9, 7], [9, 0, 0]])  # a vocabulary of 9 words
        >>> places, targets = torch.tensor([1, 3]), torch.tensor([2, 4])
        >>> batch = MaskedBatch(token_ids, token_ids != 0, places, targets, torch.arange(2), num_tokens=4)
        >>> batch.token_ids.flatten()[batch.places], batch.num_targets
        (tensor([9, 9]), 2)
    """

    token_ids: Tensor
    padding_mask: Tensor
    places: Tensor
    targets: Tensor
    rows: Tensor
    num_tokens: int

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.token_ids, self.padding_mask, self.places

    @property
    def num_targets(self) -> int:
        return len(self.targets)


def batch_to_fill_in(
    tokenizer: Tokenizer, texts: Sequence[str], context_length: int, truncation: Truncation
) -> MaskedBatch:
    """Return a batch of texts with [MASK], cut as the training texts. Its places are those of [MASK].

    Its targets are all 0. Logs a warning if a text is cut. Raises UserError for a text without [MASK], and if a [MASK]
    is cut off.
    """
    ids = encode_masked(tokenizer, texts)
    count_cuts(ids.lengths, context_length)
    read = fitted(ids, tokenizer, context_length, truncation)
    table = TokenTable(read, np.zeros(len(ids), np.int64), context_length, truncation)
    batch = table(Rows(ids.lengths, context_length)[np.arange(len(ids))])
    is_mask = batch.token_ids == tokenizer.vocab_size
    for row, kept in enumerate(is_mask.sum(dim=1).tolist()):
        if kept < (ids[row] == tokenizer.vocab_size).sum():
            problem = f"text {row + 1} has {len(ids[row])} tokens, but only context_length={context_length} of them"
            raise UserError(f"{problem} are read, and a {MASK} is cut off; shorten the text")
    places = is_mask.flatten().nonzero().squeeze(1)
    token_ids, targets = batch.token_ids.long(), torch.zeros_like(places)
    return MaskedBatch(token_ids, batch.padding_mask, places, targets, batch.rows, batch.num_tokens)


def encode_masked(tokenizer: Tokenizer, texts: Iterable[str]) -> RaggedIds:
    """Return the ids of texts that contain [MASK], whose id is the size of the vocabulary.

    Raises UserError for a text without [MASK].

    Example:
        >>> from firstlight.text import train_word_tokenizer
        >>> from firstlight.masked.network import encode_masked
        >>> tokenizer = train_word_tokenizer(["a good film", "Good acting, bad film!"])
        >>> tokenizer.words
        ['[PAD]', '[UNK]', 'film', 'good', 'acting', 'bad']
        >>> encode_masked(tokenizer, ["a good [MASK]!"]).ids
        array([3, 6], dtype=int32)
    """
    return RaggedIds.from_rows(_ids(tokenizer, text) for text in texts)


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the ids of the masks and of the text between them."""
    first, *others = text.split(MASK)
    if not others:
        quoted = text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"
        problem = f"the text {quoted!r} does not contain {MASK}"
        raise UserError(f"{problem}; write {MASK} for each word to fill in, as in 'It {MASK} after a week'")
    words = [*tokenizer.marks[:1], *tokenizer.split(first)]
    ids = tokenizer.encode_words(words).ids.tolist()
    for part in others:
        ids += [tokenizer.vocab_size, *tokenizer.encode_words(tokenizer.split(part)).ids.tolist()]
    return ids + tokenizer.encode_words(tokenizer.marks[1:]).ids.tolist()
