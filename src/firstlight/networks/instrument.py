"""Named activations of a network, which can be read and replaced while it runs.

The names are those of TransformerLens: of `HookedTransformer` for networks with one stack of blocks, and of
`HookedEncoderDecoder` for translators. Without an open `hooks`, networks run as if this module did not exist.
"""

import difflib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

from torch import Tensor, nn

from firstlight.choices import listed
from firstlight.networks.attention import MultiHeadAttention, watching
from firstlight.networks.block import Block

# The steps of MultiHeadAttention by the method that computes them.
ATTENTION_STEPS = {"project": ("hook_q", "hook_k", "hook_v"), "attend": ("hook_attn_scores", "hook_pattern", "hook_z")}
FEED_FORWARD_STEPS = {  # by the part of a feed-forward layer that reads or computes them
    "gate": ("output", "hook_pre"),
    "expand": ("output", "hook_pre"),
    "linear": ("output", "hook_pre"),
    "contract": ("input", "hook_post"),
}
STACKS = {  # by their names: the names of the module that reads the embedding, of the last norm, and of its output
    "blocks": ("", "positions", "final_norm", "ln_final"),
    "encoder": ("encoder.", "source_positions", "encoder_norm", "encoder_final_ln"),
    "decoder": ("decoder.", "positions", "decoder_norm", "decoder_final_ln"),
}


class Point(NamedTuple):
    """The place of an activation: the input or the output of a module, or a step that its `watch` receives.

    call: the number of the call of the module, from 0 to calls - 1, for blocks that are applied several times.
    """

    module: nn.Module
    step: str
    call: int = 0
    calls: int = 1


@dataclass(frozen=True)
class Hook:
    """The argument `hook` of a function of `fwd_hooks`. name: the name of the activation."""

    name: str

    def layer(self) -> int:
        """Return the number of the block. Raises ValueError for an activation outside the blocks."""
        number = self.name.partition(".")[2].partition(".")[0]
        if not number.isdecimal():
            raise ValueError(f"{self.name} is outside the blocks, so it has no layer")
        return int(number)


HookFunction = Callable[..., Tensor | None]  # (value, *, hook), returns the new value, or None for no change
NamesFilter = str | Iterable[str] | Callable[[str], bool] | None


class ActivationCache(dict[str, Tensor]):
    """Activations by name. `cache["pattern", 0]` is `cache["blocks.0.attn.hook_pattern"]`.

    Example:
        >>> import torch
        >>> from firstlight.networks import ActivationCache
        >>> cache = ActivationCache({"blocks.0.attn.hook_pattern": torch.eye(2)})
        >>> cache["pattern", 0]
        tensor([[1., 0.],
                [0., 1.]])
    """

    def __missing__(self, key: Any) -> Tensor:
        names = [key]
        if isinstance(key, tuple):
            step, layer = key
            names = [f"blocks.{layer}.{part}hook_{step}" for part in ("attn.", "mlp.", "")]
        found = next((name for name in names if name in self), None)
        if found is None:
            raise KeyError(_unknown(names[-1], self))
        return self[found]


def activation_names(network: nn.Module) -> list[str]:
    """Return the names of all activations of a network, block by block.

    Blocks that are applied several times (`num_loops`) have consecutive numbers, as if they were different blocks.

    Args:
        network: a `Classifier`, `Generator`, `EncoderDecoder` or `MaskedLanguageModel`, or your own network whose
            `blocks` are made by `build_block`.

    Raises:
        ValueError: if the network has no such blocks, as an LSTM.

    Example:
        >>> from firstlight.networks import Classifier, ClassifierConfig, activation_names
        >>> names = activation_names(Classifier(ClassifierConfig(), vocab_size=100, num_outputs=5))
        >>> names[:3], names[-1]
        (['hook_embed', 'blocks.0.hook_resid_pre', 'blocks.0.ln1.hook_normalized'], 'blocks.0.hook_resid_post')
    """
    return list(points_of(network))


