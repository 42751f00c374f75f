"""Folders of GPT-2, Llama and BERT that transformers saved, as checkpoints of ours. transformers is not imported.

The weights have one mapping, that of the export: the export of a network whose weights are numbered shows the number of
each place, and so the weight that a number of the folder belongs to.
"""

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from firstlight.errors import UserError, reason
from firstlight.export.folder import settings_of
from firstlight.export.huggingface import ACTIVATIONS, FACTS, SIZES, form_of
from firstlight.kind.registry import KINDS
from firstlight.lit.checkpoint import EXPORTED_TOKENIZER, EXPORTED_TOKENIZER_CONFIG, METADATA, read_json, read_tensors
from firstlight.lit.networks import build_network, plain
from firstlight.networks.layers import LAYER_NORM_EPS
from firstlight.runs.folder import EXPORTED_CONFIG, EXPORTED_WEIGHTS
from firstlight.text.saved_tokenizers import Foreign, framed_tokenizer, text_tokenizer

FIRST = 2**40  # the number of the first weight; no constant of an export is so large
AGAIN = "save the model again"
TYPES = {"generator": ("gpt2", "llama"), "masked": ("bert",), "classifier": ("bert",)}
HEADS = ("cls.", "classifier.", "bert.pooler.")  # the beginnings of names that a folder without a head lacks


def explained(read: Callable[[Path, str], Any]) -> Callable[[Path, str], Any]:
    """Return a function of a folder, which may hold anything, that raises UserError in place of any other error."""

    @wraps(read)
    def explaining(folder: Path, kind: str) -> Any:
        try:
            return read(folder, kind)
        except UserError:
            raise
        except Exception as error:  # tokenizers raises a plain Exception
            raise UserError(f"{folder} cannot be read ({reason(error)[:200]}); use another model") from error

    return explaining


@explained
def published_tokenizer(folder: Path, kind: str) -> Foreign:
    """Return the tokenizer of a folder, for a network of a kind. Raises UserError for a folder that cannot be read."""
    theirs, content = _config(folder, kind), read_json(folder / EXPORTED_TOKENIZER, "save the tokenizer, too")
    marks = {key: each["content"] if isinstance(each, dict) else each for key, each in _marks(folder).items()}
    mask = marks.get("mask_token") or "[MASK]"
    framed = kind != "generator" and framed_tokenizer(content, marks.get("pad_token") or "[PAD]", mask)
    found = framed or text_tokenizer(content)
    if kind == "masked" and len(found.ids) == found.tokenizer.vocab_size:
        raise ValueError(f"its tokenizer has no {mask}")
    if max(found.ids) >= theirs["vocab_size"]:
        raise ValueError(f"its tokenizer has the id {max(found.ids)}, but vocab_size={theirs['vocab_size']}")
    return found


@explained
def read_published(folder: Path, kind: str) -> dict[str, Any]:
    """Return a folder as the content of a checkpoint of a network of a kind.

    Raises UserError for a folder that cannot be read, or that no network of ours expresses.
    """
    theirs, foreign = _config(folder, kind), published_tokenizer(folder, kind)
    config = KINDS[kind].get("module").config_type(**_options(theirs, kind))
    metadata = {"tokenizer": foreign.tokenizer.to_json(), "network": kind, "config": {"model": plain(config)}}
    labels = theirs.get("id2label") or {"0": "", "1": ""}
    names = [str(labels[str(i)]) for i in range(len(labels))]
    if "BertForSequenceClassification" in (theirs.get("architectures") or ()):
        metadata["class_names"] = names
    network = _numbered(build_network(config, foreign.tokenizer.vocab_size, len(names)))
    run: Any = SimpleNamespace(network=network, tokenizer=foreign.tokenizer, metadata={"class_names": names})
    _, numbers = form_of(kind, config).convert(run, config)
    ids = foreign.ids if kind == "masked" else foreign.ids[: foreign.tokenizer.vocab_size]
    weights = _weights(folder / EXPORTED_WEIGHTS, ids, theirs["vocab_size"], has_one_logit=len(names) == 2)
    return {METADATA: metadata, "state_dict": _placed(network, numbers, weights)}


def refuse_other_options(folder: Path, metadata: dict[str, Any], own: Any) -> None:
    """Raise UserError if options of a network differ from those in the metadata of a folder. It names all of them."""
    needed, given = map(_resolved, (type(own)(**metadata["config"]["model"]), own))
    wrong = {name: value for name, value in needed.items() if name not in FACTS["free"] and given[name] != value}
    if wrong:
        settings = " ".join(f"model.{name}={json.dumps(value).strip(chr(34))}" for name, value in wrong.items())
        raise UserError(f"init_from={folder}: its network has other options than model=; set {settings}")


def _resolved(config: Any) -> dict[str, Any]:
    eps = LAYER_NORM_EPS if config.norm_eps is None and plain(config.norm_kind) == "layer" else config.norm_eps
    return settings_of(config) | {"feed_forward_dim": config.resolved_feed_forward_dim, "norm_eps": eps}


