"""Networks, built from their options, or from a checkpoint that another program may have written."""

import inspect
import logging
import sys
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from firstlight.choices import listed
from firstlight.data.target_encoding import num_features as num_encoding_features
from firstlight.errors import UserError
from firstlight.invocation import is_installed, location
from firstlight.lit.checkpoint import METADATA
from firstlight.lit.metadata import TRAIN_AGAIN, kind_of, refuse_non_finite, refuse_other_shapes
from firstlight.networks.attention import MultiHeadAttention
from firstlight.networks.config import TransformerConfig
from firstlight.runs.targets import imported
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.tokenizers import UNKNOWN_ID

log = logging.getLogger(__name__)
OF_SOME_NETWORKS = {  # the option that requires an argument that not every network has
    "both_orders": "data.both_orders=true",
    "choices": "data.choice_columns",
    "num_features": "data.target_encoding=true",
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
        problem = "is fixed; with model.parametrization=mup it must grow with model.dim"
        log.warning("model.feed_forward_dim=%d %s", config.feed_forward_dim, problem)
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
            problem = f"{OF_SOME_NETWORKS[name]} requires the argument {name}, which {network_type.__name__} lacks"
            raise UserError(f"{problem}; use a transformer, add it to your own network, or leave the option out")
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


REPEATED = ("num_layers", "num_decoder_layers")  # each layer has its own weights, except in networks without blocks
FEW_LAYERS = 100  # a network with so many is built in a second
LARGEST_SIZE = 10**7
LARGEST_TABLES = 2**27  # bytes of the position tables of a network, which are not in a checkpoint
NOT_BUILT = (RuntimeError, TypeError, ValueError, ArithmeticError, AssertionError, LookupError, AttributeError)
NEW = (torch.empty, torch.zeros, torch.ones)  # functions that make a parameter in the networks of firstlight
INITIALIZED = (Tensor.normal_, Tensor.uniform_, Tensor.zero_, Tensor.fill_)
WEIGHTS = "network."  # the prefix of the names of the network's weights in a checkpoint


def network_of_checkpoint(
    content: dict[str, Any], path: Path | str, config_type: type[TransformerConfig], network: nn.Module | None = None
) -> nn.Module:
    """Return the network of a checkpoint with its weights. Raises UserError if the weights do not fit.

    content: the result of `open_checkpoint`; path: the file; config_type: the class of the options of the network;
    network: a network of the user that gets the weights, or None.
    """
    saved = content["state_dict"]
    weights = {name.removeprefix(WEIGHTS): saved[name] for name in saved if name.startswith(WEIGHTS)}
    if network is None:
        network = network_of_metadata(content[METADATA], config_type, Path(path), weights)
    refuse_other_shapes(network, weights, path)
    refuse_non_finite(weights, network, path)
    network.load_state_dict(weights)
    return network


def network_of_metadata(
    metadata: dict[str, Any], config_type: type[TransformerConfig], path: Path, weights: dict[str, Tensor]
) -> nn.Module:
    """Return the network that the metadata of a checkpoint describes, with random weights.

    config_type: the class of the options of the network; path: the checkpoint; weights: the weights that the network
    will get. Their shapes are compared with those of a network of firstlight before it takes memory. Raises UserError
    if the metadata does not name a network of firstlight, or the network cannot be built or has other shapes.
    """
    kind = kind_of(metadata)
    described = metadata["config"].get("model")
    if described is None:
        raise UserError("the checkpoint's network is not one of firstlight's; pass it, as in network=MyNetwork()")
    try:
        _refuse_other_values(described, config_type, weights)
        config = config_type(**described)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the checkpoint's network ({kind}) cannot be built by this version: {error}") from error
    named = [str(name) for name in (config._target_, config.own_attention) if name is not None]
    own = [name for name in named if not name.startswith("firstlight.")]
    for name in own:
        refuse_foreign(name, path)
    vocab_size = tokenizer_of_json(metadata["tokenizer"]).vocab_size
    source = metadata.get("source_tokenizer")
    source_vocab_size = tokenizer_of_json(source).vocab_size if source else vocab_size
    num_classes = len(metadata.get("class_names", ()))
    num_features = num_encoding_features(num_classes) if "target_encoding" in metadata else 0
    sizes = {"vocab_size": vocab_size, "num_classes": num_classes, "source_vocab_size": source_vocab_size}
    sizes |= {"num_features": num_features} | {form: bool(metadata.get(form)) for form in ("both_orders", "choices")}
    if not own:
        _compare(config, sizes, weights, path)
    return build_network(config, **sizes)


def _refuse_other_values(
    described: dict[str, Any], config_type: type[TransformerConfig], weights: dict[str, Tensor]
) -> None:
    """Raise ValueError or TypeError for options that the config does not check.

    These are sizes with which even a network without memory would take minutes to build, an option that must be true or
    false and is not, and a number that is true or false.
    """
    for name, value in described.items():
        most = max(len(weights), FEW_LAYERS) if name in REPEATED else LARGEST_SIZE
        if isinstance(value, int) and value > most:
            raise ValueError(f"model.{name}={value} is more than the {most} that its weights allow")
    for option in fields(config_type):
        value, is_flag = described.get(option.name, option.default), isinstance(option.default, bool)
        if isinstance(value, bool) != is_flag:
            raise TypeError(f"model.{option.name}={str(value)[:40]} must {'' if is_flag else 'not '}be true or false")


def _compare(config: Any, sizes: dict[str, int], weights: dict[str, Tensor], path: Path) -> None:
    """Raise UserError unless the network has weights of these shapes and small position tables."""
    is_ours = config.network.startswith("firstlight.")
    has_small_tables = is_ours and 2 * 4 * config.context_length * config.dim <= LARGEST_TABLES  # cos and sin
    try:
        with WithoutWeights() if has_small_tables else torch.device("meta"):
            network = build_network(config, **sizes)
    except UserError:
        raise
    except NOT_BUILT as error:
        raise UserError(f"{path}: the checkpoint's network cannot be built ({' '.join(str(error).split())})") from error
    refuse_other_shapes(network, weights, path)
    tables = sum(buffer.nbytes for name, buffer in network.named_buffers() if name not in weights)
    if tables > LARGEST_TABLES:
        raise UserError(f"{path}: model.context_length={config.context_length} requires large tables; {TRAIN_AGAIN}")


class WithoutWeights(TorchFunctionMode):
    """Mode in which the parameters of a network are on the meta device. They have shapes and take no memory.

    The position tables are computed. torch would import its compiler to compute them on the meta device, too.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return a new parameter on the meta device, or the tensor of an initialization as it is."""
        given = kwargs or {}
        if func in NEW:
            return torch.empty(*args, **given | {"device": "meta"})
        if func in INITIALIZED:
            return args[0]
        is_initialization = getattr(func, "__module__", None) == nn.init.__name__
        return given["tensor"] if is_initialization else func(*args, **given)


def refuse_foreign(target: str, checkpoint: Path) -> None:
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
    path, here = location(module), Path.cwd().resolve()
    if path is not None and not is_installed(path := path.resolve()):
        folder = _unpacked(checkpoint.resolve(), here)
        came_along = folder is not None and path.is_relative_to(folder)
        if module in sys.modules or (path.is_relative_to(here) and not came_along):
            return
    problem = "which is not in the current folder or is next to the checkpoint, so its code is not run"
    remedy = "start in the folder of its project, or import its module first"
    raise UserError(f"the checkpoint names the class {target}, {problem}; {remedy}")


def _unpacked(checkpoint: Path, here: Path) -> Path | None:
    """Return the folder that may have come with a checkpoint: of its run, or the one below `here` that has the run.

    None if the checkpoint is in the current folder itself, as in that of a notebook with its own modules.
    """
    folder = checkpoint.parent
    if folder == here:
        return None
    run = folder.parent if folder.name == "checkpoints" else folder
    return here / run.relative_to(here).parts[0] if run.is_relative_to(here) and run != here else run