@contextmanager
def hooks(network: nn.Module, fwd_hooks: Iterable[tuple[NamesFilter, HookFunction]]) -> Iterator[None]:
    """Call functions with activations of a network, inside a `with` block. What they return replaces the activation.

    Blocks can be nested; the functions of the inner block receive what those of the outer one returned. A compiled
    network runs uncompiled inside the block. No function remains after the block, also if it ends with an exception.

    Args:
        network: a network with named activations.
        fwd_hooks: pairs of a name, several names or a function that selects names, and a function
            `fn(value, *, hook)`. It returns a tensor of the same shape, or None to leave the activation as it is;
            `hook.name` is the name of the activation, and `hook.layer()` the number of its block.

    Raises:
        ValueError: if a name does not exist, or a function returns a tensor of another shape.

    Example:
        >>> import torch
        >>> from firstlight.networks import Generator, GeneratorConfig, hooks
        >>> network = Generator(GeneratorConfig(num_layers=2), vocab_size=23).eval()
        >>> def remove_first_head(z, *, hook):
        ...     z[:, :, 0] = 0  # (batch, length, heads, head_dim)
        ...     return z
        >>> with hooks(network, [("blocks.1.attn.hook_z", remove_first_head)]):
        ...     network(torch.tensor([[4, 7, 9]])).shape
        torch.Size([1, 3, 23])
    """
    points = points_of(network)
    wanted = [(name, function) for names, function in fwd_hooks for name in _chosen(names, points)]
    with ExitStack() as opened:
        for module in network.modules():
            if (compiled := module._compiled_call_impl) is not None:
                opened.callback(setattr, module, "_compiled_call_impl", compiled)
                module._compiled_call_impl = None  # otherwise each hook recompiles it
        for name, function in wanted:
            _install(opened, points[name], Hook(name), function)
        yield


def run_with_hooks(network: nn.Module, *inputs: Any, fwd_hooks: Iterable[tuple[NamesFilter, HookFunction]] = ()) -> Any:
    """Return the output of a network, with functions that read or replace its activations.

    Args:
        network: a network with named activations.
        inputs: the arguments of the network.
        fwd_hooks: as in `hooks`, which raises the same errors.

    Returns:
        The output of the network.

    Example:
        >>> import torch
        >>> from firstlight.networks import Generator, GeneratorConfig, run_with_hooks
        >>> network = Generator(GeneratorConfig(), vocab_size=23).eval()
        >>> def no_feed_forward(output, *, hook):
        ...     return torch.zeros_like(output)
        >>> fwd_hooks = [("blocks.0.hook_mlp_out", no_feed_forward)]
        >>> run_with_hooks(network, torch.tensor([[4, 7, 9]]), fwd_hooks=fwd_hooks).shape
        torch.Size([1, 3, 23])
    """
    with hooks(network, fwd_hooks):
        return network(*inputs)


def run_with_cache(network: nn.Module, *inputs: Any, names_filter: NamesFilter = None) -> tuple[Any, ActivationCache]:
    """Return the output of a network, and copies of its activations.

    Args:
        network: a network with named activations.
        inputs: the arguments of the network.
        names_filter: a name, several names, or a function that selects names; None: all activations.

    Returns:
        The output of the network, and a dict from names to detached tensors. Queries, keys, values and the outputs of
        heads (`attn.hook_q`, `hook_k`, `hook_v`, `hook_z`) have the shape (batch, length, heads, head_dim), scores and
        attention weights (`attn.hook_attn_scores`, `hook_pattern`) (batch, heads, queries, keys), and all others
        (batch, length, size).

    Raises:
        ValueError: if a name does not exist, or the function selects none.

    Example:
        >>> import torch
        >>> from firstlight.networks import Generator, GeneratorConfig, run_with_cache
        >>> network = Generator(GeneratorConfig(num_layers=2), vocab_size=23).eval()
        >>> logits, cache = run_with_cache(network, torch.tensor([[4, 7, 9]]))
        >>> cache["blocks.1.attn.hook_pattern"].shape, cache["resid_post", 1].shape
        (torch.Size([1, 4, 3, 3]), torch.Size([1, 3, 32]))
    """
    cache = ActivationCache()

    def keep(value: Tensor, *, hook: Hook) -> None:
        cache[hook.name] = value.detach().clone()

    return run_with_hooks(network, *inputs, fwd_hooks=[(names_filter, keep)]), cache


