"""Checks of a checkpoint before it is used: a complete card, and finite weights of the right shapes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from firstlight.data.evidence import NgramEvidence
from firstlight.errors import UserError
from firstlight.lit.checkpoint import CARD, read_checkpoint

TRAIN_AGAIN = "the file is damaged or was changed; use the run's other checkpoint, or train again"
OTHER_CHECKPOINT = "use the run's other checkpoint, or train again with a lower learning rate"
OF_ALL: dict[str, tuple[type, ...]] = {
    "config": (dict,),
    "tokenizer": (str,),
    "data_source": (str,),
    "data_fingerprint": (str,),
}
FORMER_NAMES = {
    None: "classifier",
    "encoder_decoder": "translator",
}  # the first version of checkpoints did not name a kind

OF_A_TRAINING: dict[str, type] = {  # what Lightning needs to resume
    "global_step": int,
    "epoch": int,
    "loops": dict,
    "callbacks": dict,
    "optimizer_states": list,
    "lr_schedulers": list,
}


@dataclass(frozen=True)
class CardSchema:
    """The requirements for the card of one kind of network, in addition to those of every card.

    keys: the types of additional keys; data: checks of the options of the data, by their name.
    """

    keys: Mapping[str, tuple[type, ...]] = field(default_factory=dict)
    data: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)


def kind_of(card: dict[str, Any]) -> str:
    """Return the kind of network of a checkpoint."""
    named = card.get("network")
    return str(FORMER_NAMES[named] if named in (*FORMER_NAMES,) else named)


def check_content(content: dict[str, Any], path: Path | str, schema: CardSchema) -> None:
    """Raise UserError unless the card of a checkpoint is complete and its weights are tensors.

    content: the result of `read_checkpoint`; path: the file; schema: the requirements for its kind of network.
    """
    card = content[CARD]
    _check_keys(path, card, {**OF_ALL, **schema.keys})
    _check_config(path, card["config"], schema.data)
    for key in ("class_names", "label_names"):
        if not all(isinstance(name, str) for name in card.get(key, ())):
            raise UserError(f"{path}: {key} in the checkpoint's metadata are not names; {TRAIN_AGAIN}")
    _check_tensors(path, content["state_dict"])
    _check_evidence(path, card.get("evidence", {}))


def evidence_of(card: dict[str, Any], vocab_size: int, path: Path | str) -> NgramEvidence | None:
    """Return the module that computes the features of the tokens, or None if the card has no evidence.

    card: the card of a checkpoint; path: the file. Raises UserError if the table does not fit the vocabulary.
    """
    if "evidence" not in card:
        return None
    try:
        return NgramEvidence.from_table(card["evidence"], vocab_size, len(card["class_names"]))
    except ValueError as error:
        problem = f"the evidence in the checkpoint's metadata is broken ({error})"
        raise UserError(f"{path}: {problem}; {TRAIN_AGAIN}") from error


def open_weights(path: Path | str) -> dict[str, Any]:
    """Return the content of a checkpoint of which only the weights and the vocabulary are used."""
    content = read_checkpoint(path)
    _check_keys(path, content[CARD], {"tokenizer": (str,)})
    _check_tensors(path, content["state_dict"])
    refuse_weights_larger_than_the_file(content["state_dict"], path)
    return content


def _check_keys(path: Path | str, card: dict[str, Any], kinds_of: dict[str, tuple[type, ...]]) -> None:
    for key, kinds in kinds_of.items():
        if key not in card:
            raise UserError(f"{path}: the checkpoint's metadata has no {key}; {TRAIN_AGAIN}")
        if not isinstance(card[key], kinds):
            kind = type(card[key]).__name__
            raise UserError(f"{path}: {key} in the checkpoint's metadata is a {kind}; {TRAIN_AGAIN}")


def _check_tensors(path: Path | str, state: Any) -> None:
    if not isinstance(state, Mapping) or not all(
        isinstance(name, str) and isinstance(weight, Tensor) and not weight.is_quantized
        for name, weight in state.items()
    ):
        raise UserError(f"{path}: the state_dict holds more than tensors of numbers by name; {TRAIN_AGAIN}")


def _check_evidence(path: Path | str, table: Any) -> None:
    if not isinstance(table, dict) or not all(isinstance(each, Tensor) for each in table.values()):
        raise UserError(f"{path}: evidence in the checkpoint's metadata is not a table of tensors; {TRAIN_AGAIN}")
    refuse_weights_larger_than_the_file(table, path)


def _check_config(path: Path | str, config: dict[str, Any], of_data: Mapping[str, Callable[[Any], bool]]) -> None:
    """Raise UserError unless the configuration has the keys that are needed to read a run of this kind."""
    data, length = config.get("data"), config.get("context_length")
    needed = {
        "model": isinstance(config.get("model"), dict | None),
        "data": isinstance(data, dict),
        "context_length": type(length) is int and length >= 1,
    }
    if isinstance(data, dict):
        needed |= {f"data.{name}": is_right(data.get(name)) for name, is_right in of_data.items()}
    for key, is_valid in needed.items():
        if not is_valid:
            raise UserError(f"{path}: {key} in the checkpoint's configuration is missing or broken; {TRAIN_AGAIN}")


def refuse_other_shapes(network: nn.Module, weights: Mapping[str, Tensor], path: Path | str) -> None:
    """Raise UserError unless weights have the names and shapes of a network, which may be on the meta device."""
    own = network.state_dict()
    for name in [*own, *weights]:
        if name not in weights or name not in own:
            lacks = "the file" if name not in weights else "the network that its metadata describes"
            raise UserError(f"{path}: {lacks} has no weight {name}; {TRAIN_AGAIN}")
        given, expected = tuple(weights[name].shape), tuple(own[name].shape)
        if given != expected:
            raise UserError(
                f"{path}: the weight {name} has the shape {given} in the file, but {expected} in the network that its "
                f"metadata describes; {TRAIN_AGAIN}"
            )


def refuse_weights_larger_than_the_file(weights: Mapping[str, Tensor], path: Path | str) -> None:
    """Raise UserError for a tensor that needs more memory than its data in the file, such as an expanded one."""
    for name, weight in weights.items():
        is_whole = weight.layout is torch.strided and not weight.is_meta
        if not is_whole or weight.nbytes > weight.untyped_storage().nbytes():
            raise UserError(f"{path}: the weight {name} has more numbers than the file; {TRAIN_AGAIN}")


def refuse_non_finite(weights: Mapping[str, Tensor], names: Iterable[str], path: Path | str) -> None:
    """Raise UserError if one of the named weights has NaN, infinity or a number whose square is infinite.

    Weights that the file lacks are ignored.
    """
    for name in filter(weights.__contains__, names):
        weight = weights[name]
        wide = weight.to(torch.promote_types(weight.dtype, torch.float32))  # the type in which networks compute norms
        if not torch.isfinite(weight * wide).all():
            problem = "has numbers that are too large" if torch.isfinite(weight).all() else "is not finite"
            raise UserError(f"{path}: the weight {name} {problem}, so the training had diverged; {OTHER_CHECKPOINT}")


def refuse_overflow(path: Path | str, network: nn.Module, _: Any, logits: Tensor) -> None:
    """Raise UserError if finite weights give logits, (…, classes), without a finite maximum. It is a forward hook.

    path: the checkpoint of the network. A network in training mode is not checked.
    """
    if not network.training and not logits.detach().amax(dim=-1).isfinite().all():
        raise UserError(
            f"{path}: the network's outputs are not finite, because its weights are too large; {OTHER_CHECKPOINT}"
        )


def refuse_other_state(checkpoint: dict[str, Any], module: nn.Module, path: Path | str) -> None:
    """Raise UserError unless a training of the module can resume from a checkpoint.

    Its weights must fit and be finite. The state of its callbacks must not contain a path with `..`, since Lightning's
    checkpoint callback deletes the files that are named there.
    """
    for key, kind in OF_A_TRAINING.items():
        if not isinstance(checkpoint.get(key), kind):
            raise UserError(f"{path}: {key} of the training is missing or broken; {TRAIN_AGAIN}")
    weights = checkpoint["state_dict"]
    refuse_weights_larger_than_the_file(weights, path)
    refuse_other_shapes(module, weights, path)
    refuse_non_finite(weights, (name for name, _ in module.named_parameters(remove_duplicate=False)), path)
    for text in _texts(checkpoint.get("callbacks")):
        if ".." in Path(text).parts:
            raise UserError(f"{path}: a callback's state names {text}, a path with ..; {TRAIN_AGAIN}")


def _texts(value: Any) -> Iterator[str]:
    """Yield every string in nested plain values, including the keys of dicts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
