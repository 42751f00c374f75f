"""Conversion of checkpoints of earlier versions to the current form."""

import re
from collections.abc import MutableMapping
from typing import Any

import torch

from firstlight.earlier_names import current_config

COUNTED = "network.evidence."  # version 0.2.0 stored the counted evidence among the weights of the network
BLOCKS = (  # patterns of names in blocks of version 0.2.0, and the current names
    (r"\.(self_attention|cross_attention|feed_forward)\.transformation\.", r".\1."),
    (r"\.(self_attention|cross_attention|feed_forward)\.(norm)_(before|after)\.", r".\1_\2."),
    (r"\.(self_attention|feed_forward)\.convolution\.", r".\1_convolution."),
)
RENAMED = {
    "network.evidence_projection.weight": "network.feature_projection.weight",
    "network.evidence_head.score.weight": "network.feature_head.score.weight",
    "network.evidence_head.score.bias": "network.feature_head.score.bias",
}


def bring_up_to_date(checkpoint: dict[str, Any], card: dict[str, Any]) -> None:
    """Convert the content of a checkpoint of any version to the current form, in place.

    card: the card of the checkpoint. Damaged parts are unchanged; the checks that follow report them.
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
    for old in list(state):  # all in their order, which is that of the network
        new = RENAMED.get(old, old)
        for pattern, current in BLOCKS if isinstance(new, str) else ():
            new = re.sub(pattern, current, new)
        state[new] = state.pop(old)


def _value(node: Any, *path: str) -> Any:
    """Return the value at a path of keys, or None if a key is missing."""
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node
