"""Which network a config describes."""

from typing import Any

from torch import nn

from firstlight.networks.bag_of_words import BagOfWords, LogisticRegression
from firstlight.networks.classifier import Classifier
from firstlight.networks.config import Architecture, ClassifierConfig, EncoderDecoderConfig, GeneratorConfig
from firstlight.networks.encoder_decoder import EncoderDecoder
from firstlight.networks.generator import Generator
from firstlight.text.tokenizers import UNKNOWN_ID

CLASSIFIERS: dict[Architecture, type[Classifier | BagOfWords | LogisticRegression]] = {
    Architecture.transformer: Classifier,
    Architecture.bag_of_words: BagOfWords,
    Architecture.logistic: LogisticRegression,
}


def build_network(config: Any, vocab_size: int, num_classes: int = 0, source_vocab_size: int = 0) -> nn.Module:
    """The network of a checked config; a classifier's outputs are one logit for two classes, else one for each.

    vocab_size: of what is read, or of what a translator writes; source_vocab_size: of what a translator reads.
    """
    match config:
        case ClassifierConfig():
            return CLASSIFIERS[config.architecture](config, vocab_size, num_outputs(num_classes), UNKNOWN_ID)
        case GeneratorConfig():
            return Generator(config, vocab_size)
        case EncoderDecoderConfig():
            return EncoderDecoder(config, source_vocab_size, vocab_size)
        case _:
            raise TypeError(f"no network is known for {type(config).__name__}")


def num_outputs(num_classes: int) -> int:
    """Two classes share one logit (post 1)."""
    return 1 if num_classes == 2 else num_classes
