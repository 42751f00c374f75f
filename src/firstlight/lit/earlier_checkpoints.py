"""Checkpoints of earlier versions, read as those of this version."""

from collections.abc import MutableMapping
from typing import Any

import torch

from firstlight.earlier_names import current_config

COUNTED = "network.evidence."  # version 0.2.0 kept the counted evidence among the weights of the network
RENAMED = {
    "network.evidence_projection.weight": "network.feature_projection.weight",
    "network.evidence_head.score.weight": "network.feature_head.score.weight",
    "network.evidence_head.score.bias": "network.feature_head.score.bias",
}


def bring_up_to_date(checkpoint: dict[str, Any], card: dict[str, Any]) -> None:
    """Change the content of a checkpoint of any version into that of this version, in place.

    card: that of the checkpoint. What is damaged stays as it is, and whoever opens the checkpoint complains of it.
    """
    if "config" in card:
        card["config"] = current_config(card["config"])
    state = checkpoint["state_dict"]
    if not isinstance(state, MutableMapping):
        return
    counted = [name for name in state if str(name).startswith(COUNTED)]
    if counted:
        card["evidence"] = {name.removeprefix(COUNTED): state.pop(name) for name in counted}
        shrinkage = _value(card, "config", "data", "evidence_shrinkage")
        if isinstance(shrinkage, int | float):
            card["evidence"]["shrinkage"] = torch.tensor(shrinkage, dtype=torch.float64)
    for old, new in RENAMED.items():
        if old in state:
            state[new] = state.pop(old)


def _value(node: Any, *path: str) -> Any:
    """The value below a path of keys; None where there is none."""
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node
