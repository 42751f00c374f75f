"""The number of operations of a training, counted without computing them."""

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from firstlight.lit.networks import build_network


def training_flops(config: Any, sizes: dict[str, int], num_tokens: int) -> int:
    """Return the number of floating-point operations of all matrix products, forward and backward, for num_tokens.

    Every text is assumed to fill the context. The lookup of embeddings is not counted. The result is therefore far
    below the usual 6 × parameters × tokens if most parameters are embeddings (Kaplan et al., 2020, exclude them too).

    config: The configuration of a network; sizes: the other arguments of build_network.
    """
    network = repr((config, sizes))
    if network not in _counted:
        _counted[network] = _flops_of_a_text(config, sizes)
    return round(_counted[network] / config.context_length * num_tokens)


_counted: dict[str, int] = {}  # by network, since the jobs of a sweep often train the same one


def _flops_of_a_text(config: Any, sizes: dict[str, int]) -> int:
    shape = (1, 1, config.context_length) if sizes.get("choices") else (1, config.context_length)
    token_ids = torch.zeros(shape, dtype=torch.long, device="meta")
    num_features = sizes.get("num_features")
    features = torch.zeros(1, config.context_length, num_features, device="meta") if num_features else None
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        build_network(config, **sizes)(*config.inputs(token_ids, features)).sum().backward()
    return counter.get_total_flops()
