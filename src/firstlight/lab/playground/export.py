"""What the scripts of the page need to compute a network in the browser: its options, and its tensors as float32."""

from typing import Any

import torch
from torch import Tensor, nn

from firstlight.errors import UserError
from firstlight.kind.panel import Panel
from firstlight.kind.registry import KINDS
from firstlight.networks import block, layers, pooling, positions
from firstlight.networks.attention import MultiHeadAttention
from firstlight.networks.config import TransformerConfig
from firstlight.networks.parametrization import OutputMultiplier, width_multiplier

NORMS: dict[type, str] = {nn.LayerNorm: "layer", nn.RMSNorm: "rms", layers.NormOverWords: "over_words"}
PARTS = {  # the modules that network.js computes
    *(nn.Conv1d, nn.Dropout, nn.Embedding, nn.Identity, nn.Linear, nn.ModuleList, *NORMS),
    *(block.Block, block.PostNormBlock, block.GeneralBlock, block.HeadLayer, MultiHeadAttention, OutputMultiplier),
    *(block.FeedForward, block.GatedFeedForward, block.LinearFeedForward),
    *(layers.CausalConvolution, layers.ShortConvolution, layers.ScaledEmbedding, layers.TokenDropout),
    *(positions.SinusoidalPositions, positions.FractionalPositions, positions.LearnedPositions),
    *(positions.NoPositions, positions.RelativePositions, positions.RotaryPositions),
    *(pooling.AttentionPool, pooling.BertPool, pooling.Flatten, pooling.PerToken, pooling.Pooled),
}
TABLE = "positions.table"  # the end of the name of a table, which network.js reads


def exported(panel: Panel) -> tuple[dict[str, Any], bytes]:
    """Return the description of a run for `openNetwork` of network.js, and its tensors.

    Raises UserError for a run that the page cannot compute. The message names the part.
    """
    run, kind, part = panel.run, KINDS[panel.kind], unsupported_part(panel)
    if part is not None:
        raise UserError(f"{run.path}: --export does not support {part}; name another run, or leave out --export")
    config = kind.reader().config_type(**run.config["model"])
    description, tensors = described(run.network, config)
    return {"kind": kind.name, **description, **panel.page_data()}, tensors


def unsupported_part(panel: Panel) -> str | None:
    """Return the name of the first part of a run that the page cannot compute, or None."""
    network, own = panel.run.network, type(panel).network
    if getattr(panel.run, "target_encoding", None) is not None:
        return "data.target_encoding"
    if own is None or type(network) is not own:
        return type(network).__name__
    if panel.run.metadata.get("has_given_tokenizer"):
        return "the tokenizer of another program"
    found = ((name, type(part)) for name, part in network.named_modules() if name)
    return next((f"{part.__name__} ({name})" for name, part in found if part not in PARTS), None)


def described(network: nn.Module, config: TransformerConfig) -> tuple[dict[str, Any], bytes]:
    """Return the options and the names, shapes and offsets of the tensors of a network, and their bytes.

    The bytes are little-endian float32. Tensors with the same values, such as those of tied layers, are stored once.
    """
    attention = next(part for part in network.modules() if isinstance(part, MultiHeadAttention))
    options = {
        "context_length": config.context_length,
        "num_heads": attention.num_heads,
        "num_key_value_heads": attention.num_key_value_heads,
        "head_dim": attention.head_dim,
        "scale": attention.scale,
        "causal": config.causal,
        "norm": config.norm.value,
        "activation": config.activation.value,
        "residual": config.residual,
        "num_loops": getattr(network, "num_loops", 1),
        "pooling": getattr(getattr(config, "pooling", None), "value", None),
        "embedding_scale": getattr(network.embedding, "scale", 1.0),
        "width_multiplier": width_multiplier(network),
        "both_orders": getattr(network, "both_orders", False),
        "unknown_id": getattr(network, "unknown_id", None),
    }
    norms = {name: _norm(part) for name, part in network.named_modules() if type(part) in NORMS}
    stacks = {name: len(part) for name, part in network.named_children() if isinstance(part, nn.ModuleList)}
    places: dict[bytes, int] = {}  # of tensors in the bytes
    tensors, total = [], 0
    for name, value in (dict(network.state_dict()) | _tables(network)).items():
        data = value.detach().float().contiguous().numpy().astype("<f4").tobytes()
        if data not in places:
            places[data], total = total, total + len(data)
        tensors.append([name.replace(f"{TABLE}.weight", TABLE), list(value.shape), places[data]])
    return {"options": options, "norms": norms, "stacks": stacks, "tensors": tensors}, b"".join(places)


def _norm(norm: Any) -> dict[str, Any]:
    return {"kind": NORMS[type(norm)], "eps": torch.finfo(torch.float32).eps if norm.eps is None else norm.eps}


def _tables(network: nn.Module) -> dict[str, Tensor]:
    """Return the computed tables of positions. Those of rotary positions are the same for all heads."""
    tables = {name: table for name, table in network.named_buffers() if name.endswith(TABLE)}
    rotary = next((part for part in network.modules() if isinstance(part, positions.RotaryPositions)), None)
    if rotary is None:
        return tables
    half = rotary.head_dim // 2
    return tables | {"rotary.cos": rotary.cos[:, :half], "rotary.sin": rotary.sin[:, half : 2 * half]}
