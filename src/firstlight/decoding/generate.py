"""Generation token by token, with a cache of the keys and values of earlier tokens."""

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar, get_args

import torch
from torch import Tensor, nn

AnyNetwork = TypeVar("AnyNetwork")
Window = Literal["half", "slide"]  # see `generate`
WINDOWS: tuple[str, ...] = get_args(Window)


@torch.inference_mode()
def generate(
    network: Any,
    prompt: Tensor,
    num_tokens: int,
    choose: Callable[[Tensor], Tensor],
    *,
    window: Window = "half",
    context_length: int | None = None,
) -> Iterator[Tensor]:
    """Yield the next tokens of a batch of prompts, (batch,) ids, num_tokens times.

    network: a generator with `context_length`, `is_causal` and `new_cache`, as `Generator`; prompt: (batch, length)
    int, at least one token each; only the last context_length tokens are read; choose: returns ids, (batch,), for
    logits, (batch, vocab_size); context_length: None for that of the network, or a smaller number; window: what the
    generator reads when a text is longer than its context.

    With the window `half`, the generator drops the first half of its context, reads the second half again, and
    continues with the cache. It always reads between context_length / 2 and context_length tokens. With `slide`, it
    reads the last context_length tokens again for each new token (post 2). It has more context, but takes many times
    longer, because the position of every token changes.
    """
    assert prompt.shape[1] > 0, "a prompt must have at least one token"
    length = context_length or network.context_length
    network = for_inference(network)
    text = [prompt[:, -length:]]  # in pieces, which are joined only when they are read again

    def last(count: int) -> Tensor:
        """Return the last `count` tokens of the text."""
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
        elif cache is None or window == "slide":
            logits = network(last(length))[:, -1]
        else:
            cache.clear()
            logits = network(last(max(length // 2, 1)), cache)[:, -1]


def for_inference(network: AnyNetwork) -> AnyNetwork:
    """Return a copy of a module that shares its tensors and calls its parts without the overhead of `nn.Module`.

    In the copy, tensors and parts are ordinary attributes, and a call of a part is its `forward`. The search of
    attributes and the preparation of hooks would otherwise take a fifth of the time of a token. Use the copy only to
    read: it does not follow a change of the device. Calls of the copy itself run the hooks of the network. The
    argument is returned unchanged if one of its parts has hooks, or if it is not a module.
    """
    if not isinstance(network, nn.Module) or any(map(_has_hooks, [*network.modules()][1:])):
        return network
    return _copied(network)


def _copied(module: Any) -> Any:
    parts = {name: part and _copied(part) for name, part in module._modules.items()}
    for part in filter(None, parts.values()):
        part.__class__ = _called_directly(part.__class__)
    copied = copy.copy(module)
    copied.__dict__ |= {"_modules": parts, "_compiled_call_impl": None} | parts | module._parameters | module._buffers
    return copied


@functools.cache
def _called_directly(kind: Any) -> type[Any]:
    """Return a subclass of a class of modules. A call of an instance is its `forward`."""
    return type(kind.__name__, (kind,), {"__call__": kind.forward})


def _has_hooks(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)
