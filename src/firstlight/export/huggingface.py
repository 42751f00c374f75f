"""The models of Hugging Face's transformers that have the logits of our networks: their options and weights.

transformers is not imported. A setting of a network that the model does not have is either computed into the weights,
such as a factor or fixed positions, or refused.
"""

import math
import re
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_yaml
from firstlight.kind.registry import KINDS
from firstlight.kind.run import Run
from firstlight.lit.networks import plain
from firstlight.networks.layers import LAYER_NORM_EPS, ScaledEmbedding
from firstlight.networks.parametrization import width_multiplier
from firstlight.text.sentence_tokenizers import BEGIN_ID, END_ID

FACTS: dict[str, dict[str, Any]] = read_yaml(Path(__file__).with_name("transformers.yaml"))
ACTIVATIONS: dict[str, str] = FACTS["activations"]  # ours → that of transformers
SIZES: dict[str, dict[str, str]] = FACTS["sizes"]  # by the model_type of config.json: ours → those of transformers
OTHERS = "use --to safetensors, torch-export or onnx"
NEVER = -1e4  # the bias of [MASK] in the output layer, which firstlight does not score
LINEAR = 2.0**27  # 1 over it is so small that tanh of it is the number itself
Weights = dict[str, Tensor]


class Form(NamedTuple):
    """A model of transformers.

    name: its class; allowed: the values that options of ours may have, where all others may have any; convert: a
    function of a run and of the options of its network that returns the options and the weights of the model.
    """

    name: str
    allowed: dict[str, list[Any]]
    convert: Callable[[Any, Any], tuple[dict[str, Any], Weights]]


def form_of(kind: str, config: Any) -> Form:
    """Return the model of transformers for a network. Raises UserError for a kind without one."""
    of_generator = "llama" if plain(config.positions) == "rotary" else "gpt2"
    form = FORMS.get(of_generator if kind == "generator" else kind)
    if form is None:
        raise UserError(f"--to huggingface has no model for a {KINDS[kind].noun}; {OTHERS}")
    return form


# --- the parts that the models share ---


def _layer(name: str, layer: Any, size: int | None = None, *, factor: float = 1.0) -> Weights:
    """Return the weight and the bias of a linear layer or a norm by a name of transformers.

    A missing bias is 0, and a missing layer of this size is the identity.
    """
    weight = getattr(layer, "weight", None)
    if weight is None:
        width = size or layer.normalized_shape[0]
        weight = torch.eye(width) if size else torch.ones(width)
    bias = getattr(layer, "bias", None)
    bias = weight.new_zeros(len(weight)) if bias is None else bias
    return {f"{name}.weight": weight * factor, f"{name}.bias": bias * factor}


def _attention(names: Iterable[str], attention: Any, dim: int) -> Weights:
    """Return the four projections of an attention by the names of query, key, value and output.

    A scale of the scores other than 1/√head_dim is computed into the queries.
    """
    query, key, value, output = names
    factor = attention.scale * math.sqrt(attention.head_dim)
    found = _layer(query, attention.query, factor=factor) | _layer(key, attention.key) | _layer(value, attention.value)
    return found | _layer(output, attention.output, dim)


def _blocks(blocks: Iterable[Any], model_type: str, dim: int) -> Weights:
    """Return the weights of some blocks by the names of a model of transformers."""
    names, found = FACTS["blocks"][model_type], Weights()
    for number, block in enumerate(blocks):
        weights = Weights()
        for part, projections in names["attentions"].items():
            if (attention := getattr(block, part)) is not None:
                weights |= _attention(projections, attention, dim)
        for part, name in names["layers"].items():
            if (layer := attrgetter(part)(block)) is not None:
                weights |= _layer(name, layer)
        found |= {f"{names['name'].format(number)}.{name}": weight for name, weight in weights.items()}
    return found


def _embedded(embedding: nn.Embedding) -> Tensor:
    """Return the vectors of the tokens, (vocabulary, dim), with the factor of the embedding."""
    return embedding.weight * (embedding.scale if isinstance(embedding, ScaledEmbedding) else 1.0)


def _head(network: Any) -> Tensor:
    """Return the weight of the output layer, with the factor of the maximal update parametrization."""
    weight: Tensor = network.head.weight / width_multiplier(network)
    return weight


def _table(network: Any, config: Any) -> Tensor:
    """Return what the positions add to the embeddings: (context_length, dim)."""
    empty = torch.zeros(1, config.context_length, config.dim, dtype=network.embedding.weight.dtype)
    table: Tensor = network.positions(empty)[0]
    return table


