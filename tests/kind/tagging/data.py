"""Batches of texts and the tags of their words."""

from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn

from firstlight.data.arguments import takes
from firstlight.data.batches import RowBatch
from firstlight.data.table_data import TextRows
from firstlight.data.tables import IGNORED, TokenTable
from firstlight.errors import UserError
from firstlight.text.ragged import RaggedIds
from tagging.options import TagOptions


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

    Args:
        {options}
    """

    options: TagOptions
    tag_names: list[str]

    def setup(self, stage: str = "fit") -> None:
        if hasattr(self, "table"):
            return
        self.encoded = self.encode()
        self.tokenizer = self.encoded.tokenizer
        lengths = self.encoded.ids.lengths
        tags = [text.split() for text in self.source.texts(self.options.tag_column, range(len(lengths)))]
        for row, (found, length) in enumerate(zip(tags, lengths, strict=True)):
            if len(found) != length:
                raise UserError(f"{self.source.where}: row {row + 1} has {length} words, but {len(found)} tags")
        if self.reader is None:
            self.tag_names = sorted({tag for row in self.rows("train") for tag in tags[row]})
        else:
            self.tag_names = self.reader["class_names"]
        number = {name: number for number, name in enumerate(self.tag_names)}
        if unknown := {tag for found in tags for tag in found} - number.keys():
            raise UserError(f"{self.source.where}: the tag {min(unknown)} is not in the training texts")
        numbers = np.array([number[tag] for found in tags for tag in found], np.int32)
        self.table = TagTable(self.encoded.ids, RaggedIds(numbers, self.encoded.ids.offsets), self.options)

    @property
    def num_classes(self) -> int:
        return len(self.tag_names)

    def metadata(self) -> dict[str, Any]:
        return {"class_names": self.tag_names}
