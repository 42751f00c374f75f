"""The kind `generator`: networks that continue a text."""

from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from firstlight.data.options import ReviewTextOptions
from firstlight.data.sources import check_path
from firstlight.generator.options import CharacterOptions, GeneratorConfig
from firstlight.kind.kind import DataNode, Kind, ModelNode


@dataclass
class ReviewTextDataNode(DataNode, ReviewTextOptions):
    """Schema of `data` for tasks that continue reviews."""

    text_column: Any = ReviewTextOptions.text_column
    _target_: str = "firstlight.generator.data.ReviewTextData"


@dataclass
class CharacterDataNode(DataNode, CharacterOptions):
    """Schema of `data` for tasks that continue a text."""

    _target_: str = "firstlight.generator.data.CharacterData"

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError for data that cannot be found. config: the whole configuration."""
        check_path(config.data.path)


@dataclass
class GeneratorNode(ModelNode, GeneratorConfig):
    """Schema of `model` for a generator."""


def metrics(config: DictConfig) -> tuple[str, ...]:
    """Return the names of the metrics of the token callbacks. Bits per character require a text without [UNK]."""
    is_text = OmegaConf.get_type(config.data) is CharacterDataNode
    return ("loss", "accuracy", "perplexity", *(("bits_per_character",) if is_text else ()))


KIND = Kind(
    name="generator",
    noun="generator",
    model=GeneratorNode,
    schema={"characters": CharacterDataNode, "review_text": ReviewTextDataNode},
    metrics=metrics,
    command="generate",
    example=lambda config: "--num-samples 3 --tokens 300 --temperature 0.8",  # noqa: ARG005
    baseline="ngrams",
    cross_entropy=True,
)
