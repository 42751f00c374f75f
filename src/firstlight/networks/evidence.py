"""Counted evidence: the mean class of the training texts that contain a word or a pair of words. It is not trained."""

import torch
from torch import Tensor, nn

NO_PAIR = torch.iinfo(torch.int64).max  # fills the table where the texts have fewer pairs than it has room for
AT_LEAST = 2  # texts; a pair of one training text says nothing of another


class NgramEvidence(nn.Module):
    """The mean class of the training texts that contain a word, or a pair of neighboring words.

    The mean of few texts is shrunk towards the middle, sum / (texts + shrinkage), as in target encoding (Micci-Barreca
    2001). In training, the class of a text is removed from its own means, so that the answer does not leak. The counted
    numbers belong to the network like its weights, and count as parameters.
    """

    word_scores: Tensor  # (vocabulary, scores)
    word_texts: Tensor  # (vocabulary,), how many texts a word is in
    pair_keys: Tensor  # (pairs,) int64, ascending: earlier word · vocabulary + later word
    pair_scores: Tensor  # (pairs,)
    pair_texts: Tensor  # (pairs,)
    scale: Tensor  # (scores + 1,), the deviation of each feature over the words of the training texts
    class_scores: Tensor  # (classes, scores)

    def __init__(self, vocab_size: int, num_pairs: int, num_classes: int, shrinkage: float, unknown_id: int) -> None:
        super().__init__()
        self.vocab_size, self.shrinkage, self.unknown_id = vocab_size, shrinkage, unknown_id
        classes = class_scores(num_classes)
        self.num_features = classes.shape[1] + 1
        self.register_buffer("word_scores", torch.zeros(vocab_size, classes.shape[1]))
        self.register_buffer("pair_keys", torch.full((num_pairs,), NO_PAIR))
        self.register_buffer("pair_scores", torch.zeros(num_pairs))
        self.register_buffer("scale", torch.ones(self.num_features))
        self.register_buffer("class_scores", classes, persistent=False)
        self.register_buffer("word_texts", torch.zeros(vocab_size), persistent=False)  # for the training alone
        self.register_buffer("pair_texts", torch.zeros(num_pairs), persistent=False)

    @property
    def num_numbers(self) -> int:
        """The number of counted values; the keys of the pairs are not counted, as the vocabulary is not."""
        return self.word_scores.numel() + self.pair_scores.numel() + self.scale.numel()

    def forward(self, token_ids: Tensor, targets: Tensor | None = None) -> Tensor:
        """token_ids: (batch, length) int; targets: (batch,) int, the classes of texts that were counted.

        Returns (batch, length, features).
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
        """Return the means without one text of this class; 0 if there is no other text."""
        left = (scores * (texts + self.shrinkage) - own) / (texts - 1 + self.shrinkage)
        return left.where(texts > 1, 0.0)

    def _keys(self, token_ids: Tensor) -> Tensor:
        """Return one number for each word and the word before it; -1 at the beginning and beside an unknown word."""
        ids = token_ids.long()
        keys = ids[:, :-1] * self.vocab_size + ids[:, 1:]
        is_unknown = (ids[:, :-1] == self.unknown_id) | (ids[:, 1:] == self.unknown_id)
        return nn.functional.pad(keys.masked_fill(is_unknown, -1), (1, 0), value=-1)  # (batch, length)

    def _find(self, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Return the index of each key in the table, and whether the table has it."""
        place = torch.searchsorted(self.pair_keys, keys).clamp(max=len(self.pair_keys) - 1)
        return place, self.pair_keys[place] == keys

    @torch.no_grad()
    def count(self, token_ids: Tensor, padding_mask: Tensor, targets: Tensor) -> None:
        """Count the training texts: a word or pair counts once in a text, and the pairs of the most texts are kept.

        token_ids: (texts, length) int; padding_mask: (texts, length), True where a token is real; targets: (texts,).
        """
        own = self.class_scores[targets].double()  # (texts, scores)
        words, of_text = _once_a_text(token_ids.long(), padding_mask)
        self.word_texts.copy_(words.bincount(minlength=self.vocab_size))
        for i in range(own.shape[1]):
            sums = words.bincount(own[of_text, i], minlength=self.vocab_size)
            self.word_scores[:, i] = sums / (self.word_texts + self.shrinkage)
        keys = self._keys(token_ids)
        found, of_text = _once_a_text(keys, padding_mask & (keys >= 0))
        pairs, number, texts = found.unique(return_inverse=True, return_counts=True)
        ranked = texts.argsort(descending=True, stable=True)[: len(self.pair_keys)]
        kept = ranked[texts[ranked] >= AT_LEAST].sort().values
        sums = number.bincount(own[of_text, 0], minlength=len(pairs))[kept]
        self.pair_keys.fill_(NO_PAIR)[: len(kept)] = pairs[kept]
        self.pair_texts.zero_()[: len(kept)] = texts[kept].float()
        self.pair_scores.zero_()[: len(kept)] = (sums / (texts[kept] + self.shrinkage)).float()
        squares = torch.cat((self.word_texts @ self.word_scores**2, (self.pair_texts @ self.pair_scores**2)[None]))
        self.scale.copy_((squares / self.word_texts.sum()).sqrt().clamp(min=1e-6))


class EvidenceHead(nn.Module):
    """Maps the evidence of all words to logits, from its sum, its mean, and its sum weighted by magnitude."""

    def __init__(self, num_features: int, num_outputs: int) -> None:
        super().__init__()
        self.score = nn.Linear(3 * num_features, num_outputs)
        nn.init.normal_(self.score.weight, std=0.02)

    def forward(self, features: Tensor, padding_mask: Tensor) -> Tensor:
        """features: (batch, length, features); padding_mask: (batch, length). Returns logits (batch, outputs)."""
        real = padding_mask[..., None]
        length = real.sum(dim=1).clamp(min=1)  # (batch, 1)
        total = (features * real).sum(dim=1)
        stressed = (features * features.abs() * real).sum(dim=1)
        return self.score(torch.cat((total / length.sqrt(), total / length, stressed / length.sqrt()), dim=-1))


def class_scores(num_classes: int) -> Tensor:
    """Return the height of each class, from -1 to 1, and of more than two its centered extremity: (classes, scores)."""
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
