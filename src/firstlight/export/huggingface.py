"""The models of Hugging Face's transformers that have the logits of our networks: their options and weights.

transformers is not imported. A setting of a network that the model does not have is either computed into the weights,
such as a factor or fixed positions, or refused.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from firstlight.errors import UserError
from firstlight.kind.registry import KINDS
from firstlight.kind.run import Run
from firstlight.lit.networks import plain
from firstlight.networks.layers import LAYER_NORM_EPS, ScaledEmbedding
from firstlight.networks.parametrization import width_multiplier
from firstlight.text.sentence_tokenizers import BEGIN_ID, END_ID

Weights = dict[str, Tensor]
ACTIVATIONS = {  # ours → that of transformers
    **{name: name for name in ("relu", "gelu", "silu", "tanh", "sigmoid", "linear")},
    "gelu_tanh": "gelu_new",
    "relu_squared": "relu2",
}
NEVER = -1e4  # the bias of [MASK] in the output layer, which firstlight does not score
LINEAR = 2.0**27  # 1 over it is so small that tanh of it is the number itself
SIZES = (
    *("dim", "num_layers", "num_heads", "feed_forward_dim", "context_length"),
    *("dropout", "attention_dropout", "activation", "norm_eps"),
)
OF_BERT_AND_LLAMA = "hidden_size num_hidden_layers num_attention_heads intermediate_size max_position_embeddings"
NAMES = {  # of SIZES in config.json, by its model_type; - where it has none
    "gpt2": "n_embd n_layer n_head n_inner n_positions resid_pdrop attn_pdrop activation_function layer_norm_epsilon",
    "llama": f"{OF_BERT_AND_LLAMA} - attention_dropout hidden_act rms_norm_eps",
    "bert": f"{OF_BERT_AND_LLAMA} hidden_dropout_prob attention_probs_dropout_prob hidden_act layer_norm_eps",
    "marian": "d_model - - - max_position_embeddings dropout attention_dropout activation_function -",
}
TABLES = ("none", "learned", "sinusoidal", "fraction")  # positions that are one vector for each place


class Form(NamedTuple):
    """A model of transformers.

    name: its class; allowed: the values that options of ours may have, where all others may have any; convert: a
    function of a run and of the options of its network that returns the options and the weights of the model.
    """

    name: str
    allowed: dict[str, tuple[Any, ...]]
    convert: Callable[[Any, Any], tuple[dict[str, Any], Weights]]


def form_of(kind: str, config: Any) -> Form:
    """Return the model of transformers for a network. Raises UserError for a kind without one."""
    if kind == "generator":
        return LLAMA if plain(config.positions) == "rotary" else GPT2
    if kind not in FORMS:
        raise UserError(
            f"--to huggingface has no model for a {KINDS[kind].noun}; use --to safetensors, torch-export or onnx"
        )
    return FORMS[kind]


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


def names_of(model_type: str) -> dict[str, str]:
    """Return the names of the options that a model of transformers has, by ours."""
    pairs = zip(SIZES, NAMES[model_type].split(), strict=True)
    return {ours: theirs for ours, theirs in pairs if theirs != "-"}


def _options(config: Any, model_type: str, vectors: Tensor) -> dict[str, Any]:
    """Return the options that all models have. vectors: of the tokens, (vocabulary, dim)."""
    eps = torch.finfo(vectors.dtype).eps if plain(config.norm_kind) == "rms" else LAYER_NORM_EPS
    activation = ACTIVATIONS.get(plain(config.activation), "silu")
    values = (
        *(config.dim, config.num_layers * getattr(config, "num_loops", 1), config.num_heads),
        *(config.resolved_feed_forward_dim, config.context_length, config.dropout, config.attention_dropout),
        *(activation, eps if config.norm_eps is None else float(config.norm_eps)),
    )
    of_ours = dict(zip(SIZES, values, strict=True))
    named = {theirs: of_ours[ours] for ours, theirs in names_of(model_type).items()}
    return {"model_type": model_type, "vocab_size": len(vectors), **named}


# --- GPT-2 ---


def _gpt2(run: Run, config: Any) -> tuple[dict[str, Any], Weights]:
    """Return the options and weights of GPT2LMHeadModel, whose linear layers are (inputs, outputs)."""
    network = run.network
    is_tied = _is_tied(network)
    words = _embedded(network.embedding)
    options = _options(config, "gpt2", words)
    options |= {"embd_pdrop": config.dropout, "tie_word_embeddings": is_tied}
    weights = {"wte.weight": words, "wpe.weight": _table(network, config)}
    weights |= _layer("ln_f", network.final_norm)
    for number, block in enumerate([*network.blocks] * config.num_loops):
        parts = ("attn.q", "attn.k", "attn.v", "attn.c_proj")
        found = _attention(parts, block.self_attention, config.dim)
        found |= _layer("mlp.c_fc", block.feed_forward.expand) | _layer("mlp.c_proj", block.feed_forward.contract)
        for kind in ("weight", "bias"):
            found[f"attn.c_attn.{kind}"] = torch.cat([found.pop(f"{name}.{kind}") for name in parts[:3]])
        found = {name: weight.T if weight.ndim == 2 else weight for name, weight in found.items()}
        found |= _layer("ln_1", block.self_attention_norm) | _layer("ln_2", block.feed_forward_norm)
        weights |= {f"h.{number}.{name}": weight for name, weight in found.items()}
    weights = {f"transformer.{name}": weight for name, weight in weights.items()}
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
    weights = {"model.embed_tokens.weight": words}
    weights |= {} if is_tied else {"lm_head.weight": _head(network)}
    norms = {"model.norm": network.final_norm}
    for number, block in enumerate([*network.blocks] * config.num_loops):
        name, mlp = f"model.layers.{number}", block.feed_forward
        norms |= {f"{name}.input_layernorm": block.self_attention_norm}
        norms |= {f"{name}.post_attention_layernorm": block.feed_forward_norm}
        parts = [f"{name}.self_attn.{part}_proj" for part in "qkvo"]
        found = _attention(parts, block.self_attention, config.dim)
        weights |= {each: weight for each, weight in found.items() if has_bias or each.endswith("weight")}
        for theirs, ours in (("gate", mlp.gate), ("up", mlp.expand), ("down", mlp.contract)):
            weights[f"{name}.mlp.{theirs}_proj.weight"] = ours.weight
    for name, norm in norms.items():
        weights[f"{name}.weight"] = _layer(name, norm)[f"{name}.weight"]
    return options, weights


# --- BERT ---


def _bert(network: Any, config: Any, words: Tensor) -> tuple[dict[str, Any], Weights]:
    """Return the options and weights of the encoder of BERT. words: (vocabulary, dim)."""
    options = _options(config, "bert", words) | {"type_vocab_size": 2}
    weights = {
        "embeddings.word_embeddings.weight": words,
        "embeddings.position_embeddings.weight": _table(network, config),
        "embeddings.token_type_embeddings.weight": words.new_zeros(2, config.dim),
        **_layer("embeddings.LayerNorm", network.embedding_norm),
    }
    for number, block in enumerate(network.blocks):
        name = f"encoder.layer.{number}"
        parts = [f"{name}.attention.{part}" for part in ("self.query", "self.key", "self.value", "output.dense")]
        weights |= _attention(parts, block.self_attention, config.dim)
        weights |= _layer(f"{name}.attention.output.LayerNorm", block.self_attention_norm)
        weights |= _layer(f"{name}.intermediate.dense", block.feed_forward.expand)
        weights |= _layer(f"{name}.output.dense", block.feed_forward.contract)
        weights |= _layer(f"{name}.output.LayerNorm", block.feed_forward_norm)
    return options, {f"bert.{name}": weight for name, weight in weights.items()}


def _bert_of_masks(run: Run, config: Any) -> tuple[dict[str, Any], Weights]:
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


def _bert_of_classes(run: Run, config: Any) -> tuple[dict[str, Any], Weights]:
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


def _marian(run: Run, config: Any) -> tuple[dict[str, Any], Weights]:
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
        for number, block in enumerate(blocks):
            name = f"model.{side}.layers.{number}"
            parts = {"self_attn": (block.self_attention, block.self_attention_norm)}
            if block.cross_attention is not None:
                parts["encoder_attn"] = (block.cross_attention, block.cross_attention_norm)
            norms = {"final_layer_norm": block.feed_forward_norm}
            for part, (attention, norm) in parts.items():
                names = [f"{name}.{part}.{each}_proj" for each in ("q", "k", "v", "out")]
                found = _attention(names, attention, dim)
                weights |= {each: weight[:, order] if weight.ndim == 2 else weight for each, weight in found.items()}
                weights[f"{names[3]}.weight"] = found[f"{names[3]}.weight"][order]
                weights[f"{names[3]}.bias"] = found[f"{names[3]}.bias"][order]
                norms[f"{part}_layer_norm"] = norm
            for part, norm in norms.items():
                weights |= {each: weight[order] for each, weight in _layer(f"{name}.{part}", norm).items()}
            weights |= _layer(f"{name}.fc1", block.feed_forward.expand)
            weights[f"{name}.fc1.weight"] = weights[f"{name}.fc1.weight"][:, order]
            weights |= {
                each: weight[order] for each, weight in _layer(f"{name}.fc2", block.feed_forward.contract).items()
            }
    return options, weights


# --- which settings each model has ---

OF_ALL: dict[str, tuple[Any, ...]] = {
    "_target_": (None,),
    "attention": (None,),
    "residual": (True,),
    "feed_forward": ("mlp",),
}
OF_TABLES: dict[str, tuple[Any, ...]] = OF_ALL | {
    "head_dim": (None,),
    "num_key_value_heads": (None,),
    "activation": (*ACTIVATIONS,),
    "norm_kind": ("layer",),
}
CAUSAL = {
    "causal": (True,),
    "embedding_norm": (False,),
    "norm": ("pre",),
    "final_norm": (True,),
    "head_bias": (False,),
    "causal_convolution": (None,),
}
AFTER = {"norm": ("post",), "final_norm": (False,)}
OF_BERT = OF_TABLES | AFTER | {"positions": TABLES, "embedding_norm": (True,), "convolution": (None,)}
OF_LLAMA = {"positions": ("rotary",), "norm_kind": ("rms",), "activation": ("swiglu",)}
OF_MARIAN = {
    "positions": ("sinusoidal",),
    "position_scale": (1.0,),
    "first_position": (0,),
    "embedding_norm": (False,),
    "norm_eps": (None, LAYER_NORM_EPS),
}
OF_CLASSES = {"architecture": ("transformer",), "pooling": ("bert", "first"), "causal": (False,)}
GPT2 = Form("GPT2LMHeadModel", OF_TABLES | CAUSAL | {"positions": TABLES}, _gpt2)
LLAMA = Form("LlamaForCausalLM", OF_ALL | CAUSAL | OF_LLAMA, _llama)
FORMS = {
    "masked": Form("BertForMaskedLM", OF_BERT | {"head_layer": (True,)}, _bert_of_masks),
    "classifier": Form("BertForSequenceClassification", OF_BERT | OF_CLASSES, _bert_of_classes),
    "translator": Form("MarianMTModel", OF_TABLES | AFTER | OF_MARIAN, _marian),
}