def points_of(network: nn.Module) -> dict[str, Point]:
    """Return the place of each activation by its name, block by block. Raises ValueError for other networks."""
    points: dict[str, Point] = {}
    for stack, (prefix, positions, norm, norm_name) in STACKS.items():
        blocks = getattr(network, stack, None)
        if not isinstance(blocks, nn.ModuleList) or not all(isinstance(block, Block) for block in blocks):
            continue
        first = getattr(network, "convolution", None) or getattr(network, positions, None)
        if first is not None:
            points[f"{prefix}hook_embed"] = Point(first, "input")
        loops = getattr(network, "num_loops", 1)
        for call in range(loops):
            for number, block in enumerate(blocks):
                for name, point in _points_of_block(block).items():
                    points[f"{stack}.{call * len(blocks) + number}.{name}"] = point._replace(call=call, calls=loops)
        last: Any = getattr(network, norm, None)
        if _computes(last):
            points[f"{norm_name}.hook_normalized"] = Point(last, "output")
    if not points:
        problem = f"a {type(network).__name__} has no blocks whose activations have names"
        raise ValueError(f"{problem}; pass a Classifier, a Generator, an EncoderDecoder or a MaskedLanguageModel")
    return points


def _points_of_block(block: Any) -> dict[str, Point]:
    layers = [  # the layer, its part of the names, and the vectors before it
        ("self_attention", "attn", "hook_resid_pre"),
        ("cross_attention", "cross_attn", "hook_resid_mid"),
        ("feed_forward", "mlp", "hook_resid_mid" if block.cross_attention is None else "hook_resid_mid_cross"),
    ]
    points: dict[str, Point] = {}
    number = 1
    for layer, part, before in layers:
        module = getattr(block, layer)
        if module is None:
            continue
        points[before] = Point(block, "input" if number == 1 else layer)
        if _computes(norm := getattr(block, f"{layer}_norm")):
            points[f"ln{number}.hook_normalized"] = Point(norm, "output")
        points |= {f"{part}.{name}": point for name, point in _points_of_layer(module).items()}
        points[f"hook_{part}_out"] = Point(module, "output")
        number += 1
    return points | {"hook_resid_post": Point(block, "output")}


def _points_of_layer(layer: nn.Module) -> dict[str, Point]:
    if isinstance(layer, MultiHeadAttention):  # a subclass may compute its output in another way
        methods = ("forward", *ATTENTION_STEPS)
        own = {name for name in methods if getattr(type(layer), name) is not getattr(MultiHeadAttention, name)}
        there = [] if "forward" in own else [method for method in ATTENTION_STEPS if method not in own]
        return {step: Point(layer, step) for method in there for step in ATTENTION_STEPS[method]}
    points = {}
    for part, (step, name) in FEED_FORWARD_STEPS.items():
        if hasattr(layer, part):
            points[f"{name}_linear" if name in points else name] = Point(getattr(layer, part), step)
    return points


def _computes(norm: Any) -> bool:
    return isinstance(norm, nn.Module) and not isinstance(norm, nn.Identity)


def _chosen(names: NamesFilter, points: dict[str, Point]) -> list[str]:
    """Return the names that a filter selects. Raises ValueError for unknown names, and if it selects none."""
    if names is None:
        return list(points)
    if callable(names):
        if not (chosen := list(filter(names, points))):
            raise ValueError(f"the function selects none of the activations, such as {listed(points, most=4)}")
        return chosen
    chosen = [names] if isinstance(names, str) else list(names)
    for name in chosen:
        if name not in points:
            raise ValueError(_unknown(name, points))
    return chosen


def _unknown(name: Any, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(name), known, n=3)
    hint = f"did you mean {listed(near, 'or')}?" if near else f"there are {listed(known)}"
    return f"no activation is named {name}; {hint}"


def _install(opened: ExitStack, point: Point, hook: Hook, function: HookFunction) -> None:
    """Call a function with an activation until the stack is closed."""
    calls = count()

    def see(value: Tensor) -> Tensor:
        if next(calls) % point.calls != point.call:
            return value
        if (new := function(value, hook=hook)) is None:
            return value
        if not isinstance(new, Tensor) or new.shape != value.shape:
            found = tuple(new.shape) if isinstance(new, Tensor) else type(new).__name__
            raise ValueError(f"{hook.name}: the function must return a tensor of {tuple(value.shape)}, not {found}")
        return new

    module = point.module
    if point.step == "output":
        opened.callback(module.register_forward_hook(lambda _module, _inputs, output: see(output)).remove)
    elif point.step == "input":
        before = module.register_forward_pre_hook(lambda _module, inputs: (see(inputs[0]), *inputs[1:]))
        opened.callback(before.remove)
    else:
        opened.enter_context(watching(module, lambda step, value: see(value) if step == point.step else value))
