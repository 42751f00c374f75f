"""How much arithmetic a training is, counted without doing it."""

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from firstlight.lit.networks import build_network


def training_flops(config: Any, sizes: dict[str, int], num_tokens: int) -> int:
    """The floating-point operations of matrix products that training on num_tokens takes, forward and backward.

    config: a checked network's; sizes: as build_network wants them. Texts are taken to fill the context. Looking up
    embeddings counts nothing, by which this is far below the usual 6 × parameters × tokens where most parameters are
    embeddings (Kaplan et al., 2020, leave them out too).
    """
    network = repr((config, sizes))
    if network not in _counted:
        _counted[network] = _flops_of_a_text(config, sizes)
    return round(_counted[network] / config.context_length * num_tokens)


_counted: dict[str, int] = {}  # by network: the jobs of a sweep often train the same


def _flops_of_a_text(config: Any, sizes: dict[str, int]) -> int:
    token_ids = torch.zeros(1, config.context_length, dtype=torch.long, device="meta")
    num_features = sizes.get("num_features")
    features = torch.zeros(1, config.context_length, num_features, device="meta") if num_features else None
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        build_network(config, **sizes)(*config.inputs(token_ids, features)).sum().backward()
    return counter.get_total_flops()
