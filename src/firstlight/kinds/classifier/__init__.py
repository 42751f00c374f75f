"""The kind `classifier`: networks that predict the class of a text."""

from dataclasses import dataclass

from omegaconf import DictConfig

from firstlight.data.options import Labels
from firstlight.kinds.classifier.drawings import DRAWINGS
from firstlight.kinds.data_nodes import OwnReviewDataNode, ReviewDataNode
from firstlight.kinds.kind import Kind
from firstlight.kinds.top_level import ModelNode
from firstlight.networks.config import ClassifierConfig
from firstlight.text.options import PAIR_SEPARATOR


@dataclass
class ClassifierNode(ModelNode, ClassifierConfig):
    """Schema of `model` for a classifier."""


def metrics(config: DictConfig) -> tuple[str, ...]:
    """Return the names of the loss and of the metrics of the callback `Accuracy`."""
    ordered = ("mean_absolute_error",) if config.data.get("labels") is Labels.stars else ()
    return ("loss", "accuracy", "macro_f1", *ordered)


def example(config: DictConfig) -> str:
    """Return a text for the command line: one text, a pair, or a context with answers."""
    texts = ["It works, and it looks good."]
    if answers := config.data.get("choice_columns"):
        texts = ["the context", *(f"answer {number}" for number in range(1, len(answers) + 1))]
    elif not isinstance(config.data.get("text_column"), str | None):
        texts = ["A dog runs over the grass.", "An animal moves."]
    return f'--text "{f" {PAIR_SEPARATOR} ".join(texts)}"'


KIND = Kind(
    name="classifier",
    noun="classifier",
    model=ClassifierNode,
    schema={"reviews": ReviewDataNode, "own_reviews": OwnReviewDataNode},
    metrics=metrics,
    metric_callbacks=("firstlight.callbacks.accuracy:Accuracy",),
    has_any_length=True,
    command="predict",
    example=example,
    training="firstlight.lit.classification:Classification",
    tokenizers=("firstlight.text.tokenizers:Tokenizer",),
    loaded="firstlight.kinds.classifier.loaded:from_card",
    evaluate="firstlight.kinds.classifier.evaluation:evaluate_classifier",
    predictor="firstlight.kinds.classifier.predictor:ClassPredictor",
    exploration="firstlight.kinds.classifier.exploration:ClassifierExploration",
    panel="firstlight.kinds.classifier.panel:ClassifierPanel",
    panel_title="Classify a review",
    dashboard="firstlight.kinds.classifier.dashboard:sections",
    baselines={"firstlight.data.reviews.ReviewData": ("tfidf", "firstlight.kinds.classifier.baseline:fit")},
    lesson="firstlight.kinds.classifier.teacher:lesson",
    teachers=("tfidf",),
    drawings=DRAWINGS,
)
