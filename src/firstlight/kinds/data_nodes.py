"""Schemas of `data`, with the checks that need no data. Imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from firstlight.data.options import CharacterOptions, PairOptions, ReviewOptions, ReviewTextOptions, SourceKind
from firstlight.data.parallel import check_pair_path
from firstlight.data.sources import check_path
from firstlight.errors import UserError
from firstlight.kinds.top_level import DataNode


def form_of(data: Mapping[str, Any]) -> str:
    """Return the form of the data that the options of `data` describe: `reviews`, `pairs`, or `characters` for text.

    Each form has its own figures, which do not depend on the kind of network.
    """
    return "reviews" if "text_column" in data else "pairs" if "source_column" in data else "characters"


@dataclass
class ReviewDataNode(DataNode, ReviewOptions):
    """Schema of `data` for tasks with labelled texts."""

    text_column: Any = ReviewOptions.text_column  # OmegaConf has no unions with lists; the options check the value
    _target_: str = "firstlight.data.reviews.ReviewData"

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError for data that cannot be found, or does not fit the network. config: the whole."""
        check_path(config.data.path, config.data.source)
        model: Any = OmegaConf.to_object(config.model)
        if config.data.evidence:
            try:
                model.check_evidence()
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
class ReviewTextDataNode(DataNode, ReviewTextOptions):
    """Schema of `data` for tasks that continue reviews."""

    text_column: Any = ReviewTextOptions.text_column
    _target_: str = "firstlight.data.streams.ReviewTextData"

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError for data that cannot be found. config: the whole configuration."""
        check_path(config.data.path, config.data.source)


@dataclass
class CharacterDataNode(DataNode, CharacterOptions):
    """Schema of `data` for tasks that continue a text."""

    _target_: str = "firstlight.data.streams.CharacterData"

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError for data that cannot be found. config: the whole configuration."""
        check_path(config.data.path)


@dataclass
class PairDataNode(DataNode, PairOptions):
    """Schema of `data` for translation tasks."""

    _target_: str = "firstlight.data.pairs.PairData"

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError for data that cannot be found, or does not fit the network. config: the whole."""
        check_pair_path(OmegaConf.to_object(config.data))  # type: ignore[arg-type]
        if config.model.get("share_embeddings") and not config.data.shared_vocabulary:
            raise UserError(
                "model.share_embeddings=true requires data.shared_vocabulary=true; set both to true or both to false"
            )
