"""Attention weights of a network."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from firstlight.networks.attention import MultiHeadAttention


@contextmanager
def attention_weights(network: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Collect the attention weights of every `MultiHeadAttention` that runs inside a `with` block.

    Each attention is computed a second time to obtain its weights. Call the network without a cache.

    Args:
        network: a network with `MultiHeadAttention` modules.

    Yields:
        A dict from the name of each module to its weights at its last call, (batch, heads, queries, keys) float. Each
        row sums to 1, or to 0 if the mask allows no key.

    Example:
        >>> import torch
        >>> from firstlight.networks import Classifier, ClassifierConfig, attention_weights
        >>> network = Classifier(ClassifierConfig(), vocab_size=100, num_outputs=5).eval()
        >>> with attention_weights(network) as weights:
        ...     logits = network(torch.tensor([[4, 7, 9]]))
        >>> {name: each.shape for name, each in weights.items()}
        {'blocks.0.self_attention.transformation': torch.Size([1, 4, 3, 3])}
    """
    weights: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def hook(attention: Any, arguments: tuple[Any, ...], options: dict[str, Any], _: Tensor) -> None:
            options = dict(options)
            assert options.pop("cache", None) is None, "with a cache, only the weights of the new tokens are available"
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
