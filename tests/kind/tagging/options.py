"""Options of the tagger and of its data. Imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass

from firstlight.data.options import WholeTextOptions
from firstlight.networks import TransformerConfig
from firstlight.spelling import declare


@dataclass
class TaggerConfig(TransformerConfig):
    """Options of a `Tagger`."""

    tag_dropout: float = 0.0
    """Probability of dropout before the output layer."""

    @property
    def network(self) -> str:
        return "tagging.network:Tagger"

    def network_arguments(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        return sizes["vocab_size"], sizes["num_outputs"]


@dataclass
class TagOptions(WholeTextOptions):
    """Options of tagged texts."""

    tag_column: str = "tags"
    """Column with the tags of the words, with spaces between them."""


declare("data", TagOptions)
