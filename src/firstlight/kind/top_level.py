"""Options of `model` and `data` that are keys at the top level of the configuration."""

from dataclasses import dataclass

from omegaconf import II, DictConfig

from firstlight.data.sources import check_path
from firstlight.text.options import TokenizerOptions


@dataclass
class ModelNode:
    """Options of `model` that are keys at the top level. This must be the first base class of a schema."""

    dropout: float = II("dropout")
    context_length: int = II("context_length")


@dataclass
class DataNode:
    """Options of `data` that are keys at the top level. This must be the first base class of a schema."""

    tokenizer: TokenizerOptions = II("tokenizer")  # noqa: RUF009  (an interpolation is a string)
    context_length: int = II("context_length")
    seed: int = II("seed")
    cache_dir: str = II("paths.cache_dir")

    @staticmethod
    def check(config: DictConfig) -> None:
        """Raise UserError for data that cannot be found, or does not fit the network. config: the whole."""
        check_path(config.data.path, config.data.source)
