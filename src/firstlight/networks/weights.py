"""What attends to what: the attention weights of a network, collected while it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from firstlight.networks.attention import MultiHeadAttention


@contextmanager
def attention_weights(network: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the weights of every attention that runs inside the `with`, under its name in the network.

    Each is (batch, heads, queries, keys), of its last call; every attention is computed twice. Not with a cache.
    """
    weights: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def hook(attention: Any, arguments: tuple[Any, ...], options: dict[str, Any], _: Tensor) -> None:
            options = dict(options)
            assert options.pop("cache", None) is None, "with a cache, the weights of one token are all there is"
            with torch.no_grad():
                weights[name] = attention.forward_with_weights(*arguments, **options)[1]

        return hook

    attentions = [(name, module) for name, module in network.named_modules() if isinstance(module, MultiHeadAttention)]
    hooks = [attention.register_forward_hook(keep(name), with_kwargs=True) for name, attention in attentions]
    try:
        yield weights
    finally:
        for hook in hooks:
            hook.remove()
