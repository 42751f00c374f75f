"""Sampling of the next token, and generation with a cache of the keys and values of earlier tokens."""

import copy
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import torch
from torch import Tensor, nn

from firstlight.choices import require
from firstlight.spelling import option

AnyNetwork = TypeVar("AnyNetwork")
Window = Literal["half", "slide", "roll"]  # see `generate`
WINDOWS: tuple[str, ...] = get_args(Window)


@dataclass(frozen=True)
class Sampling:
    """Options for choosing the next token.

    temperature: a value below 1 sharpens the distribution, a value above 1 flattens it; top_k: draw from the k most
    likely tokens; top_p: draw from the most likely tokens whose probabilities together reach p ("nucleus", Holtzman et
    al. 2020); greedy: always choose the most likely token; never: ids that are never chosen.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    greedy: bool = False
    never: Sequence[int] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if a value is out of range."""
        if not 0 < self.temperature < math.inf:
            remedy = f"for the most likely token, use {option('greedy')}"
            raise ValueError(f"temperature={self.temperature:g} must be above 0; {remedy}")
        require(self.top_k is None or self.top_k >= 1, f"top_k={self.top_k} must be at least 1")
        if self.top_p is not None:
            require(0 < self.top_p <= 1, f"top_p={self.top_p:g} must be above 0 and at most 1")

    def choose(self, logits: Tensor, random: torch.Generator | None = None) -> Tensor:
        """Return the chosen ids, (batch,), for logits, (batch, vocab_size). Raises ValueError if logits are NaN."""
        if self.greedy:
            return self._possible(logits).argmax(dim=1)
        probabilities = self.probabilities(logits)
        # as torch.multinomial, without its slow checks: the highest p(i) / exponential(1) is at i with probability p(i)
        race = torch.empty_like(probabilities).exponential_(generator=random)
        highest, chosen = (probabilities / race).max(dim=1)
        if highest.isnan().any():
            raise ValueError("the scores of the network are NaN; its weights are damaged or it diverged")
        return chosen

    def probabilities(self, logits: Tensor) -> Tensor:
        """Return the probabilities from which the next token is drawn: (batch, vocab_size). Each row sums to 1."""
        scores = self._possible(logits).to(finest(logits.device))
        if self.temperature != 1:
            scores = (scores - scores.amax(dim=1, keepdim=True)) / self.temperature  # at most 0: no overflow
        if self.top_k is not None and self.top_k < scores.shape[1]:
            order = scores.argsort(dim=1, descending=True, stable=True)  # of equal scores the first, as in argmax
            scores = scores.scatter(1, order[:, self.top_k :], -math.inf)
        if self.top_p is not None and self.top_p < 1:
            scores = nucleus(scores, self.top_p)
        return scores.softmax(dim=1).to(logits.dtype)

    def _possible(self, logits: Tensor) -> Tensor:
        if not self.never:
            return logits
        never = torch.tensor(list(self.never), device=logits.device)
        return logits.index_fill(1, never, -math.inf)


def finest(device: torch.device) -> torch.dtype:
    """Return the most precise type of a device. An Apple GPU has no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def nucleus(scores: Tensor, top_p: float) -> Tensor:
    """Return the scores with -inf for all but the most likely tokens that together reach top_p: (batch, vocab_size)."""
    ordered, order = scores.sort(dim=1, descending=True, stable=True)
    shares = ordered.softmax(dim=1)
    before = shares.cumsum(dim=1) - shares  # it is 0 for the most likely token, which is always kept
    return scores.masked_fill((before >= top_p).scatter(1, order, before >= top_p), -math.inf)


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
    reads the last context_length tokens again for each new token (post 2, plays). It has more context, but takes many
    times longer, because the position of every token changes. With `roll`, it forgets the oldest token of the cache for
    each new one. In a network of one block without a convolution, this equals `slide` but for rounding. In others, the
    kept tokens have been computed with those that are forgotten, as in sliding-window attention. Raises ValueError for
    `roll` with positions that are added to the embeddings.
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
    if window == "roll" and cache is not None and not getattr(network, "moves_positions", False):
        raise ValueError("window=roll requires model.positions=rotary, relative or none; use half or slide")
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
        elif window == "roll":
            network.forget_oldest(cache)
            logits = network(text[-1], cache)[:, -1]
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
