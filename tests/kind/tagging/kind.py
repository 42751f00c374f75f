"""The kind `tagger`: networks that predict a tag for each word of a text."""

from dataclasses import dataclass
from typing import Any

from firstlight.kind.kind import DataNode, Kind, ModelNode
from tagging.options import TaggerConfig, TagOptions


@dataclass
class TaggerNode(ModelNode, TaggerConfig):
    """Schema of `model` for a tagger."""


@dataclass
class TagDataNode(DataNode, TagOptions):
    """Schema of `data` for tagged texts."""

    text_column: Any = TagOptions.text_column
    _target_: str = "tagging.data.TagData"


KIND = Kind(
    name="tagger",
    noun="tagger",
    model=TaggerNode,
    schema={"tags": TagDataNode},
    metrics=lambda config: ("loss", "accuracy"),
    command="predict",
    example=lambda config: '--text "the dog sees a cat"',
)
