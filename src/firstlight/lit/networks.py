"""Construction of networks from a config or from a checkpoint."""

import inspect
import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from torch import Tensor, nn

from firstlight.data.evidence import num_features as num_evidence_features
from firstlight.errors import UserError, reason
from firstlight.invocation import is_installed, location
from firstlight.lit.cards import (
    TRAIN_AGAIN,
    kind_of,
    refuse_non_finite,
    refuse_other_shapes,
    refuse_weights_larger_than_the_file,
)
from firstlight.lit.checkpoint import CARD
from firstlight.networks.attention import MultiHeadAttention
from firstlight.networks.config import TransformerConfig
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.tokenizers import UNKNOWN_ID

ATTRIBUTES = {  # that commands read from the network, and how to add them
    "context_length": "set it to config.context_length",
    "embedding": "give its nn.Embedding of the tokens this name",
}
REPEATED = ("num_layers", "num_decoder_layers")  # each layer has its own weights, except in networks without blocks
FEW_LAYERS = 100  # a network with so many is built in a second
LARGEST_SIZE = 10**7
LARGEST_TABLES = 2**27  # bytes of the position tables of a network, which are not in a checkpoint
OF_FIRSTLIGHT = (  # networks that a checkpoint of any origin may name as model._target_
    *(f"firstlight.networks.first_steps.{name}" for name in ("BigramTable", "RunningAverages", "RawAffinities")),
    "firstlight.networks.lstm.LSTM",
)
FORMS = {"both_orders": "data.both_orders=true", "choices": "data.choice_columns"}  # arguments for forms of texts
NOT_BUILT = (RuntimeError, TypeError, ValueError, ArithmeticError, AssertionError, LookupError, AttributeError)
WEIGHTS = "network."  # the prefix of the names of the network's weights in a checkpoint


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
    sizes = {"vocab_size": vocab_size, "source_vocab_size": source_vocab_size}
    outputs = 1 if choices else num_outputs(num_classes)
    sizes |= {"num_outputs": outputs, "unknown_id": UNKNOWN_ID, "num_features": num_features}
    target = config._target_
    network_type: Any = own_class("model", target, nn.Module) if target else resolve_name(config.network)
    if config.own_attention:
        own_class("model.attention", config.own_attention, MultiHeadAttention)
    if target and num_features:
        _check_features(target, network_type)
    forms = {name: True for name, is_used in (("both_orders", both_orders), ("choices", choices)) if is_used}
    for name in forms:
        if name not in inspect.signature(network_type).parameters:
            raise UserError(
                f"{FORMS[name]} requires a network with the argument {name}, which {network_type.__name__} does not "
                f"have; use a transformer{'' if choices else ', or set data.both_orders=false'}"
            )
    network: nn.Module = network_type(config, *config.network_arguments(sizes), **forms)
    for name in ATTRIBUTES if target else ():
        if not hasattr(network, name):
            raise UserError(f"model._target_={target}: the network has no attribute {name}; {ATTRIBUTES[name]}")
    return network


def _check_features(target: str, network_type: Any) -> None:
    """Raise UserError unless a network of the user accepts features."""
    if "num_features" not in inspect.signature(network_type).parameters:
        raise UserError(
            f"model._target_={target}: data.evidence=true requires a network with the argument num_features, "
            "whose forward takes the features; add both, or set data.evidence=false"
        )


def own_class(key: str, target: str, base: type[nn.Module]) -> type[nn.Module]:
    """Return the class that `<key>._target_` names. Raises UserError if it is not an importable subclass of `base`."""
    try:
        found = resolve_name(target)
    except Exception as error:  # a module may raise any exception when it is imported
        raise UserError(
            f"{key}._target_={target} cannot be imported: {reason(error)}; start in the folder that has its package"
        ) from error
    if not (isinstance(found, type) and issubclass(found, base)):
        package = "torch.nn" if base is nn.Module else "firstlight.networks"
        raise UserError(f"{key}._target_={target} is not a subclass of {package}.{base.__name__}; name another class")
    return found


def refuse_foreign(target: str, checkpoint: Path | None = None) -> None:
    """Raise UserError unless the class that a checkpoint names is the user's own. No module is imported.

    Importing a module runs its code, and a checkpoint from elsewhere can name any module. The user's own modules are
    those of the project in the current folder, and those that the program has already imported and that are not
    installed packages. A module in the same folder below the current one as the checkpoint may have come with it.
    """
    module, _, name = str(target).rpartition(".")
    if not all(part.isidentifier() for part in (*module.split("."), name)) or module.startswith("__main__"):
        raise UserError(f"the checkpoint names {target!r}, which is not the name of a class")
    if find_spec(module.partition(".")[0]) is None:
        return  # own_class reports that the module does not exist
    path, here, is_imported = location(module), Path.cwd().resolve(), module in sys.modules
    is_here = path is not None and (is_imported or path.resolve().is_relative_to(here))
    came_along = (
        path is not None
        and checkpoint is not None
        and not is_imported
        and _lie_together(path.resolve(), checkpoint.resolve(), here)
    )
    if path is None or is_installed(path.resolve()) or not is_here or came_along:
        where = "is next to the checkpoint" if came_along else "is not in the current folder"
        raise UserError(
            f"the checkpoint names the class {target}, which {where}, so its code is not run; "
            "start in the folder of its project, or import its module first"
        )


