"""The kind `masked`: networks that fill in masked words of a text (BERT, Devlin et al. 2018)."""

from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from firstlight.data.masked_options import MaskedReviewOptions
from firstlight.data.sources import check_path
from firstlight.kinds.kind import Kind
from firstlight.kinds.masked.drawings import DRAWINGS
from firstlight.kinds.top_level import DataNode, ModelNode
from firstlight.networks.masked_config import MaskedConfig


@dataclass
class MaskedNode(ModelNode, MaskedConfig):
    """Schema of `model` for a masked language model."""


@dataclass
class MaskedReviewDataNode(DataNode, MaskedReviewOptions):
    """Schema of `data` for tasks that fill in masked words."""

    text_column: Any = MaskedReviewOptions.text_column
    _target_: str = "firstlight.data.masked_reviews.MaskedReviewData"

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError for data that cannot be found. config: the whole configuration."""
        check_path(config.data.path, config.data.source)


def metrics(config: DictConfig) -> tuple[str, ...]:  # noqa: ARG001  (those of other kinds depend on it)
    """Return the names of the metrics of the token callbacks, which are measured at the masked positions."""
    return ("loss", "accuracy", "perplexity")


KIND = Kind(
    name="masked",
    noun="masked language model",
    model=MaskedNode,
    schema={"masked_reviews": MaskedReviewDataNode},
    metrics=metrics,
    metric_callbacks=(
        "firstlight.callbacks.token_metrics:Perplexity",
        "firstlight.callbacks.token_metrics:TokenAccuracy",
    ),
    has_any_length=True,
    command="predict",
    example=lambda config: '--text "It [MASK] after a week"',  # noqa: ARG005
    training="firstlight.lit.masked:MaskedLanguageModeling",
    tokenizers=("firstlight.text.tokenizers:Tokenizer",),
    loaded="firstlight.kinds.masked.loaded:from_card",
    evaluate="firstlight.kinds.masked.evaluation:evaluate_masked",
    predictor="firstlight.kinds.masked.predictor:FillingPredictor",
    exploration="firstlight.kinds.masked.exploration:MaskedExploration",
    panel="firstlight.kinds.masked.panel:MaskedPanel",
    panel_title="Fill in masked words",
    baselines={
        "firstlight.data.masked_reviews.MaskedReviewData": ("neighbors", "firstlight.kinds.masked.baseline:fit")
    },
    drawings=DRAWINGS,
    lesson="firstlight.kinds.token_teacher:lesson",
)