def _config(folder: Path, kind: str) -> dict[str, Any]:
    """Return config.json. Raises UserError for a folder with links, code or pickles, or of another model."""
    for name in (EXPORTED_CONFIG, EXPORTED_TOKENIZER, EXPORTED_TOKENIZER_CONFIG, EXPORTED_WEIGHTS):
        if (folder / name).is_symlink():
            raise UserError(f"{folder / name} is a link, which may lead anywhere; copy the folder with `cp -rL`")
    path = folder / EXPORTED_CONFIG
    found = {"n_inner": None, **read_json(path, AGAIN)}
    if (given := found.get("model_type")) not in TYPES.get(kind, ()):
        known = " or ".join(TYPES.get(kind, ["none that transformers saves"]))
        raise UserError(f"{path}: model_type={given} does not fit a {KINDS[kind].noun}, whose type is {known}")
    if "auto_map" in found or "auto_map" in _marks(folder):
        raise UserError(f"{path}: auto_map names code, which is not run; use another model")
    for key, value in FACTS["required"].items():
        if (found.get(key, value) or False) != value:
            raise UserError(f"{path}: {key}={found[key]} must be {json.dumps(value)}; use another model")
    if not (folder / EXPORTED_WEIGHTS).is_file():
        pickles = [each.name for each in folder.iterdir() if each.suffix in (".bin", ".pt", ".pth", ".pkl")]
        problem = f"{pickles[0]} is a pickle, which may run code" if pickles else f"{EXPORTED_WEIGHTS} is missing"
        raise UserError(f"{folder}: {problem}; save the model with safetensors, in one file")
    return found


def _marks(folder: Path) -> dict[str, Any]:
    path = folder / EXPORTED_TOKENIZER_CONFIG
    return read_json(path, AGAIN) if path.is_file() else {}


def _options(theirs: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the options of our network for a config.json. Raises ValueError if we have no such network."""
    model_type = theirs["model_type"]
    found = {ours: theirs[name] for ours, name in SIZES[model_type].items() if "dropout" not in ours}
    activations = {each: ours for ours, each in ACTIVATIONS.items()} | {"gelu_pytorch_tanh": "gelu_tanh"}
    if model_type == "llama":
        activations = {"silu": "swiglu"}
        rope = {"rope_theta": theirs.get("rope_theta", 1e4)} | (theirs.get("rope_scaling") or {})
        rope |= theirs.get("rope_parameters") or {}
        if (form := rope.get("rope_type", "default")) not in ("default", "linear"):
            raise ValueError(f"rope_type={form} must be default or linear")
        found |= dict.fromkeys(("attention_bias", "output_bias"), theirs.get("attention_bias", False))
        found |= {name: theirs.get(name) for name in ("head_dim", "num_key_value_heads")}
        found |= {"rotary_base": float(rope["rope_theta"]), "position_scale": 1 / (rope.get("factor") or 1.0)}
    if (activation := found["activation"]) not in activations:
        raise ValueError(f"the activation {activation} must be {', '.join(activations)}")
    found |= {"activation": activations[activation]} | FACTS["settings"][model_type] | FACTS["settings"].get(kind, {})
    if kind != "classifier":
        found["tie_embeddings"] = theirs.get("tie_word_embeddings", model_type != "llama")
    return found


def _numbered(network: nn.Module) -> nn.Module:
    """Return the network with consecutive numbers, from FIRST on, as its weights."""
    first = FIRST
    for parameter in network.double().requires_grad_(requires_grad=False).parameters():
        last = first + parameter.numel()
        parameter.data, first = torch.arange(first, last, dtype=torch.float64).view_as(parameter), last
    return network


def _weights(path: Path, ids: list[int], vocab_size: int, *, has_one_logit: bool) -> dict[str, Tensor]:
    """Return the weights of a folder as our networks have them: ordered by our ids, with one logit for two classes."""
    weights, rows = read_tensors(path, AGAIN), torch.tensor(ids)
    for name, weight in weights.items():
        if name.endswith(tuple(FACTS["by_id"])) and len(weight) == vocab_size:
            weights[name] = weight[rows]
        elif name.startswith("classifier.") and has_one_logit:
            weights[name] = weight - weight[:1]
        elif name.endswith("embeddings.position_embeddings.weight"):
            types = weights.get(name.replace("position", "token_type"))
            weights[name] = weight if types is None else weight + types[0]  # all tokens have the type 0
    return weights


def _placed(network: nn.Module, numbers: dict[str, Tensor], weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights of our network. numbers: those of the places, by the names of transformers."""
    values = torch.zeros(sum(each.numel() for each in network.parameters()), dtype=torch.float64)
    is_given = values.bool()
    for name, places in numbers.items():
        is_weight = places > FIRST - 0.5
        weight = weights.get(name, weights.get(name.partition(".")[2]))  # GPT2Model and BertModel have no prefix
        if not is_weight.any() or (weight is None and name.startswith(HEADS)):
            continue
        if weight is None or weight.shape != places.shape:
            shape = "missing" if weight is None else tuple(weight.shape)
            raise ValueError(f"the shape of {name} is {shape}, not {tuple(places.shape)}")
        found = (places[is_weight] - FIRST).round().long()
        values[found], is_given[found] = weight[is_weight].double(), True
    is_double = any(each.dtype is torch.float64 for each in weights.values())
    values = values if is_double else values.float()
    named = {name: (each - FIRST).long() for name, each in network.named_parameters(remove_duplicate=False)}
    return {f"network.{name}": values[each] for name, each in named.items() if is_given[each].all()}
