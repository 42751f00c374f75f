"""Which network a config describes, or a checkpoint holds."""

import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from torch import nn

from firstlight.errors import UserError, reason
from firstlight.invocation import is_installed, location
from firstlight.networks.bag_of_words import BagOfWords, LogisticRegression
from firstlight.networks.classifier import Classifier
from firstlight.networks.config import (
    Architecture,
    ClassifierConfig,
    EncoderDecoderConfig,
    GeneratorConfig,
    TransformerConfig,
)
from firstlight.networks.encoder_decoder import EncoderDecoder
from firstlight.networks.generator import Generator
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.tokenizers import UNKNOWN_ID

ATTRIBUTES = {  # that commands read besides calling the network
    "context_length": "set it to config.context_length",
    "embedding": "name the nn.Embedding of its tokens so",
}
CLASSIFIERS: dict[Architecture, type[Classifier | BagOfWords | LogisticRegression]] = {
    Architecture.transformer: Classifier,
    Architecture.bag_of_words: BagOfWords,
    Architecture.logistic: LogisticRegression,
}
CONFIGS: dict[str, type[TransformerConfig]] = {  # by what a checkpoint calls its kind of network
    "classifier": ClassifierConfig,
    "generator": GeneratorConfig,
    "encoder_decoder": EncoderDecoderConfig,
}
WEIGHTS = "network."  # what the names of the network's weights begin with in a checkpoint


def build_network(config: Any, vocab_size: int, num_classes: int = 0, source_vocab_size: int = 0) -> nn.Module:
    """Return the network of a checked config; a classifier has one logit for two classes, else one for each class.

    vocab_size: of what is read, or of what a translator writes; source_vocab_size: of what a translator reads.
    `model._target_` names a class of the user's own. It takes the arguments of our class for the same kind of run, has
    the same `forward`, and finds its own options in `config.options`. Raises UserError if it cannot be used.
    """
    target = getattr(config, "_target_", None)
    own: Any = own_network(target) if target else None
    network: nn.Module
    match config:
        case ClassifierConfig():
            classifier = own or CLASSIFIERS[config.architecture]
            network = classifier(config, vocab_size, num_outputs(num_classes), UNKNOWN_ID)
        case GeneratorConfig():
            network = (own or Generator)(config, vocab_size)
        case EncoderDecoderConfig():
            network = (own or EncoderDecoder)(config, source_vocab_size, vocab_size)
        case _:
            raise TypeError(f"no network is known for {type(config).__name__}")
    for name in ATTRIBUTES if own else ():
        if not hasattr(network, name):
            raise UserError(f"model._target_={target}: the network has no attribute {name}; {ATTRIBUTES[name]}")
    return network


def own_network(target: str) -> type[nn.Module]:
    """Return the class that `model._target_` names. Raises UserError where it is not an importable nn.Module."""
    try:
        found = resolve_name(target)
    except Exception as error:  # whatever a module raises when it is imported
        raise UserError(
            f"model._target_={target} cannot be imported: {reason(error)}; start in the folder that has its package"
        ) from error
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise UserError(f"model._target_={target} is not a subclass of torch.nn.Module; name another class")
    return found


def refuse_foreign(target: str) -> None:
    """Raise UserError for a class that a checkpoint names, unless it is the user's own.

    Importing a module runs its code, and a checkpoint from a stranger can name any module. Those of the project in the
    current folder are the user's own, and those that the program has imported from a place without installed packages.
    Nothing is imported here.
    """
    module, _, name = target.rpartition(".")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise UserError(f"the checkpoint names the network {target!r}, which is not the name of a class")
    if find_spec(module.partition(".")[0]) is None:
        return  # own_network says that there is no such module
    path = location(module)
    is_here = path is not None and (path.resolve().is_relative_to(Path.cwd().resolve()) or module in sys.modules)
    if path is None or is_installed(path.resolve()) or not is_here:
        raise UserError(
            f"the checkpoint names the network {target}, which is not in the current folder, so its code is not run; "
            "start in the folder of its project, or import its module first"
        )


def num_outputs(num_classes: int) -> int:
    """Two classes share one logit (post 1)."""
    return 1 if num_classes == 2 else num_classes


def kind_of(card: dict[str, Any]) -> str:
    """What a checkpoint calls its kind of network."""
    return card.get("network", "classifier")  # the first checkpoints were all of classifiers, and did not say so


def network_of_card(card: dict[str, Any]) -> nn.Module:
    """The network that a checkpoint's card describes, with weights that are still random.

    Raises UserError where the card names no network of ours, or one that this version cannot build.
    """
    kind = kind_of(card)
    described = card["config"].get("model")
    if described is None:
        raise UserError("the checkpoint's network is not one of firstlight's; pass it, as in network=MyNetwork()")
    try:
        config = CONFIGS[kind](**described)
    except (KeyError, TypeError) as error:
        raise UserError(f"the checkpoint's network ({kind}) cannot be built by this version: {error}") from error
    if config._target_ is not None:
        refuse_foreign(config._target_)
    vocab_size = tokenizer_of_json(card["tokenizer"]).vocab_size
    source = card.get("source_tokenizer")
    source_vocab_size = tokenizer_of_json(source).vocab_size if source else vocab_size
    return build_network(config, vocab_size, len(card.get("class_names", ())), source_vocab_size)


def load_weights(network: nn.Module, state: dict[str, Any]) -> None:
    """Give a network the weights of a checkpoint's `state_dict`."""
    network.load_state_dict(
        {name.removeprefix(WEIGHTS): weight for name, weight in state.items() if name.startswith(WEIGHTS)}
    )


def plain(options: Any) -> Any:
    """A dataclass of options as dicts, lists, strings and numbers; an enum by its name."""
    if is_dataclass(options) and not isinstance(options, type):
        return {field.name: plain(getattr(options, field.name)) for field in fields(options)}
    if isinstance(options, Enum):
        return options.name
    return [plain(each) for each in options] if isinstance(options, list | tuple) else options