def _is_tied(network: Any) -> bool:
    """Return whether the output layer is the embedding, without a factor."""
    is_same = network.head.weight is network.embedding.weight
    return is_same and not isinstance(network.embedding, ScaledEmbedding) and width_multiplier(network) == 1


def _options(config: Any, model_type: str, vectors: Tensor) -> dict[str, Any]:
    """Return the options that all models have. vectors: of the tokens, (vocabulary, dim)."""
    eps = torch.finfo(vectors.dtype).eps if plain(config.norm_kind) == "rms" else LAYER_NORM_EPS
    computed = {
        "num_layers": config.num_layers * getattr(config, "num_loops", 1),
        "feed_forward_dim": config.resolved_feed_forward_dim,
        "activation": ACTIVATIONS.get(plain(config.activation), "silu"),
        "norm_eps": eps if config.norm_eps is None else float(config.norm_eps),
    }
    named = {theirs: computed.get(ours, getattr(config, ours)) for ours, theirs in SIZES[model_type].items()}
    return {"model_type": model_type, "vocab_size": len(vectors), **named}


# --- GPT-2 ---


def _gpt2(run: Run, config: Any) -> tuple[dict[str, Any], Weights]:
    """Return the options and weights of GPT2LMHeadModel, whose linear layers are (inputs, outputs)."""
    network, words = run.network, _embedded(run.network.embedding)
    is_tied = _is_tied(network)
    options = _options(config, "gpt2", words) | {"embd_pdrop": config.dropout, "tie_word_embeddings": is_tied}
    found = _blocks([*network.blocks] * config.num_loops, "gpt2", config.dim)
    for query in [name for name in found if ".attn.q." in name]:
        parts = [found.pop(query.replace(".q.", f".{part}.")) for part in "qkv"]
        found[query.replace(".q.", ".c_attn.")] = torch.cat(parts)
    weights = {"transformer.wte.weight": words, "transformer.wpe.weight": _table(network, config)}
    weights |= {name: weight.T if weight.ndim == 2 else weight for name, weight in found.items()}
    weights |= _layer("transformer.ln_f", network.final_norm)
    return options, weights | ({} if is_tied else {"lm_head.weight": _head(network)})


# --- Llama ---


def _llama(run: Run, config: Any) -> tuple[dict[str, Any], Weights]:
    """Return the options and weights of LlamaForCausalLM."""
    network = run.network
    is_tied, has_bias = _is_tied(network), config.attention_bias or config.output_bias
    rope = {"rope_type": "default", "rope_theta": config.rotary_base}
    if config.position_scale != 1:
        rope |= {"rope_type": "linear", "factor": 1 / config.position_scale}
    words = _embedded(network.embedding)
    options = _options(config, "llama", words)
    options |= {"num_key_value_heads": config.resolved_num_key_value_heads, "head_dim": config.resolved_head_dim}
    options |= {"rope_parameters": rope, "attention_bias": has_bias, "tie_word_embeddings": is_tied}
    found = _blocks([*network.blocks] * config.num_loops, "llama", config.dim)
    found |= _layer("model.norm", network.final_norm)
    weights = {"model.embed_tokens.weight": words} | ({} if is_tied else {"lm_head.weight": _head(network)})
    for name, weight in found.items():
        if name.endswith("weight") or (has_bias and ".self_attn." in name):
            weights[name] = weight
    return options, weights


# --- BERT ---


def _bert(network: Any, config: Any, words: Tensor) -> tuple[dict[str, Any], Weights]:
    """Return the options and weights of the encoder of BERT. words: (vocabulary, dim)."""
    options = _options(config, "bert", words) | {"type_vocab_size": 2}
    weights = {
        "bert.embeddings.word_embeddings.weight": words,
        "bert.embeddings.position_embeddings.weight": _table(network, config),
        "bert.embeddings.token_type_embeddings.weight": words.new_zeros(2, config.dim),
        **_layer("bert.embeddings.LayerNorm", network.embedding_norm),
    }
    return options, weights | _blocks(network.blocks, "bert", config.dim)


