"""Checks of a checkpoint before it is used: complete metadata, and finite weights of the right shapes."""

import re
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from firstlight.errors import UserError
from firstlight.lit.checkpoint import METADATA, OTHER, read_checkpoint

if TYPE_CHECKING:
    from firstlight.data.table_data import TableData

TRAIN_AGAIN = f"the file is damaged or was changed; {OTHER}"
OTHER_CHECKPOINT = f"{OTHER} with a lower learning rate"
Checks = Mapping[str, Callable[[Any], bool]]  # of values by their keys, such as `config.data.truncation`
MISSING = object()


def of_type(*types: type) -> Callable[[Any], bool]:
    """Return a check of the type of a value."""
    return lambda value: isinstance(value, types)


def one_of(options: Container[str]) -> Callable[[Any], bool]:
    """Return a check that a value is one of some names."""
    return lambda value: isinstance(value, str) and value in options


def are_names(values: Any) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(values, list) and all(isinstance(name, str) for name in values)


def are_tensors(values: Any) -> bool:
    """Return whether a value has only tensors of plain numbers, by name, whose numbers are all in the file."""
    return isinstance(values, Mapping) and all(
        isinstance(name, str) and isinstance(weight, Tensor) and _is_whole(weight) for name, weight in values.items()
    )


def _is_whole(weight: Tensor) -> bool:
    """Return whether a tensor needs no more memory than its data in the file, unlike an expanded or sparse one."""
    is_plain = weight.layout is torch.strided and not weight.is_meta and not weight.is_quantized
    return is_plain and weight.nbytes <= weight.untyped_storage().nbytes()


