"""Features of tokens: the mean class of the training texts that contain a word or a pair of words."""

from collections.abc import Callable, Iterable, Mapping
from typing import Self

import torch
from torch import Tensor, nn

from firstlight.text.tokenizers import PAD_ID, UNKNOWN_ID

NO_PAIR = torch.iinfo(torch.int64).max  # fills unused entries of the table
AT_LEAST = 2  # texts that a pair must occur in: without its only text, a pair has no mean
PAIRS_AT_ONCE = 2**21  # pairs of texts that are kept before they are counted


class NgramTargetEncoding(nn.Module):
    """Features of each token: the mean class of the training texts with the word, and of those with the pair.

    A pair is a word and the word before it. The mean of few texts is shrunk towards the middle, sum / (texts +
    shrinkage), as in target encoding (Micci-Barreca 2001). In training, the class of a text is removed from its own
    means, so that the features do not contain the target. The module has no trained parameters.
    """

    word_scores: Tensor  # (vocabulary, scores), the mean class
    word_texts: Tensor  # (vocabulary,), the number of texts with the word
    pair_keys: Tensor  # (pairs,) int64, ascending: earlier word · vocabulary + later word
    pair_scores: Tensor  # (pairs,)
    pair_texts: Tensor  # (pairs,)
    scale: Tensor  # (scores + 1,), the standard deviation of each feature over the words of the training texts
    class_scores: Tensor  # (classes, scores)

    def __init__(self, vocab_size: int, num_pairs: int, num_classes: int, shrinkage: float) -> None:
        super().__init__()
        self.vocab_size, self.shrinkage = vocab_size, shrinkage
        classes = class_scores(num_classes)
        self.register_buffer("word_scores", torch.zeros(vocab_size, classes.shape[1]))
        self.register_buffer("word_texts", torch.zeros(vocab_size))
        self.register_buffer("pair_keys", torch.full((num_pairs,), NO_PAIR))
        self.register_buffer("pair_scores", torch.zeros(num_pairs))
        self.register_buffer("pair_texts", torch.zeros(num_pairs))
        self.register_buffer("scale", torch.ones(classes.shape[1] + 1))
        self.register_buffer("class_scores", classes, persistent=False)

    @classmethod
    def from_table(cls, table: Mapping[str, Tensor], vocab_size: int, num_classes: int) -> Self:
        """Return the target encoding from the tensors that `table` returned.

        Raises ValueError if a tensor has the wrong shape or type, or is not finite.
        """
        for name, ndim in (("pair_keys", 1), ("shrinkage", 0)):
            if name not in table or table[name].ndim != ndim:
                raise ValueError(f"{name} must be a tensor of {ndim} dimensions")
        target_encoding = cls(vocab_size, len(table["pair_keys"]), num_classes, float(table["shrinkage"]))
        for name, own in target_encoding.table().items():
            given = table.get(name)
            if given is None or given.shape != own.shape or given.dtype != own.dtype or not own.numel():
                raise ValueError(f"{name} must be a tensor of type {own.dtype} and shape {tuple(own.shape)}")
            if not torch.isfinite(given).all():
                raise ValueError(f"{name} is not finite")
            own.copy_(given)
        return target_encoding

    def table(self) -> dict[str, Tensor]:
        """Return the counted tensors by name, as the metadata of a checkpoint stores them."""
        return {**self.state_dict(), "shrinkage": torch.tensor(self.shrinkage, dtype=torch.float64)}

    @property
    def num_numbers(self) -> int:
        """The number of counted values, without the keys of the pairs."""
        return self.word_scores.numel() + self.pair_scores.numel() + self.scale.numel()

    def forward(self, token_ids: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return the features of each token, (batch, length, features).

        token_ids: (batch, length) int; targets: (batch,) int, the classes of counted texts. The class of each text is
        then removed from the means. None uses the means of all counted texts.
        """
        place, is_known = self._find(self._keys(token_ids))
        words = self.word_scores[token_ids]  # (batch, length, scores)
        pairs = (self.pair_scores[place] * is_known)[..., None]  # (batch, length, 1)
        if targets is not None:
            own = self.class_scores[targets][:, None]  # (batch, 1, scores)
            words = self._without(words, self.word_texts[token_ids][..., None], own)
            pairs = self._without(pairs, (self.pair_texts[place] * is_known)[..., None], own[..., :1])
        return torch.cat((words, pairs), dim=-1) / self.scale

    def _without(self, scores: Tensor, texts: Tensor, own: Tensor) -> Tensor:
        """Return the means without one text of this class, or 0 if no other text has the word or pair."""
        left = (scores * (texts + self.shrinkage) - own) / (texts - 1 + self.shrinkage)
        return left.where(texts > 1, 0.0)

    def _keys(self, token_ids: Tensor) -> Tensor:
        """Return a number for each word and the word before it; -1 where one of them is missing, unknown or padding."""
        ids = token_ids.long()
        is_word = (ids != UNKNOWN_ID) & (ids != PAD_ID)
        keys = ids[:, :-1] * self.vocab_size + ids[:, 1:]
        return nn.functional.pad(keys.where(is_word[:, :-1] & is_word[:, 1:], -1), (1, 0), value=-1)  # (batch, length)

    def _find(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Return the index of each key in the table, and whether the table has it."""
        place = torch.searchsorted(self.pair_keys, keys).clamp(max=len(self.pair_keys) - 1)
        return place, self.pair_keys[place] == keys

    @torch.no_grad()
    def count(self, batches: Callable[[], Iterable[tuple[Tensor, Tensor, Tensor]]]) -> None:
        """Count the training texts. A word or pair counts once in a text. The pairs in the most texts are kept.

        The memory grows with the number of different pairs, and not with the number of texts.

        batches: a function that is called twice and returns batches of token_ids, (texts, length) int, padding_mask,
        (texts, length), True where a token is real, and targets, (texts,).
        """
        sums = self.word_scores.new_zeros(self.word_scores.T.shape, dtype=torch.float64)  # (scores, vocabulary)
        pairs = texts = torch.empty(0, dtype=torch.int64)  # the different pairs, ascending, and their numbers of texts
        found: list[Tensor] = []
        self.word_texts.zero_()
        for token_ids, padding_mask, targets in batches():
            words, of_word = _once_a_text(token_ids.long(), padding_mask)
            self.word_texts += words.bincount(minlength=self.vocab_size)
            for of_score, scores in zip(sums, self.class_scores[targets].double().T, strict=True):
                of_score.index_add_(0, words, scores[of_word])
            found.append(self._pairs(token_ids, padding_mask)[0])
            if sum(map(len, found)) >= PAIRS_AT_ONCE:
                pairs, texts, found = *_counted(pairs, texts, found), []
        pairs, texts = _counted(pairs, texts, found)
        self.word_scores.copy_((sums / (self.word_texts + self.shrinkage)).T)
        ranked = texts.argsort(descending=True, stable=True)[: len(self.pair_keys)]
        kept = ranked[texts[ranked] >= AT_LEAST].sort().values
        self.pair_keys.fill_(NO_PAIR)[: len(kept)] = pairs[kept]
        self.pair_texts.zero_()[: len(kept)] = texts[kept].float()
        sum_of_pair = torch.zeros(len(self.pair_keys), dtype=torch.float64)
        for token_ids, padding_mask, targets in batches():
            keys, of_pair = self._pairs(token_ids, padding_mask)
            place, is_kept = self._find(keys)
            sum_of_pair.index_add_(0, place[is_kept], self.class_scores[targets, 0].double()[of_pair[is_kept]])
        self.pair_scores.copy_(sum_of_pair / (self.pair_texts + self.shrinkage))
        squares = torch.cat((self.word_texts @ self.word_scores**2, (self.pair_texts @ self.pair_scores**2)[None]))
        self.scale.copy_((squares / self.word_texts.sum()).sqrt().clamp(min=1e-6))

    def _pairs(self, token_ids: Tensor, padding_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys of the different pairs of each text, (n,), and the text that each is from, (n,)."""
        keys = self._keys(token_ids)
        return _once_a_text(keys, padding_mask & (keys >= 0))


def num_features(num_classes: int) -> int:
    """Return the number of features of each token: one for each score of a word, and one for the pair."""
    return class_scores(num_classes).shape[1] + 1


def class_scores(num_classes: int) -> Tensor:
    """Return the scores of each class, (classes, scores): its rank from -1 to 1, and of more than two its extremity."""
    height = torch.linspace(-1, 1, num_classes)
    if num_classes == 2:
        return height[:, None]
    return torch.stack((height, height.abs() - height.abs().mean()), dim=1)


def _once_a_text(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct values of each text, (n,), and the text that each is from, (n,).

    values: (texts, length) int; mask: (texts, length), True where a value counts.
    """
    ordered = values.masked_fill(~mask, -1).sort(dim=1).values
    is_first = torch.ones_like(mask)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    of_text, place = (is_first & (ordered >= 0)).nonzero(as_tuple=True)
    return ordered[of_text, place], of_text


def _counted(values: Tensor, counts: Tensor, more: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the different values, ascending, and their counts, with those of more values. All are (n,) int."""
    new, counts_of_new = torch.cat((values.new_empty(0), *more)).unique(return_counts=True)
    together, place = torch.cat((values, new)).unique(return_inverse=True)
    return together, torch.zeros_like(together).index_add_(0, place, torch.cat((counts, counts_of_new)))
