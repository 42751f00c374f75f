"""The kind `classifier`: networks that predict the class of a text."""

from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from firstlight.classifier.options import ClassifierConfig
from firstlight.data.options import Labels, ReviewOptions, SourceKind
from firstlight.errors import UserError
from firstlight.kind.kind import DataNode, Kind, ModelNode
from firstlight.text.options import PAIR_SEPARATOR


@dataclass
class ReviewDataNode(DataNode, ReviewOptions):
    """Schema of `data` for tasks with labeled texts."""

    text_column: Any = ReviewOptions.text_column  # OmegaConf has no unions with lists; the options check the value
    group_weights: Any = None  # OmegaConf cannot merge a dictionary into null; the options check the value
    _target_: str = "firstlight.classifier.data.ReviewData"

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError for data that cannot be found, or does not fit the network. config: the whole."""
        DataNode.check(config)
        model: Any = OmegaConf.to_object(config.model)
        if config.data.target_encoding:
            try:
                model.check_target_encoding()
            except ValueError as error:
                raise UserError(str(error)) from error


@dataclass
class OwnReviewDataNode(ReviewDataNode):
    """`data` of the task `reviews`, which has no data set of its own."""

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError if no data is given, and for data that cannot be found. config: the whole configuration."""
        data = config.data
        is_given = data.path is not None or data.source is SourceKind.sample
        if not is_given and (data.name, data.hub) == (ReviewOptions.name, ReviewOptions.hub):
            remedy = "set it to a file of labeled texts, as in data.path=my.csv, or choose a task with a data set"
            raise UserError(f"data.path is not set; {remedy}, such as task=sentiment")
        ReviewDataNode.check(config)


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
    command="predict",
    example=example,
    baseline="tfidf",
    cross_entropy=True,
)