def unless_missing(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a check that a missing value passes, too."""
    return lambda value: value is MISSING or check(value)


OF_ALL: Checks = {  # the metadata in the checkpoint of a network of any kind
    "config": of_type(dict),
    "config.model": unless_missing(of_type(dict, NoneType)),
    "config.data": of_type(dict),
    "config.context_length": lambda length: type(length) is int and 1 <= length < 2**63,
    "tokenizer": of_type(str),
    "data_source": of_type(str),
    "data_fingerprint": of_type(str),
    "class_names": unless_missing(are_names),
    "label_names": unless_missing(are_names),
    "target_encoding": unless_missing(are_tensors),
}
OF_WEIGHTS: Checks = {"state_dict": are_tensors}
OF_A_TRAINING: Checks = {  # what Lightning needs to resume
    "global_step": of_type(int),
    "epoch": of_type(int),
    "loops": of_type(dict),
    "callbacks": of_type(dict),
    "optimizer_states": of_type(list),
    "lr_schedulers": of_type(list),
}


def refuse_incomplete(content: Mapping[str, Any], checks: Checks, path: Path | str) -> None:
    """Raise UserError for the first value of a checkpoint that is missing or does not pass its check.

    content: the file or its metadata; path: the file.
    """
    for key, is_right in checks.items():
        value: Any = content
        for name in key.split("."):
            value = value.get(name, MISSING) if isinstance(value, Mapping) else MISSING
        if not is_right(value):
            raise UserError(f"{path}: {key} in the checkpoint is missing or broken; {TRAIN_AGAIN}")


def kind_of(metadata: dict[str, Any]) -> str:
    """Return the kind of network of a checkpoint."""
    return str(metadata.get("network"))


def check_content(content: dict[str, Any], path: Path | str, of_kind: Checks) -> None:
    """Raise UserError unless the metadata of a checkpoint is complete and its weights are tensors.

    content: the result of `read_checkpoint`; path: the file; of_kind: the checks of the metadata for its kind.
    """
    refuse_incomplete(content[METADATA], {**OF_ALL, **of_kind}, path)
    refuse_incomplete(content, OF_WEIGHTS, path)


def open_weights(path: Path | str) -> dict[str, Any]:
    """Return the content of a checkpoint of which only the weights and the vocabulary are used."""
    content = read_checkpoint(path)
    refuse_incomplete(content[METADATA], {"tokenizer": of_type(str)}, path)
    refuse_incomplete(content, OF_WEIGHTS, path)
    return content


def refuse_other_shapes(network: nn.Module, weights: Mapping[str, Tensor], path: Path | str) -> None:
    """Raise UserError unless weights have the names and shapes of a network, which may be on the meta device."""
    given = {name: tuple(weight.shape) for name, weight in weights.items()}
    expected = {name: tuple(weight.shape) for name, weight in network.state_dict().items()}
    for name in [*expected, *given]:
        if given.get(name) != expected.get(name):
            found, needed = (shapes.get(name, "missing") for shapes in (given, expected))
            problem = f"{path}: the shape of the weight {name} is {found} in the file, but {needed} in the network"
            raise UserError(f"{problem} that its metadata describes; {TRAIN_AGAIN}")


def refuse_non_finite(weights: Mapping[str, Tensor], network: nn.Module, path: Path | str) -> None:
    """Raise UserError if the weight of a parameter has NaN, infinity or a number whose square is infinite.

    Parameters that the file lacks are ignored.
    """
    for name, _ in network.named_parameters(remove_duplicate=False):
        weight = weights.get(name, torch.zeros(()))
        wide = weight.to(torch.promote_types(weight.dtype, torch.float32))  # the type in which networks compute norms
        if not torch.isfinite(weight * wide).all():
            problem = "is not finite or has numbers that are too large, so the training had diverged"
            raise UserError(f"{path}: the weight {name} {problem}; {OTHER_CHECKPOINT}")


def refuse_overflow(path: Path | str, network: nn.Module, _: Any, logits: Tensor) -> None:
    """Raise UserError if finite weights give logits, (…, classes), without a finite maximum. It is a forward hook.

    path: the checkpoint of the network. A network in training mode is not checked.
    """
    if not network.training and not logits.detach().amax(dim=-1).isfinite().all():
        raise UserError(f"{path}: the network's outputs are not finite; {OTHER_CHECKPOINT}")


def refuse_other_state(checkpoint: dict[str, Any], module: nn.Module, path: Path | str) -> None:
    """Raise UserError unless a training of the module can resume from a checkpoint.

    Its weights must fit and be finite. The state of its callbacks must not contain a path with `..`, since Lightning's
    checkpoint callback deletes the files that are named there.
    """
    refuse_incomplete(checkpoint, OF_A_TRAINING, path)
    weights = checkpoint["state_dict"]
    refuse_other_shapes(module, weights, path)
    refuse_non_finite(weights, module, path)
    if ".." in re.split(r"[/\\'\"]+", repr(checkpoint["callbacks"])):
        raise UserError(f"{path}: the state of a callback names a path with ..; {TRAIN_AGAIN}")


def refuse_other_readings(metadata: dict[str, Any] | None, loaders: Any) -> None:
    """Raise UserError if the data module of a loader has a different vocabulary or different classes than metadata."""
    for loader in loaders if isinstance(loaders, list | tuple) else [loaders]:
        reading = getattr(loader, "reading", None)
        if reading is None or metadata is None:
            continue
        other = [name for name, value in reading().items() if not is_same(value, metadata.get(name))]
        if other:
            what = "vocabulary" if "tokenizer" in other[0] else other[0].replace("_", " ")
            remedy = "call data.use_vocabulary_of(module) first"
            raise UserError(f"the data does not have the {what} of the network; {remedy}")


def is_same(value: Any, other: Any) -> bool:
    """Return whether two values of metadata are equal. Of two tables, the tensors with common names are compared."""
    if isinstance(value, dict) and isinstance(other, dict):
        return all(torch.equal(value[name].cpu(), other[name].cpu()) for name in value.keys() & other.keys())
    return bool(value == other)


def metadata_of(data: "TableData", kind: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a checkpoint: plain types and tensors with which the run can be read without its data.

    config: `model`, the options of the network, None for a network of the user; `data`, those of the data module.
    """
    return {
        "task": None,
        "config": {"context_length": data.options.context_length, **config},
        "network": kind,
        "tokenizer": data.tokenizer.to_json(),
        **data.metadata(),
        "data_source": data.source.kind.value,
        "data_fingerprint": data.source.fingerprint,
    }
