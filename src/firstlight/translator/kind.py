"""The kind `translator`: encoder-decoder networks that read a sentence and write another one."""

from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from firstlight.data.sources import HUB_ID, check_path, is_text_pair
from firstlight.errors import UserError
from firstlight.kind.kind import DataNode, Kind, ModelNode
from firstlight.translator.options import EncoderDecoderConfig, PairOptions


@dataclass
class PairDataNode(DataNode, PairOptions):
    """Schema of `data` for translation tasks."""

    _target_: str = "firstlight.translator.data.PairData"

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError for data that cannot be found, or does not fit the network. config: the whole."""
        check_pair_path(OmegaConf.to_object(config.data))  # type: ignore[arg-type]
        if config.model.get("share_embeddings") and not config.data.shared_vocabulary:
            problem = "model.share_embeddings=true requires data.shared_vocabulary=true"
            raise UserError(f"{problem}; set both to true or both to false")


def check_pair_path(options: PairOptions) -> None:
    """Raise UserError if a path is not a possible source, before anything heavy is imported."""
    endings = (options.source_column, options.target_column)
    if options.path is None or is_text_pair(Path(options.path), endings):
        return
    for ending in endings:
        stem = options.path.removesuffix(f".{ending}")
        if stem != options.path and is_text_pair(Path(stem), endings):
            raise UserError(f"data.path={options.path} is one of two files; name the common part, {stem}")
    if not Path(options.path).exists() and not HUB_ID.fullmatch(options.path):
        files = " and ".join(f"{options.path}.{ending}" for ending in endings)
        raise UserError(f"data.path={options.path}: the file or folder does not exist, nor do {files}")
    check_path(options.path, options.source)


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