def _lie_together(module: Path, checkpoint: Path, here: Path) -> bool:
    """Return whether a module is in the folder of the run, or in the folder below the current one with the run."""
    folder = checkpoint.parent
    if folder == here:  # a notebook with its own modules
        return False
    run = folder.parent if folder.name == "checkpoints" else folder
    if run.is_relative_to(here) and run != here:
        run = here / run.relative_to(here).parts[0]
    return module.is_relative_to(run)


def num_outputs(num_classes: int) -> int:
    """Return the number of logits. Two classes share one logit (post 1)."""
    return 1 if num_classes == 2 else num_classes


def network_of_checkpoint(
    content: dict[str, Any], path: Path | str, config_type: type[TransformerConfig], network: nn.Module | None = None
) -> nn.Module:
    """Return the network of a checkpoint with its weights. Raises UserError if the weights do not fit.

    content: the result of `open_checkpoint`; path: the file; config_type: the class of the options of the network;
    network: a network of the user that gets the weights, or None.
    """
    weights = {
        name.removeprefix(WEIGHTS): weight for name, weight in content["state_dict"].items() if name.startswith(WEIGHTS)
    }
    refuse_weights_larger_than_the_file(weights, path)
    if network is None:
        network = network_of_card(content[CARD], config_type, Path(path), weights)
    refuse_non_finite(weights, (name for name, _ in network.named_parameters(remove_duplicate=False)), path)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise UserError(f"{path}: the weights do not fit the network ({' '.join(str(error).split())[:300]})") from error
    return network


def network_of_card(
    card: dict[str, Any],
    config_type: type[TransformerConfig],
    path: Path | None = None,
    weights: dict[str, Tensor] | None = None,
) -> nn.Module:
    """Return the network that the card of a checkpoint describes, with random weights.

    config_type: the class of the options of the network; path: the checkpoint; weights: the weights that the network
    will get. Their shapes are compared with those of a network of firstlight before it takes memory. Raises UserError
    if the card does not name a network of firstlight, or the network cannot be built or has other shapes.
    """
    kind = kind_of(card)
    described = card["config"].get("model")
    if described is None:
        raise UserError("the checkpoint's network is not one of firstlight's; pass it, as in network=MyNetwork()")
    try:
        _refuse_sizes(described, weights)
        _refuse_other_types(described, config_type)
        config = config_type(**described)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the checkpoint's network ({kind}) cannot be built by this version: {error}") from error
    named = (config._target_, config.own_attention)
    own = [name for name in named if name is not None and name not in OF_FIRSTLIGHT]
    for name in own:
        refuse_foreign(name, path)
    vocab_size = tokenizer_of_json(card["tokenizer"]).vocab_size
    source = card.get("source_tokenizer")
    source_vocab_size = tokenizer_of_json(source).vocab_size if source else vocab_size
    num_classes = len(card.get("class_names", ()))
    num_features = num_evidence_features(num_classes) if "evidence" in card else 0
    sizes = {"vocab_size": vocab_size, "num_classes": num_classes, "source_vocab_size": source_vocab_size}
    sizes |= {"num_features": num_features} | {form: bool(card.get(form)) for form in FORMS}
    if not own and weights is not None and path is not None:
        _compare(config, sizes, weights, path)
    return build_network(config, **sizes)


def _refuse_sizes(described: dict[str, Any], weights: dict[str, Tensor] | None) -> None:
    """Raise ValueError for sizes with which even a network without memory would take minutes to build."""
    for name, value in described.items():
        is_repeated = weights is not None and name in REPEATED
        most = max(len(weights or ()), FEW_LAYERS) if is_repeated else LARGEST_SIZE
        if isinstance(value, int) and value > most:
            raise ValueError(f"model.{name}={value} is more than the {most} that its weights allow")


def _refuse_other_types(described: dict[str, Any], config_type: type[TransformerConfig]) -> None:
    """Raise TypeError for an option that must be true or false and is not, and for a number that is true or false."""
    for option in fields(config_type):
        value, is_flag = described.get(option.name, option.default), isinstance(option.default, bool)
        if isinstance(value, bool) != is_flag:
            raise TypeError(f"model.{option.name}={str(value)[:40]} must {'' if is_flag else 'not '}be true or false")


def _compare(config: Any, sizes: dict[str, int], weights: dict[str, Tensor], path: Path) -> None:
    """Raise UserError unless the network has weights of these shapes and small position tables."""
    try:
        with torch.device("meta"):
            network = build_network(config, **sizes)
    except UserError:
        raise
    except NOT_BUILT as error:
        raise UserError(f"{path}: the checkpoint's network cannot be built ({' '.join(str(error).split())})") from error
    refuse_other_shapes(network, weights, path)
    tables = sum(buffer.nbytes for name, buffer in network.named_buffers() if name not in weights)
    if tables > LARGEST_TABLES:
        raise UserError(
            f"{path}: model.context_length={config.context_length} requires {tables:,} bytes of tables; {TRAIN_AGAIN}"
        )


def plain(options: Any) -> Any:
    """Return a dataclass of options as dicts, lists, strings and numbers. An enum becomes its name."""
    if is_dataclass(options) and not isinstance(options, type):
        return {field.name: plain(getattr(options, field.name)) for field in fields(options)}
    if isinstance(options, Enum):
        return options.name
    return [plain(each) for each in options] if isinstance(options, list | tuple) else options
