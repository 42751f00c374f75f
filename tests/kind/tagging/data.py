"""Batches of texts and the tags of their words."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn

from firstlight.data.arguments import takes
from firstlight.data.batches import RowBatch
from firstlight.data.table_data import TextRows
from firstlight.data.tables import IGNORED, TokenTable
from firstlight.errors import UserError
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import UNKNOWN_ID, Tokenizer
from tagging.options import TagOptions


def ids_of_words(tokenizer: Tokenizer, words: Sequence[str]) -> list[int]:
    """Return the id of the first token of each word, or that of [UNK] for a word without a token."""
    return [ids[0] if len(ids) else UNKNOWN_ID for ids in tokenizer.encode_batch(words)]


class TagBatch(NamedTuple):
    """A batch of texts: token_ids, padding_mask and targets are (batch, length). The target of padding is IGNORED."""

    token_ids: Tensor
    padding_mask: Tensor
    targets: Tensor
    rows: Tensor
    num_tokens: int

    @property
    def inputs(self) -> tuple[Tensor, Tensor]:
        return self.token_ids, self.padding_mask

    @property
    def num_targets(self) -> int:
        return self.num_tokens


class TagTable(nn.Module):
    """All texts and tags on one device."""

    def __init__(self, ids: RaggedIds, tags: RaggedIds, options: TagOptions) -> None:
        super().__init__()
        no_classes = np.zeros(len(ids), np.int64)
        sizes = (options.context_length, options.truncation)
        self.words, self.tags = (TokenTable(each, no_classes, *sizes) for each in (ids, tags))

    @property
    def flat(self) -> Tensor:
        return self.words.flat

    def forward(self, batch: RowBatch) -> TagBatch:
        words, mask = self.words(batch)[:2]
        targets = self.tags(batch).token_ids.long().masked_fill(~mask, IGNORED)
        return TagBatch(words, mask, targets, batch.rows, batch.num_tokens)


@takes(TagOptions)
class TagData(TextRows):
    """Texts with a tag for each word, in the columns `text_column` and `tag_column` of a file.

    Spaces separate the words.

    Args:
        {options}
    """

    options: TagOptions
    tag_names: list[str]

    def setup(self, stage: str = "fit") -> None:
        if hasattr(self, "table"):
            return
        encoded, options = self.encode(), self.options
        self.tokenizer = encoded.tokenizer
        rows = self.source.values([*options.text_columns, options.tag_column], range(len(encoded.ids)))
        words, tags = ([value.split() for value in values] for values in zip(*rows, strict=True))
        for row, (given, found) in enumerate(zip(words, tags, strict=True), start=1):
            if len(given) != len(found):
                problem = f"row {row} has {len(given)} words between spaces, but {len(found)} tags"
                raise UserError(f"{self.source.where}: {problem}; write a tag for each word")
        ids = RaggedIds.from_rows(ids_of_words(self.tokenizer, given) for given in words)
        self.encoded = replace(encoded, ids=ids)
        if self.reader is None:
            self.tag_names = sorted({tag for row in self.rows("train") for tag in tags[row]})
        else:
            self.tag_names = self.reader["class_names"]
        number = {name: number for number, name in enumerate(self.tag_names)}
        if unknown := {tag for found in tags for tag in found} - number.keys():
            raise UserError(f"{self.source.where}: the tag {min(unknown)} is not in the training texts")
        numbers = np.array([number[tag] for found in tags for tag in found], np.int32)
        self.table = TagTable(ids, RaggedIds(numbers, ids.offsets), options)

    @property
    def num_classes(self) -> int:
        return len(self.tag_names)

    def metadata(self) -> dict[str, Any]:
        return {"class_names": self.tag_names}
