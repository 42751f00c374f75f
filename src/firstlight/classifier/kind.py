"""The kind `classifier`: networks that predict the class of a text."""

from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from firstlight.classifier.options import ClassifierConfig
from firstlight.data.options import Labels, ReviewOptions, SourceKind
from firstlight.errors import UserError
from firstlight.kind.kind import Drawing, Kind
from firstlight.kind.top_level import DataNode, ModelNode
from firstlight.text.options import PAIR_SEPARATOR

FIGURES = (
    Drawing(
        "confusion_matrix",
        "Confusion matrix of the validation split, as counts and as percentages: rows are true classes, columns are "
        "predicted classes. Correct predictions are on the diagonal, and confused classes are the "
        "large numbers elsewhere.",
    ),
    Drawing(
        "probability_per_star",
        "Histograms of the predicted probability of a positive review (x axis) for each true number of stars, on the "
        "validation split. A binary model is not trained on reviews with 3 stars, and their probabilities should be "
        "between those of the other reviews.",
        "stars",
    ),
    Drawing(
        "predicted_per_class",
        "Shares of the predicted classes (x axis) for each true class (y axis), on the validation split. Outlined bars "
        "are correct predictions and should be wide; the other bars show with which classes a class is confused.",
    ),
    Drawing(
        "calibration",
        "Accuracy against confidence, and the number of predictions in each bin, on the validation split. Below the "
        "dashed line, the run is overconfident; the expected calibration error is the mean length of the orange lines, "
        "weighted by the number of predictions.",
    ),
    Drawing(
        "mistakes",
        "The validation texts with the most confident wrong predictions. Read them before you change the model: some "
        "have a wrong label, some are ironic, and some are cut before the verdict.",
    ),
    Drawing(
        "attributions",
        "Contribution of each word to the log-odds of the predicted class, compared with an unknown word in its place: "
        "blue supports the class, red contradicts it. Look for words that should not matter.",
        "one_text",
    ),
)


@dataclass
class ReviewDataNode(DataNode, ReviewOptions):
    """Schema of `data` for tasks with labelled texts."""

    text_column: Any = ReviewOptions.text_column  # OmegaConf has no unions with lists; the options check the value
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
            raise UserError(
                "data.path is not set; set it to a file of labelled texts, as in data.path=my.csv, or choose a task "
                "with a data set, such as task=sentiment"
            )
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
    figures=FIGURES,
    baseline="tfidf",
    teachers=("tfidf",),
)
