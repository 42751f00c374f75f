"""The HTML page, which has a section with a form for each kind of run, and a panel for each run.

Its scripts compute networks in the browser, from their options and their tensors as float32.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from firstlight.errors import UserError
from firstlight.kind.kind import Kind
from firstlight.kind.panel import Panel
from firstlight.kind.registry import KINDS
from firstlight.kind.run import Run
from firstlight.lab import framed, packaged, rendered
from firstlight.networks import block, layers, pooling, positions
from firstlight.networks.attention import MultiHeadAttention
from firstlight.networks.config import TransformerConfig
from firstlight.networks.layers import num_parameters
from firstlight.networks.parametrization import OutputMultiplier, width_multiplier

NETWORK_SCRIPTS = ("tensors.js", "text.js", "network.js", "writing.js")  # in this order
NORMS: dict[type, str] = {nn.LayerNorm: "layer", nn.RMSNorm: "rms", layers.NormOverWords: "over_words"}
PARTS = {  # the modules that network.js computes
    *(nn.Conv1d, nn.Dropout, nn.Embedding, nn.Identity, nn.Linear, nn.ModuleList, *NORMS),
    *(block.Block, block.PostNormBlock, block.GeneralBlock, block.HeadLayer, MultiHeadAttention, OutputMultiplier),
    *(block.FeedForward, block.GatedFeedForward, block.LinearFeedForward),
    *(layers.CausalConvolution, layers.Dropout, layers.ShortConvolution, layers.ScaledEmbedding, layers.TokenDropout),
    *(positions.SinusoidalPositions, positions.FractionalPositions, positions.LearnedPositions),
    *(positions.NoPositions, positions.RelativePositions, positions.RotaryPositions),
    *(pooling.AttentionPool, pooling.BertPool, pooling.Flatten, pooling.PerToken, pooling.Pooled),
}
TABLE = "positions.table"  # the end of the name of a table, which network.js reads


def panel_of(run: Run) -> Panel:
    """Return the panel of a run. Raises UserError for a kind without one."""
    kind = KINDS[run.kind]
    if not kind.has("panel"):
        raise UserError(f"{run.path}: the package {kind.package} has no panel.py; write one, or name another run")
    panel: type[Panel] = kind.get("panel")
    return panel(run)


def page(panels: Sequence[Panel]) -> str:
    """Return the whole page of the server. All texts of a run are escaped."""
    return _filled(panels, '<script src="page.js" defer></script>', "script-src 'self'; connect-src 'self'")


def exported_page(panels: Sequence[Panel]) -> str:
    """Return a page that requires no server: it has its scripts, its style and the networks, as base64 of float32.

    The browser refuses every request of the page, and every script except its own. Raises UserError for a run that the
    page cannot compute.
    """
    runs = [json.dumps(packed(panel)).replace("<", "\\u003c") for panel in panels]  # no text of a run ends an element
    data = [f'<script type="application/json" id="run-{number}">{run}</script>' for number, run in enumerate(runs)]
    script = exported_script()
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    end = "\n".join([*data, f"<script>{script}</script>"])
    return _filled(panels, end, f"script-src 'sha256-{hashed}'", shows_folders=False)


def packed(panel: Panel) -> dict[str, Any]:
    """Return a run for `openSaved` of answers.js. Raises UserError for one that the page cannot compute."""
    description, tensors = exported(panel)
    return {"description": description, "tensors": base64.b64encode(tensors).decode()}


def _filled(panels: Sequence[Panel], end: str, policy: str, *, shows_folders: bool = True) -> str:
    """Return the page with elements at the end of its body. shows_folders: of the runs."""
    kinds = [kind for kind in KINDS.values() if any(panel.kind == kind.name for panel in panels)]
    sections = [_section(kind, panels) for kind in kinds]
    body = f"{rendered('playground/page.html', sections=sections, shows_folders=shows_folders)}\n{end}"
    return framed("firstlight playground", body, ("playground/page.css", "playground/inspector.css"), policy)


def network_script() -> str:
    """Return the script that computes networks in the browser."""
    return "\n".join(packaged(f"playground/{name}") for name in NETWORK_SCRIPTS)


def exported_script() -> str:
    """Return the script of an exported page, which the served page uses too."""
    rest = (packaged(f"playground/{name}.js") for name in ("answers", "steps", "inspector", "page"))
    return "\n".join([network_script(), *rest])


def _section(kind: Kind, panels: Sequence[Panel]) -> dict[str, Any]:
    """Return what the page has of the runs of a kind."""
    mine = [(number, panel) for number, panel in enumerate(panels) if panel.kind == kind.name]
    examples = list(dict.fromkeys(example for _, panel in mine for example in panel.examples()))
    settings = [set(panel.run.folder.read().get("overrides") or ()) for _, panel in mine]
    own = [sorted(each - set.intersection(*settings)) for each in settings]
    shown = [_panel(number, panel, differs) for (number, panel), differs in zip(mine, own, strict=True)]
    form, title = packaged("panel.html", kind.package), mine[0][1].title
    return {"kind": kind, "title": title, "form": form, "examples": examples, "panels": shown}


def _panel(number: int, panel: Panel, differs: Sequence[str]) -> dict[str, Any]:
    """Return what the page has of a run: its task, model and languages, size, optimized metric and context.

    differs: what was typed for this run and not for all runs of its kind. Values with a path are left out.
    """
    run = panel.run
    record, data = run.folder.read(), run.config["data"]
    languages = [str(data[name]) for name in ("source_column", "target_column") if data.get(name)]
    pair = f" ({' → '.join(languages)})" if len(languages) == 2 else ""
    facts = [f"{num_parameters(run.network) + run.num_counted:,} parameters"]
    value = (record.get("metrics") or {}).get(record.get("optimized_metric"))
    if isinstance(value, int | float):
        facts.append(f"{record['optimized_metric']} {value:.4g}")
    facts.append(f"context length {run.config['context_length']:,}")
    facts += [setting for setting in differs if not set("/\\") & set(setting)]
    title = f"{record.get('task')}{pair}, {record.get('model')}"
    can_be_computed, is_sample = unsupported_part(panel) is None, run.data_source == "sample"
    facts_of_run = {"number": number, "title": title, "facts": facts, "folder": run.folder.path}
    return facts_of_run | {"is_sample": is_sample, "can_be_computed": can_be_computed}


# --- a network as data ---


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
        **{name: getattr(config, name) for name in ("context_length", "causal", "residual")},
        **{name: getattr(attention, name) for name in ("num_heads", "num_key_value_heads", "head_dim", "scale")},
        "norm": config.norm.value,
        "activation": config.activation.value,
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
