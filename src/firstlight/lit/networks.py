"""Construction of networks from their options."""

import inspect
import logging
from dataclasses import fields, is_dataclass
from enum import Enum
from pkgutil import resolve_name
from typing import Any

from torch import nn

from firstlight.choices import listed
from firstlight.errors import UserError
from firstlight.networks.attention import MultiHeadAttention
from firstlight.networks.config import TransformerConfig
from firstlight.runs.targets import imported
from firstlight.text.tokenizers import UNKNOWN_ID

log = logging.getLogger(__name__)
OF_SOME_NETWORKS = {  # arguments that not every network has: the option that requires each, and what to do without it
    "both_orders": ("data.both_orders=true", "use a transformer, or set data.both_orders=false"),
    "choices": ("data.choice_columns", "use a transformer"),
    "num_features": (
        "data.target_encoding=true",
        "add it, and the features to its forward, or set data.target_encoding=false",
    ),
}


def build_network(
    config: Any,
    vocab_size: int,
    num_classes: int = 0,
    source_vocab_size: int = 0,
    num_features: int = 0,
    *,
    both_orders: int = False,  # all sizes that depend on the data are numbers
    choices: int = False,
) -> nn.Module:
    """Return the network of a checked config.

    A classifier has one logit for two classes, else one for each class, and one for each answer of multiple choice.

    vocab_size: size of the vocabulary, or of the target vocabulary of a translator; source_vocab_size: size of the
    source vocabulary of a translator; num_features: number of features of each token of a classifier; both_orders:
    whether a classifier reads pairs of texts in both orders; choices: whether it reads rows of multiple choice.
    `model._target_` names a class of the user. It has the arguments and the `forward` of the class of firstlight for
    the same kind of run, and reads its own options from `config.options`. Raises UserError if it cannot be used.
    """
    if not isinstance(config, TransformerConfig):
        raise TypeError(f"{type(config).__name__} does not describe a network; pass a TransformerConfig")
    if config.width_multiplier != 1 and config.feed_forward_dim is not None:
        log.warning(
            "model.feed_forward_dim=%d is fixed; with model.parametrization=mup it must grow with model.dim",
            config.feed_forward_dim,
        )
    sizes = {"vocab_size": vocab_size, "source_vocab_size": source_vocab_size, "num_classes": num_classes}
    outputs = 1 if choices else num_outputs(num_classes)
    sizes |= {"num_outputs": outputs, "unknown_id": UNKNOWN_ID, "num_features": num_features}
    target = config._target_
    network_type: Any = own_class("model", target, nn.Module) if target else resolve_name(config.network)
    if config.own_attention:
        own_class("model.attention", config.own_attention, MultiHeadAttention)
    forms = {name: True for name, is_used in (("both_orders", both_orders), ("choices", choices)) if is_used}
    for name in [*forms, *(["num_features"] if target and num_features else [])]:
        if name not in inspect.signature(network_type).parameters:
            option, remedy = OF_SOME_NETWORKS[name]
            raise UserError(
                f"{option} requires the argument {name}, which {network_type.__name__} does not have; {remedy}"
            )
    arguments = (config, *config.network_arguments(sizes))
    try:
        inspect.signature(network_type).bind(*arguments, **forms)
    except TypeError as error:
        names = [*inspect.signature(resolve_name(config.network)).parameters][: len(arguments)]
        problem = f"model._target_={target}: {network_type.__name__} must accept the arguments {listed(names)}"
        raise UserError(f"{problem}, in this order ({error}); correct its __init__") from error
    network: nn.Module = network_type(*arguments, **forms)
    for name in ("context_length", "embedding") if target else ():  # which commands read
        if not hasattr(network, name):
            raise UserError(f"model._target_={target}: the network has no attribute {name}; set self.{name}")
    return network


def own_class(key: str, target: str, base: type[nn.Module]) -> type[nn.Module]:
    """Return the class that `<key>._target_` names. Raises UserError if it is not an importable subclass of `base`."""
    found = imported(f"{key}._target_", target)
    if not (isinstance(found, type) and issubclass(found, base)):
        package = "torch.nn" if base is nn.Module else "firstlight.networks"
        raise UserError(f"{key}._target_={target} is not a subclass of {package}.{base.__name__}; name another class")
    return found


def num_outputs(num_classes: int) -> int:
    """Return the number of logits. Two classes share one logit (post 1, reviews)."""
    return 1 if num_classes == 2 else num_classes


def plain(options: Any) -> Any:
    """Return a dataclass of options as dicts, lists, strings and numbers. An enum becomes its name."""
    if is_dataclass(options) and not isinstance(options, type):
        return {field.name: plain(getattr(options, field.name)) for field in fields(options)}
    if isinstance(options, Enum):
        return options.name
    return [plain(each) for each in options] if isinstance(options, list | tuple) else options
