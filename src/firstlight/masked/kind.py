"""The kind `masked`: networks that fill in masked words of a text (BERT, Devlin et al. 2018)."""

from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from firstlight.data.sources import check_path
from firstlight.kind.kind import Drawing, Kind, drawing
from firstlight.kind.top_level import DataNode, ModelNode
from firstlight.masked.data_options import MaskedReviewOptions
from firstlight.masked.options import MaskedConfig

DRAWINGS: tuple[Drawing, ...] = (
    drawing(
        "fillings",
        "firstlight.masked.figures",
        "masked",
        "Probabilities (x axis) of the most probable words for each [MASK] of the text, and of all other words. One "
        "long bar means that the run is certain; many bars of equal length mean that many words are possible.",
    ),
)


@dataclass
class MaskedNode(ModelNode, MaskedConfig):
    """Schema of `model` for a masked language model."""


@dataclass
class MaskedReviewDataNode(DataNode, MaskedReviewOptions):
    """Schema of `data` for tasks that fill in masked words."""

    text_column: Any = MaskedReviewOptions.text_column
    _target_: str = "firstlight.masked.data.MaskedReviewData"

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
    training="firstlight.masked.module:MaskedLanguageModeling",
    tokenizers=("firstlight.text.tokenizers:Tokenizer",),
    loaded="firstlight.masked.run:from_card",
    evaluate="firstlight.masked.evaluation:evaluate_masked",
    predictor="firstlight.masked.run:FillingPredictor",
    exploration="firstlight.masked.figures:MaskedExploration",
    panel="firstlight.masked.panel:MaskedPanel",
    panel_title="Fill in masked words",
    baselines={"firstlight.masked.data.MaskedReviewData": ("neighbors", "firstlight.masked.baseline:fit")},
    drawings=DRAWINGS,
    lesson="firstlight.kind.teachers:lesson",
)
