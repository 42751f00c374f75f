"""The kind `translator`: encoder-decoder networks that read a sentence and write another one."""

from dataclasses import dataclass

from omegaconf import DictConfig, OmegaConf

from firstlight.errors import UserError
from firstlight.kind.kind import DataNode, Kind, ModelNode
from firstlight.translator.options import EncoderDecoderConfig, PairOptions
from firstlight.translator.parallel import check_pair_path


@dataclass
class PairDataNode(DataNode, PairOptions):
    """Schema of `data` for translation tasks."""

    _target_: str = "firstlight.translator.data.PairData"

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError for data that cannot be found, or does not fit the network. config: the whole."""
        check_pair_path(OmegaConf.to_object(config.data))  # type: ignore[arg-type]
        if config.model.get("share_embeddings") and not config.data.shared_vocabulary:
            raise UserError(
                "model.share_embeddings=true requires data.shared_vocabulary=true; set both to true or both to false"
            )


@dataclass
class TranslatorNode(ModelNode, EncoderDecoderConfig):
    """Schema of `model` for a translator."""


KIND = Kind(
    name="translator",
    noun="translator",
    model=TranslatorNode,
    schema={"pairs": PairDataNode},
    metrics=lambda config: ("loss", "accuracy", "perplexity"),  # noqa: ARG005
    command="predict",
    example=lambda config: '--text "A man rides a bike."',  # noqa: ARG005
    cross_entropy=True,
)
