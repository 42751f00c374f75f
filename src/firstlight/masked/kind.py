"""The kind `masked`: networks that fill in masked words of a text (BERT, Devlin et al. 2018)."""

from dataclasses import dataclass
from typing import Any

from firstlight.kind.kind import DataNode, Kind, ModelNode
from firstlight.masked.options import MaskedConfig, MaskedReviewOptions


@dataclass
class MaskedNode(ModelNode, MaskedConfig):
    """Schema of `model` for a masked language model."""


@dataclass
class MaskedReviewDataNode(DataNode, MaskedReviewOptions):
    """Schema of `data` for tasks that fill in masked words."""

    text_column: Any = MaskedReviewOptions.text_column
    _target_: str = "firstlight.masked.data.MaskedReviewData"


KIND = Kind(
    name="masked",
    noun="masked language model",
    model=MaskedNode,
    schema={"masked_reviews": MaskedReviewDataNode},
    metrics=lambda config: ("loss", "accuracy", "perplexity"),  # noqa: ARG005
    command="predict",
    example=lambda config: '--text "It [MASK] after a week"',  # noqa: ARG005
    baseline="neighbors",
    cross_entropy=True,
)
