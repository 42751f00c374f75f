"""Writing token after token, with what was read before kept in a cache."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from firstlight.decoding.bare import bare


class Window(Enum):
    """What a generator sees once a text is longer than its context.

    half: it forgets the first half of its context, reads the other half anew, and goes on with the cache: between
    context_length / 2 and context_length tokens are seen. slide: always the last context_length tokens, all read anew
    for each new one (post 2): the better view, at many times the cost, since every position moves.
    """

    half = "half"
    slide = "slide"


class Network(Protocol):
    """What is needed of a generator."""

    context_length: int
    is_causal: bool

    def __call__(self, token_ids: Tensor, cache: Any = None) -> Tensor: ...

    def new_cache(self) -> Any: ...


@torch.inference_mode()
def generate(
    network: Network,
    prompt: Tensor,
    num_tokens: int,
    choose: Callable[[Tensor], Tensor],
    *,
    window: Window = Window.half,
    context_length: int | None = None,
) -> Iterator[Tensor]:
    """Continue a batch of prompts.

    prompt: (batch, length) int, at least one token each, of which the last context_length are read; choose: from logits
    (batch, vocab_size) to ids (batch,); context_length: the network's own, or a shorter view. Yields the new ids,
    (batch,), num_tokens times.
    """
    assert prompt.shape[1] > 0, "a prompt needs a token to begin from"
    length = context_length or network.context_length
    if isinstance(network, nn.Module):
        network = bare(network)
    text = [prompt[:, -length:]]  # in pieces, which are joined only where they are read anew

    def last(count: int) -> Tensor:
        """The end of the text, in one piece."""
        text[:] = [torch.cat(text, dim=1)[:, -length:]]
        return text[0][:, -count:]

    cache = network.new_cache() if network.is_causal else None
    logits = network(text[0], cache)[:, -1]
    for number in range(1, num_tokens + 1):
        token_ids = choose(logits)  # (batch,)
        yield token_ids
        if number == num_tokens:
            return
        text.append(token_ids[:, None])
        if cache is not None and cache.length < length:
            logits = network(text[-1], cache)[:, -1]
        elif cache is None or window is Window.slide:
            logits = network(last(length))[:, -1]
        else:
            cache.clear()
            logits = network(last(max(length // 2, 1)), cache)[:, -1]