def _masked(run: Run, config: Any) -> tuple[dict[str, Any], Weights]:
    """Return the options and weights of BertForMaskedLM. [MASK] is the last word, and is never predicted."""
    network = run.network
    mask = network.mask_vector * getattr(network.embedding, "scale", 1.0)
    options, weights = _bert(network, config, torch.cat((_embedded(network.embedding), mask[None])))
    bias = network.head.weight.new_zeros(network.vocab_size) if network.head.bias is None else network.head.bias
    head = _head(network)
    weights |= _layer("cls.predictions.transform.dense", network.head_layer.linear)
    weights |= _layer("cls.predictions.transform.LayerNorm", network.head_layer.norm)
    is_tied = _is_tied(network)
    weights["cls.predictions.bias"] = torch.cat((bias, bias.new_full((1,), NEVER)))
    if not is_tied:
        weights["cls.predictions.decoder.weight"] = torch.cat((head, head.new_zeros(1, config.dim)))
        weights["cls.predictions.decoder.bias"] = weights["cls.predictions.bias"]
    return options | {"tie_word_embeddings": is_tied}, weights


def _classifier(run: Run, config: Any) -> tuple[dict[str, Any], Weights]:
    """Return the options and weights of BertForSequenceClassification, which reads the first token.

    It applies tanh to a linear layer of the vector of this token, as model.pooling=bert. For model.pooling=first that
    layer divides by 2²⁷, since tanh(x) = x for so small numbers, and the output layer multiplies by it. One logit of
    two classes becomes two, the first of them 0.
    """
    network, names = run.network, run.metadata["class_names"]
    words = network.projection(_embedded(network.embedding))
    rows = torch.arange(run.tokenizer.vocab_size)
    options, weights = _bert(network, config, words[rows.where(rows < len(words), network.unknown_id)])
    outputs = _layer("classifier", network.head.outputs)
    factor = LINEAR if plain(config.pooling) == "first" else width_multiplier(network)
    outputs["classifier.weight"] = outputs["classifier.weight"] / width_multiplier(network) * factor
    if len(names) == 2:
        outputs = {name: torch.cat((torch.zeros_like(weight), weight)) for name, weight in outputs.items()}
    weights |= _layer("bert.pooler.dense", getattr(network.head.pool, "layer", None), config.dim, factor=1 / factor)
    labels = {"id2label": dict(enumerate(names)), "label2id": {name: i for i, name in enumerate(names)}}
    return options | labels | {"problem_type": "single_label_classification"}, weights | outputs


# --- Marian ---


def _translator(run: Run, config: Any) -> tuple[dict[str, Any], Weights]:
    """Return the options and weights of MarianMTModel.

    Its sinusoid has the sines before the cosines, and ours alternate. So the coordinates of all vectors are reordered.
    """
    network, dim = run.network, config.dim
    order = torch.cat((torch.arange(0, dim, 2), torch.arange(1, dim, 2)))
    sides = {"encoder": network.encoder, "decoder": network.decoder}
    options = _options(config, "marian", network.source_embedding.weight)
    options |= {
        "decoder_vocab_size": network.vocab_size,
        "share_encoder_decoder_embeddings": False,
        **{f"{side}_layers": len(blocks) for side, blocks in sides.items()},
        **{f"{side}_attention_heads": config.num_heads for side in sides},
        **{f"{side}_ffn_dim": config.resolved_feed_forward_dim for side in sides},
        "bos_token_id": BEGIN_ID,
        "decoder_start_token_id": BEGIN_ID,
        "eos_token_id": END_ID,
        "forced_eos_token_id": None,
    }
    weights = {
        "model.encoder.embed_tokens.weight": _embedded(network.source_embedding)[:, order],
        "model.decoder.embed_tokens.weight": _embedded(network.embedding)[:, order],
        "lm_head.weight": _head(network)[:, order],
    }
    bias = network.head.bias
    weights["final_logits_bias"] = (_head(network).new_zeros(network.vocab_size) if bias is None else bias)[None]
    for side, blocks in sides.items():
        weights[f"model.{side}.embed_positions.weight"] = _table(network, config)[:, order]
        for name, weight in _blocks(blocks, "marian", dim).items():
            adds = re.search("out_proj|fc2|norm", name)  # to the vectors, or norms them
            reordered = weight[order] if adds else weight[:, order] if weight.ndim == 2 else weight
            weights[f"model.{side}.{name}"] = reordered
    return options, weights


CONVERT = {"gpt2": _gpt2, "llama": _llama, "masked": _masked, "classifier": _classifier, "translator": _translator}
FORMS = {name: Form(each["class"], each["allowed"], CONVERT[name]) for name, each in FACTS["models"].items()}
