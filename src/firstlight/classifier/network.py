"""The encoder that classifies texts (post 1, reviews), and two baselines without attention and without word order."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.classifier.options import ClassifierConfig
from firstlight.networks import masks
from firstlight.networks.block import build_block
from firstlight.networks.layers import (
    Dropout,
    ShortConvolution,
    TokenDropout,
    build_embedding,
    build_norm,
    normalize,
)
from firstlight.networks.parametrization import build_output_multiplier, initialize
from firstlight.networks.pooling import FeatureHead, build_head
from firstlight.networks.positions import build_positions, check_length

DELIMITER_ID = 3  # the token between two texts, [DELIMITER] of `firstlight.text.Tokenizer`
FEATURE_STD = 0.03  # of the projection's initial weights; the features start out small compared with the word vectors


class Classifier(nn.Module):
    """A transformer encoder that returns one logit for each class (post 1: review classification, 2022).

    It consists of an embedding, positions, `config.num_layers` blocks and a pooling head. A short convolution over the
    embeddings is optional, and so are further features of each token, which are projected and added to the embeddings.

    Args:
        config: options of the network.
        vocab_size: number of token ids.
        num_outputs: number of logits: 1 for a binary classifier, else the number of classes.
        unknown_id: the token id that replaces the tokens that `config.token_dropout` drops.
        num_features: number of features of each token besides its id, such as those of
            `ReviewData(target_encoding=True)`.
        both_orders: whether each text is a pair, which is read in both orders, and the two representations are added
            (Radford et al. 2018, for similarity).
        choices: whether the network scores the answers of multiple choice: `num_outputs` is 1, and `token_ids` has one
            more dimension, as in (batch, choices, length), where each answer is read with its context. The output is
            (batch, choices) (Radford et al. 2018).

    Shape:
        - token_ids: (batch, length) int
        - padding_mask: (batch, length) bool
        - features: (batch, length, num_features) float, if `num_features` is not 0
        - output: (batch, num_outputs) logits

    Example:
        >>> import torch
        >>> from firstlight.networks import Classifier, ClassifierConfig, num_parameters
        >>> config = ClassifierConfig(dim=32, num_heads=4, context_length=50)
        >>> network = Classifier(config, vocab_size=7455, num_outputs=5)
        >>> num_parameters(network)
        251456
        >>> token_ids = torch.tensor([[5, 8, 2], [7, 3, 0]])
        >>> network(token_ids, padding_mask=token_ids != 0).shape
        torch.Size([2, 5])
    """

    def __init__(
        self,
        config: ClassifierConfig,
        vocab_size: int,
        num_outputs: int,
        unknown_id: int = 1,
        num_features: int = 0,
        *,
        both_orders: bool = False,
        choices: bool = False,
    ) -> None:
        super().__init__()
        self.both_orders, self.choices = both_orders, choices
        self.context_length = config.context_length
        self.num_features = num_features
        self.is_causal = config.causal
        self.predicts_text = config.causal and not num_features  # features are counted on words and their neighbors
        self.unknown_id = unknown_id
        self.token_dropout = TokenDropout(config.token_dropout, unknown_id)
        num_embedded = min(vocab_size, config.embedded_words or vocab_size)
        self.embedding = build_embedding(config, num_embedded, config.embedding_dim)
        width = config.embedding_dim
        self.projection = nn.Identity() if width is None else nn.Linear(width, config.dim, bias=False)
        self.convolution = None if config.convolution is None else ShortConvolution(config.dim, config.convolution)
        self.positions = build_positions(config)
        self.embedding_norm = build_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)
        self.blocks = nn.ModuleList(build_block(config) for _ in range(config.num_layers))
        self.final_norm = build_norm(config) if config.final_norm else nn.Identity()
        self.output_multiplier = build_output_multiplier(config)
        self.head = build_head(config.pooling, config.dim, config.context_length, num_outputs)
        initialize(self, config)
        if num_features:
            self.feature_projection = nn.Linear(num_features, config.dim, bias=False)
            nn.init.normal_(self.feature_projection.weight, std=FEATURE_STD)
            self.feature_head = FeatureHead(num_features, num_outputs)

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None, features: Tensor | None = None) -> Tensor:
        """Return the logits of each text.

        Args:
            token_ids: (batch, length) int.
            padding_mask: (batch, length) bool, True where a token is real; None: all tokens are real. Padding does not
                change the logits.
            features: (batch, length, num_features) float, the features of each token; None if `num_features` is 0.

        Returns:
            (batch, num_outputs) float.

        Raises:
            ValueError: if length exceeds the context length, or if the number of features is not `num_features`.
        """
        return self._read(token_ids, padding_mask, features)[0]

    def with_text_loss(self, token_ids: Tensor, padding_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of each text, (batch, num_outputs), and the mean loss of predicting its next tokens.

        The loss is the language modeling of Radford et al. (2018, section 3.2), for a network that `predicts_text`.
        The output layer is the embedding. A pair that is read in both orders counts in its own order.

        Args:
            token_ids: as in `forward`.
            padding_mask: as in `forward`.
        """
        logits, hidden = self._read(token_ids, padding_mask)  # hidden: (texts, length, dim), all answers are texts
        texts, is_target = self._known(token_ids.flatten(0, -2)), padding_mask.flatten(0, -2)[:, 1:]
        words = self.projection(self.embedding.weight)  # (words, dim)
        scores = F.linear(hidden[: len(texts), :-1][is_target], words)  # (targets, words)
        losses = F.cross_entropy(scores, texts[:, 1:][is_target].long(), reduction="sum")
        return logits, losses / is_target.sum().clamp(min=1)

    def _read(
        self, token_ids: Tensor, padding_mask: Tensor | None, features: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the logits, (batch, num_outputs), and the vectors of all tokens before the head."""
        if not self.choices:
            return self._read_texts(token_ids, padding_mask, features)
        if token_ids.ndim != 3:
            raise ValueError(f"the token ids must have the shape (batch, choices, length), not {token_ids.shape}")
        masks_of_texts = None if padding_mask is None else padding_mask.flatten(0, 1)
        logits, hidden = self._read_texts(token_ids.flatten(0, 1), masks_of_texts, None)
        return logits.view(token_ids.shape[:2]), hidden

    def _read_texts(
        self, token_ids: Tensor, padding_mask: Tensor | None, features: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        length = token_ids.shape[1]
        check_length(length, self.context_length)
        num_given = 0 if features is None else features.shape[-1]
        if num_given != self.num_features:
            problem = f"the network requires {self.num_features} features of each token, but received {num_given}"
            raise ValueError(f"{problem}; pass the batch's features, as in network(*batch.inputs)")
        padding_mask = masks.real(token_ids, padding_mask)
        mask = masks.padding(padding_mask)  # (batch, 1, 1, length)
        if self.is_causal:
            places = torch.arange(length, device=token_ids.device)
            mask = mask & masks.causal(places, places)  # (batch, 1, length, length)
        hidden = self._embed(self.token_dropout(token_ids))  # (batch, length, dim)
        if features is not None:
            features = features.to(self.feature_projection.weight.dtype)
            hidden = hidden + self.feature_projection(features)
        if self.both_orders:
            places = places_of_other_order(token_ids, padding_mask)
            others = hidden.gather(1, places[..., None].expand_as(hidden))
            hidden, padding_mask, mask = torch.cat((hidden, others)), padding_mask.repeat(2, 1), mask.repeat(2, 1, 1, 1)
        if self.convolution is not None:
            hidden = self.convolution(hidden, padding_mask)
        hidden = self.dropout(normalize(self.embedding_norm, self.positions(hidden), padding_mask))
        for block in self.blocks:
            hidden = block(hidden, mask)
        hidden = self.output_multiplier(normalize(self.final_norm, hidden, padding_mask))
        logits = self.head(hidden, padding_mask)  # (batch, outputs)
        if self.both_orders:
            # The head is linear, so the sum of its outputs is its output for the sum of the representations.
            logits = logits.unflatten(0, (2, -1)).sum(dim=0)
        if features is not None:
            logits = logits + self.feature_head(features, padding_mask)
        return logits, hidden

    def _embed(self, token_ids: Tensor) -> Tensor:
        """Return the embeddings, (batch, length, dim). A word without a vector has the vector of the unknown word."""
        return self.projection(self.embedding(self._known(token_ids)))

    def _known(self, token_ids: Tensor) -> Tensor:
        """Return the token ids, with the unknown word in place of words without a vector."""
        return token_ids.masked_fill(token_ids >= self.embedding.num_embeddings, self.unknown_id)


def places_of_other_order(token_ids: Tensor, padding_mask: Tensor) -> Tensor:
    """Return the place of each token of the pairs with their texts exchanged: (batch, length) int.

    token_ids: (batch, length), each row a mark, the first text, the delimiter, the second text, and a mark.
    padding_mask: (batch, length). The marks and the padding keep their places, except for the delimiter.
    """
    columns = torch.arange(token_ids.shape[1], device=token_ids.device)  # (length,)
    delimiters = (token_ids == DELIMITER_ID).int().argmax(dim=1, keepdim=True)  # (batch, 1)
    lengths = padding_mask.sum(dim=1, keepdim=True)  # (batch, 1)
    new_delimiters = lengths - delimiters - 1  # the second text has as many tokens, with the mark before it
    places = torch.where(columns < new_delimiters, columns + delimiters, columns - new_delimiters)
    places = torch.where(columns == new_delimiters, delimiters, places)
    is_fixed = (columns == 0) | (columns >= lengths - 1)
    return torch.where(is_fixed, columns, places)


class BagOfWords(nn.Module):
    """A classifier that averages the vectors of the words and applies a linear layer.

    It is a baseline without attention that ignores the order of the words.

    Args:
        config: options; only `dim`, `context_length`, `dropout`, `token_dropout` and `embedding_std` are used.
        vocab_size: number of token ids.
        num_outputs: number of logits: 1 for a binary classifier, else the number of classes.
        unknown_id: the token id that replaces the tokens that `config.token_dropout` drops.

    Shape:
        - token_ids: (batch, length) int
        - padding_mask: (batch, length) bool
        - output: (batch, num_outputs) logits

    Example:
        >>> import torch
        >>> from firstlight.networks import BagOfWords, ClassifierConfig
        >>> network = BagOfWords(ClassifierConfig(dim=8), vocab_size=100, num_outputs=5).eval()
        >>> there, back = torch.tensor([[4, 7, 9]]), torch.tensor([[9, 7, 4]])
        >>> torch.allclose(network(there), network(back))
        True
    """

    def __init__(self, config: ClassifierConfig, vocab_size: int, num_outputs: int, unknown_id: int = 1) -> None:
        super().__init__()
        self.context_length = config.context_length
        self.token_dropout = TokenDropout(config.token_dropout, unknown_id)
        self.embedding = nn.Embedding(vocab_size, config.dim)
        nn.init.normal_(self.embedding.weight, std=config.embedding_std)
        self.dropout = Dropout(config.dropout)
        self.head = nn.Linear(config.dim, num_outputs)

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Return the logits of each text.

        Args:
            token_ids: (batch, length) int.
            padding_mask: (batch, length) bool, True where a token is real; None: all tokens are real.

        Returns:
            (batch, num_outputs) float.
        """
        mask = masks.real(token_ids, padding_mask)[:, :, None]
        hidden = self.embedding(self.token_dropout(token_ids)) * mask  # (batch, length, dim)
        mean = hidden.sum(dim=1) / mask.sum(dim=1).clamp(min=1)  # (batch, dim)
        return self.head(self.dropout(mean))


class LogisticRegression(nn.Module):
    """Multinomial logistic regression on word counts: one weight for each word and class (post 5, translation).

    All weights are zero at first. The shapes are those of `BagOfWords`.

    Args:
        config: options; only `context_length` and `token_dropout` are used.
        vocab_size: number of token ids.
        num_outputs: number of logits: 1 for a binary classifier, else the number of classes.
        unknown_id: the token id that replaces the tokens that `config.token_dropout` drops.

    Example:
        >>> import torch
        >>> from firstlight.networks import ClassifierConfig, LogisticRegression, num_parameters
        >>> network = LogisticRegression(ClassifierConfig(), vocab_size=100, num_outputs=5)
        >>> network(torch.tensor([[4, 7, 9]])).shape
        torch.Size([1, 5])
        >>> num_parameters(network)
        505
    """

    def __init__(self, config: ClassifierConfig, vocab_size: int, num_outputs: int, unknown_id: int = 1) -> None:
        super().__init__()
        self.context_length = config.context_length
        self.token_dropout = TokenDropout(config.token_dropout, unknown_id)
        self.weights = nn.Embedding(vocab_size, num_outputs)
        nn.init.zeros_(self.weights.weight)
        self.bias = nn.Parameter(torch.zeros(num_outputs))

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Return the logits of each text: the sum of the weights of its words plus a bias.

        The arguments and the shape are those of `BagOfWords.forward`.
        """
        mask = masks.real(token_ids, padding_mask)[:, :, None]
        weights = self.weights(self.token_dropout(token_ids)) * mask  # (batch, length, outputs)
        return weights.sum(dim=1) + self.bias
