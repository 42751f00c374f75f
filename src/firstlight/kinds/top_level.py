"""What the nodes `model` and `data` of every kind take from the top of the configuration, where it is written once."""

from dataclasses import dataclass

from omegaconf import II

from firstlight.text.options import TokenizerOptions


@dataclass
class ModelNode:
    """The options of `model` that are keys at the top. It stands before the dataclass of the network's options."""

    dropout: float = II("dropout")
    context_length: int = II("context_length")


@dataclass
class DataNode:
    """The options of `data` that are keys at the top. It stands before the dataclass of the data's options."""

    tokenizer: TokenizerOptions = II("tokenizer")  # noqa: RUF009  (an interpolation is a string)
    context_length: int = II("context_length")
    seed: int = II("seed")
    cache_dir: str = II("paths.cache_dir")
