"""What the parts of a network do, found out by reading and replacing their values (`firstlight.networks.instrument`).

A part has the name of its block and layer: `blocks.0.attn.2` is the third head of the first block, `blocks.0.mlp` its
feed-forward layer, and `blocks.0` the complete block.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from firstlight.networks.instrument import Hook, activation_names, hooks, points_of, run_with_cache, run_with_hooks
from firstlight.networks.layers import NormOverWords
from firstlight.networks.pooling import AttentionPool, BertPool

REAL_TOKENS = {"blocks": "padding_mask", "encoder": "source_mask", "decoder": "target_mask"}  # arguments of `forward`

Score = Callable[[Tensor], Tensor]


@torch.no_grad()
def logit_lens(network: nn.Module, *inputs: Any) -> dict[str, Tensor]:
    """Return the logits that a network would have if the blocks after each block were left out.

    The vectors after a block go directly to the last norm and the output layer (nostalgebraist 2020, "logit lens").

    Args:
        network: a network with named activations. Of a translator, the blocks are those of the decoder.
        inputs: the arguments of the network.

    Returns:
        The logits by the name of the vectors: before the first block (`blocks.0.hook_resid_pre`), and after each block
        (`blocks.0.hook_resid_post`, …). The last ones are the logits of the network.

    Example:
        >>> import torch
        >>> from firstlight.networks import Generator, GeneratorConfig, logit_lens
        >>> network = Generator(GeneratorConfig(num_layers=2), vocab_size=23).eval()
        >>> [logits.shape for logits in logit_lens(network, torch.tensor([[4, 7, 9]])).values()]
        [torch.Size([1, 3, 23]), torch.Size([1, 3, 23]), torch.Size([1, 3, 23])]
    """
    names = [name for name in _of_last_stack(network) if name.endswith(("hook_resid_pre", "hook_resid_post"))]
    names = [names[0], *(name for name in names if name.endswith("post"))]
    _, cache = run_with_cache(network, *inputs, names_filter=names)
    return {name: _output_with(network, inputs, names[-1], cache[name]) for name in names}


def direct_logit_attribution(network: nn.Module, *inputs: Any, score: Score) -> dict[str, float]:
    """Return what each head and each feed-forward layer adds directly to a logit.

    A part adds to the vectors that the output layer reads, and the output layer is linear if the factors of the norms
    before it are constants. The contributions then sum to the logit (Elhage et al. 2021, "A mathematical framework for
    transformer circuits"). What a part does by changing later parts is not counted.

    Args:
        network: a network with named activations, with LayerNorm, RMSNorm or no norms. Of a translator, the parts are
            those of the decoder.
        inputs: the arguments of the network, of one text or several.
        score: returns the logit, or a difference of logits, for the output of the network: a scalar.

    Returns:
        The contributions by part: `embedding` (tokens, positions and all before the first block), the heads and
        feed-forward layers, and `biases` (of attention, norms and output layer). They sum to the score.

    Raises:
        ValueError: if the network has a norm over the words, or another layer before its output layer.

    Example:
        >>> import torch
        >>> from firstlight.networks import Generator, GeneratorConfig, direct_logit_attribution
        >>> network = Generator(GeneratorConfig(num_heads=2, norm="pre", final_norm=True), vocab_size=23).eval()
        >>> found = direct_logit_attribution(network, torch.tensor([[4, 7, 9]]), score=lambda logits: logits[0, -1, 5])
        >>> list(found)
        ['embedding', 'blocks.0.attn.0', 'blocks.0.attn.1', 'blocks.0.mlp', 'biases']
    """
    points, names = points_of(network), _of_last_stack(network)
    outputs = [names[0], *(name for name in names if name.endswith("_out"))]
    leaves: dict[str, Tensor] = {}
    heads: dict[str, Tensor] = {}

    def cut(value: Tensor, *, hook: Hook) -> Tensor:
        leaves[hook.name] = value.detach().requires_grad_()
        return leaves[hook.name]

    def keep(value: Tensor, *, hook: Hook) -> None:
        heads[_part(hook.name)] = value.detach()

    of_heads = [name for name in names if name.endswith("hook_z")]
    with torch.enable_grad(), _frozen_norms(network), hooks(network, [(of_heads, keep), (outputs, cut)]):
        total = score(network(*inputs))
        gradients = torch.autograd.grad(total, list(leaves.values()), allow_unused=True, materialize_grads=True)
    found: dict[str, float] = {}
    for name, gradient in zip(leaves, gradients, strict=True):
        part = _part(name)
        if part in heads:
            output: Any = points[name].module.output
            of_z = gradient @ output.weight if isinstance(output, nn.Linear) else gradient  # (batch, length, heads · e)
            sums = (of_z.unflatten(-1, heads[part].shape[2:]) * heads[part]).sum(dim=(0, 1, 3))
            found |= {f"{part}.{head}": float(value) for head, value in enumerate(sums.detach())}
        else:
            found["embedding" if name == outputs[0] else part] = float((gradient * leaves[name].detach()).sum())
    return found | {"biases": float(total.detach()) - sum(found.values())}


@torch.no_grad()
def activation_patching(
    network: nn.Module, clean: Sequence[Any], corrupted: Sequence[Any], *, score: Score, step: str = "hook_resid_pre"
) -> dict[str, Tensor]:
    """Return how much of the effect of one text on a score each activation carries.

    The network reads the corrupted text, with one of its activations replaced by that of the clean text (Meng et al.
    2022; Heimersheim & Nanda 2024). 0 is the score of the corrupted text, and 1 that of the clean one.

    Args:
        network: a network with named activations.
        clean: the arguments of the network for one text.
        corrupted: the arguments for another text of the same length.
        score: returns one number for each text, (texts,), for the output of the network.
        step: the end of the names of the activations, such as hook_resid_pre, hook_attn_out, hook_mlp_out or hook_z.

    Returns:
        The shares by the name of the activation: (length,), one for each token; for `hook_z` (heads,), at all tokens.

    Raises:
        ValueError: if the texts differ in length, have the same score, or no activation has this name.

    Example:
        >>> import torch
        >>> from firstlight.networks import Generator, GeneratorConfig, activation_patching
        >>> network = Generator(GeneratorConfig(num_layers=2), vocab_size=23).eval()
        >>> clean, corrupted = (torch.tensor([[4, 7, 9]]),), (torch.tensor([[4, 8, 9]]),)
        >>> found = activation_patching(network, clean, corrupted, score=lambda logits: logits[:, -1, 5])
        >>> [shares.shape for shares in found.values()]
        [torch.Size([3]), torch.Size([3])]
    """
    for one, two in zip(clean, corrupted, strict=True):
        if isinstance(one, Tensor) and one.shape != two.shape:
            raise ValueError(f"the texts have {one.shape[1]} and {two.shape[1]} tokens; pass two of the same length")
    output, cache = run_with_cache(network, *clean, names_filter=lambda name: name.endswith(step))
    high, low = score(output), score(network(*corrupted))
    if torch.equal(high, low):
        raise ValueError(f"both texts have the score {float(low):.4g}; pass texts or a score that differ")
    axis = 2 if step == "hook_z" else 1

    def patched(name: str) -> Tensor:
        count = cache[name].shape[axis]

        def patch(value: Tensor, *, hook: Hook) -> Tensor:
            value = value.clone()
            for place in range(count):  # each row of the batch has another place
                value[place].select(axis - 1, place).copy_(cache[hook.name][0].select(axis - 1, place))
            return value

        found = score(run_with_hooks(network, *_repeated(corrupted, count), fwd_hooks=[(name, patch)]))
        return (found - low) / (high - low)

    return {name: patched(name) for name in cache}


@torch.no_grad()
def mean_ablation(network: nn.Module, *inputs: Any, losses: Score) -> dict[str, Tensor]:
    """Return how the loss of each text changes if a part of the network always has the same output.

    The output of a head or a feed-forward layer is replaced by its mean over the tokens of all texts, and that of a
    block by its input plus its mean change. A mean is closer to what later parts know than zeros.

    Args:
        network: a network with named activations.
        inputs: the arguments of the network, for many texts.
        losses: returns the loss of each text, (texts,), for the output of the network.

    Returns:
        The changes by part, (texts,) each, such as `blocks.0.attn.2` and `blocks.0`. Above 0, the part is useful.

    Example:
        >>> import torch
        >>> from firstlight.networks import Generator, GeneratorConfig, mean_ablation
        >>> network = Generator(GeneratorConfig(num_heads=2), vocab_size=23).eval()
        >>> token_ids = torch.randint(23, (8, 5))
        >>> changes = mean_ablation(network, token_ids, losses=lambda logits: -logits[:, -1, 3])
        >>> list(changes), changes["blocks.0.mlp"].shape
        (['blocks.0.attn.0', 'blocks.0.attn.1', 'blocks.0.mlp', 'blocks.0'], torch.Size([8]))
    """
    steps = ("hook_z", "hook_mlp_out", "hook_resid_pre", "hook_resid_post")
    output, cache = run_with_cache(network, *inputs, names_filter=lambda name: name.endswith(steps))
    base = losses(output)
    given = signature(network.forward).bind(*inputs).arguments

    def mean(name: str, value: Tensor) -> Tensor:
        """Return the mean over the real tokens, of all answers and both orders of a text."""
        real = given.get(REAL_TOKENS[name.partition(".")[0]])
        rows = (value.new_ones(value.shape[:2]) if real is None else real).bool().flatten(0, -2)
        return value[rows.repeat(len(value) // len(rows), 1)].mean(dim=0)

    changes: dict[str, Tensor] = {}
    for name, value in cache.items():
        part = _part(name)
        if name.endswith("hook_z"):
            for head, of_head in enumerate(mean(name, value)):
                constant = value.clone()
                constant[:, :, head] = of_head
                changes[f"{part}.{head}"] = losses(_output_with(network, inputs, name, constant)) - base
        elif name.endswith("hook_mlp_out"):
            changes[part] = losses(_output_with(network, inputs, name, mean(name, value).expand_as(value))) - base
        elif name.endswith("hook_resid_post"):
            before = cache[f"{part}.hook_resid_pre"]
            changes[part] = losses(_output_with(network, inputs, name, before + mean(name, value - before))) - base
    return changes


@torch.no_grad()
def head_scores(network: nn.Module, token_ids: Tensor) -> dict[str, Tensor]:
    """Return how much each head attends as an induction head, to the previous token, and to the same token before.

    On tokens that are repeated, `a b c a b c`, an induction head attends from the second `a` to the first `b`, the
    token that followed the last time (Olsson et al. 2022, "In-context learning and induction heads").

    Args:
        network: a network with `blocks`, such as a `Generator`.
        token_ids: (texts, 2 · count) int; the second half of each text repeats the first one. Random tokens have no
            other structure.

    Returns:
        `induction`, `previous_token` and `duplicate_token`: the mean attention weight to that token, from 0 to 1, of
        each head, (blocks, heads).

    Raises:
        ValueError: if the second half does not repeat the first one.

    Example:
        >>> import torch
        >>> from firstlight.networks import Generator, GeneratorConfig, head_scores
        >>> network = Generator(GeneratorConfig(num_layers=2, num_heads=4), vocab_size=23).eval()
        >>> scores = head_scores(network, torch.randint(23, (16, 10)).repeat(1, 2))
        >>> scores["induction"].shape
        torch.Size([2, 4])
    """
    first, second = token_ids.tensor_split(2, dim=1)
    if not torch.equal(first, second):
        raise ValueError("the second half of token_ids must repeat the first half; pass token_ids.repeat(1, 2)")
    _, cache = run_with_cache(network, token_ids, names_filter=lambda name: name.endswith(".attn.hook_pattern"))
    count = first.shape[1]

    def attended(distance: int, start: int) -> Tensor:
        """Return the mean weight of the token `distance` tokens before, from the queries from `start` on."""
        diagonals = [weights.diagonal(-distance, dim1=-2, dim2=-1) for weights in cache.values()]  # (texts, heads, ·)
        return torch.stack([each[..., start - distance :].mean(dim=(0, -1)) for each in diagonals])

    return {
        "induction": attended(count - 1, count),
        "previous_token": attended(1, 1),
        "duplicate_token": attended(count, count),
    }


@torch.no_grad()
def occlusion(network: nn.Module, token_ids: Tensor, *inputs: Any, score: Score, filler: int) -> Tensor:
    """Return how much the score of a text falls if one of its tokens is replaced (Zeiler & Fergus 2014).

    Args:
        network: a network whose first argument is the token ids.
        token_ids: (1, length) int.
        inputs: further arguments of the network, for one text.
        score: returns one number for each text, (texts,), for the output of the network.
        filler: the id in place of a token, such as that of the unknown word.

    Returns:
        (length,) float, above 0 where a token raises the score.

    Example:
        >>> import torch
        >>> from firstlight.networks import Classifier, ClassifierConfig, occlusion
        >>> network = Classifier(ClassifierConfig(), vocab_size=100, num_outputs=5).eval()
        >>> occlusion(network, torch.tensor([[4, 7, 9]]), score=lambda logits: logits[:, 2], filler=1).shape
        torch.Size([3])
    """
    length = token_ids.shape[1]
    without = token_ids.expand(length, -1).masked_fill(torch.eye(length, dtype=torch.bool), filler)
    found = score(network(torch.cat((token_ids, without)), *_repeated(inputs, length + 1)))
    return found[0] - found[1:]


def _repeated(inputs: Sequence[Any], count: int) -> list[Any]:
    """Return the arguments of a network for one text as those of a batch with `count` times this text."""
    return [each.expand(count, *each.shape[1:]) if isinstance(each, Tensor) else each for each in inputs]


def _of_last_stack(network: nn.Module) -> list[str]:
    """Return the names of the activations of the blocks before the output layer."""
    names = activation_names(network)
    stack = "decoder." if any(name.startswith("decoder.") for name in names) else "blocks."
    return [name for name in names if name.startswith(stack) and name.count(".") > 1]


def _part(name: str) -> str:
    """Return the part of an activation: `blocks.0.attn` for `blocks.0.attn.hook_z` and for `blocks.0.hook_attn_out`."""
    block, _, step = name.rpartition(".")
    return f"{block}.{step.removeprefix('hook_').removesuffix('_out')}" if step.endswith("_out") else block


def _output_with(network: nn.Module, inputs: Sequence[Any], name: str, value: Tensor) -> Any:
    """Return the output of a network if one of its activations has another value."""
    return run_with_hooks(network, *inputs, fwd_hooks=[(name, lambda _value, hook: value)])  # noqa: ARG005


@contextmanager
def _frozen_norms(network: nn.Module) -> Iterator[None]:
    """Treat the factors of norms, and the weights of a pooling by attention, as constants inside a `with` block."""
    with ExitStack() as opened:
        for name, module in network.named_modules():
            if name == "head_layer.linear" or isinstance(module, BertPool | NormOverWords):
                raise ValueError(f"{name} is a {type(module).__name__}, with which logits are no sum of the parts")
            if isinstance(module, nn.LayerNorm | nn.RMSNorm):
                opened.callback(module.register_forward_hook(_frozen).remove)
            if isinstance(module, AttentionPool):
                opened.callback(module.score.register_forward_hook(lambda _m, _i, output: output.detach()).remove)
        yield


def _frozen(norm: Any, inputs: tuple[Tensor], _output: Tensor) -> Tensor:
    """Return the output of a norm, whose gradient is that of the norm with a constant factor."""
    (hidden,) = inputs
    if isinstance(norm, nn.LayerNorm):
        hidden = hidden - hidden.mean(dim=-1, keepdim=True)
    eps = torch.finfo(hidden.dtype).eps if norm.eps is None else norm.eps
    scaled = hidden * (hidden.square().mean(dim=-1, keepdim=True) + eps).rsqrt().detach()
    scaled = scaled if norm.weight is None else scaled * norm.weight
    bias = getattr(norm, "bias", None)
    return scaled if bias is None else scaled + bias
