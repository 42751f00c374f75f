"""Generation token by token: the cache does not change the tokens."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.decoding.generate import WINDOWS, Sampling, Window, for_inference, generate
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.networks.variants import Norm, Positions

VOCABULARY, CONTEXT, BATCH = 29, 13, 3
every_position = pytest.mark.parametrize("positions", Positions)
every_window = pytest.mark.parametrize("window", WINDOWS)


def greedy(logits: Tensor) -> Tensor:
    """Return the most likely token by scrambled logits. The smallest change of the input changes this token.

    With the logits themselves, an untrained network repeats one token forever.
    """
    return Sampling(greedy=True).choose((1000 * logits).sin())


def make_network(**options: Any) -> Generator:
    """Return a generator. Biases and norms are random too, so that a missing one changes the result."""
    torch.manual_seed(0)
    sizes = {"dim": 12, "num_heads": 3, "head_dim": 6, "num_layers": 2, "context_length": CONTEXT, "norm": Norm.pre}
    network = Generator(GeneratorConfig(**(sizes | options)), VOCABULARY).double().eval()
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.7)
    return network


def random_prompt(length: int, batch: int = BATCH) -> Tensor:
    return torch.randint(0, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(1))


def written(network: Any, prompt: Tensor, num_tokens: int, **options: Any) -> Tensor:
    """Return all new ids, (batch, num_tokens)."""
    return torch.stack(list(generate(network, prompt, num_tokens, greedy, **options)), dim=1)


@torch.no_grad()
def naive(network: Any, prompt: Tensor, num_tokens: int, length: int) -> Tensor:
    """Return the same as `written`, with the last `length` tokens read again at each step."""
    text = prompt
    for _ in range(num_tokens):
        text = torch.cat((text, greedy(network(text[:, -length:])[:, -1])[:, None]), dim=1)
    return text[:, prompt.shape[1] :]


@torch.no_grad()
def naive_half(network: Any, prompt: Tensor, num_tokens: int, length: int) -> Tensor:
    """Return the same as `naive`, but with a full context cut to its last half, which then grows again."""
    text, seen = prompt, prompt[:, -length:]
    for _ in range(num_tokens):
        new = greedy(network(seen)[:, -1])[:, None]
        text, full = torch.cat((text, new), dim=1), seen.shape[1] == length
        seen = torch.cat((seen, new), dim=1)
        if full:
            seen = seen[:, -max(length // 2, 1) :]
    return text[:, prompt.shape[1] :]


class Watched:
    """A network that records its inputs."""

    def __init__(self, network: Generator) -> None:
        self.network = network
        self.context_length, self.is_causal = network.context_length, network.is_causal
        self.lengths: list[int] = []
        self.cached: list[bool] = []
        self.graphs: list[bool] = []

    def __call__(self, token_ids: Tensor, cache: Any = None) -> Tensor:
        self.lengths.append(token_ids.shape[1])
        self.cached.append(cache is not None)
        logits = self.network(token_ids, cache)
        self.graphs.append(logits.requires_grad)
        return logits

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)


@pytest.mark.parametrize(("prompt_length", "length"), [(1, CONTEXT), (CONTEXT, CONTEXT), (31, CONTEXT), (7, 1), (7, 5)])
@every_position
def test_a_window_writes_what_the_naive_loop_writes(positions: Positions, prompt_length: int, length: int) -> None:
    network, prompt = make_network(positions=positions), random_prompt(prompt_length)
    sliding = written(network, prompt, 31, window="slide", context_length=length)
    assert torch.equal(sliding, naive(network, prompt, 31, length))
    halving = written(network, prompt, 31, window="half", context_length=length)
    assert torch.equal(halving, naive_half(network, prompt, 31, length))
    assert torch.equal(prompt, random_prompt(prompt_length))
    if prompt_length == CONTEXT:  # not by chance
        assert (halving != sliding)[:, 14:].any()
        assert min(len(row.unique()) for row in halving) > 5


def logits_of(network: Generator, text: Tensor, window: Window, length: int = CONTEXT) -> Tensor:
    """Return the logits of each token of a text after the first, (batch, length - 1, vocabulary)."""
    seen: list[Tensor] = []

    def choose(logits: Tensor) -> Tensor:
        seen.append(logits)
        return text[:, len(seen)]

    for _ in generate(network, text[:, :1], text.shape[1] - 1, choose, window=window, context_length=length):
        pass
    return torch.stack(seen, dim=1)


@pytest.mark.parametrize("positions", [Positions.rotary, Positions.relative, Positions.none])
def test_in_one_block_a_rolling_cache_is_a_sliding_window(positions: Positions) -> None:
    network, text = make_network(positions=positions, num_layers=1), random_prompt(41)
    for length in (CONTEXT, 7):
        rolling, sliding = (logits_of(network, text, window, length) for window in ("roll", "slide"))
        assert_close(rolling, sliding, rtol=0, atol=1e-3)  # of logits up to 90, with angles of 32 bits


@torch.no_grad()
def test_in_several_blocks_a_rolling_cache_is_attention_to_the_last_tokens() -> None:
    network, wide = make_network(positions="rotary"), make_network(positions="rotary", context_length=64)
    text = random_prompt(41)
    distance = torch.arange(41)[:, None] - torch.arange(41)
    hidden = wide.embedding(text)
    for block in wide.blocks:
        hidden = block(hidden, mask=((distance >= 0) & (distance < CONTEXT))[None, None])
    expected = wide.head(wide.final_norm(hidden))[:, :-1]
    assert_close(logits_of(network, text, "roll"), expected, rtol=0, atol=1e-3)
    assert (logits_of(network, text, "slide") - expected).abs().max() > 0.1


@pytest.mark.parametrize("positions", [Positions.learned, Positions.sinusoidal])
def test_positions_in_the_embeddings_cannot_roll(positions: Positions) -> None:
    with pytest.raises(ValueError, match=r"^window=roll requires model\.positions=rotary"):
        next(generate(make_network(positions=positions), random_prompt(5), 3, greedy, window="roll"))


@every_window
@every_position
def test_a_network_that_sees_what_follows_reads_everything_anew_each_time(positions: Positions, window: Window) -> None:
    network = Watched(make_network(positions=positions, causal=False))
    prompt = random_prompt(5)
    assert torch.equal(written(network, prompt, 23, window=window), naive(network.network, prompt, 23, CONTEXT))
    assert network.lengths == [min(5 + number, CONTEXT) for number in range(23)]
    assert not any(network.cached)


@pytest.mark.parametrize(
    ("window", "prompt_length", "lengths"),
    [
        ("half", 5, [5] + [1] * (CONTEXT - 5)),
        ("half", CONTEXT, [13] + ([6] + [1] * 7) * 2 + [6] + [1] * 2),
        ("slide", 11, [11, 1, 1, 13, 13, 13, 13]),
        ("slide", 5, [5]),
    ],
)
def test_the_network_is_given_single_tokens_while_the_cache_has_room(window, prompt_length, lengths) -> None:
    network = Watched(make_network())
    tokens = list(generate(network, random_prompt(prompt_length), len(lengths), greedy, window=window))
    assert [tuple(ids.shape) for ids in tokens] == [(BATCH,)] * len(lengths)
    assert network.lengths == lengths
    assert network.cached == [length < CONTEXT or window == "half" for length in lengths]
    assert list(generate(network, random_prompt(5), 0, greedy)) == []


@every_window
def test_nothing_is_kept_for_gradients_and_gradients_stay_on_elsewhere(window: Window) -> None:
    network = Watched(make_network(positions="rotary"))
    for _ in generate(network, random_prompt(5), 17, greedy, window=window):
        assert torch.is_grad_enabled()  # between two tokens
        assert not torch.is_inference_mode_enabled()
    assert not any(network.graphs)


@pytest.mark.parametrize("options", [{}, {"causal_convolution": 3, "num_loops": 2}, {"residual": False}])
def test_a_copy_for_inference_has_the_tensors_logits_and_hooks_of_the_network(options: dict[str, Any]) -> None:
    network, token_ids = make_network(**options), torch.randint(VOCABULARY, (BATCH, 7))
    names, own = list(network.state_dict()), list(vars(network))
    copied = for_inference(network)
    assert torch.equal(copied(token_ids), network(token_ids))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1.5)
    assert torch.equal(copied(token_ids), network(token_ids))
    assert (list(network.state_dict()), list(vars(network))) == (names, own)


@pytest.mark.parametrize("register", [nn.Module.register_forward_hook, nn.Module.register_forward_pre_hook])
@pytest.mark.parametrize("is_whole", [True, False])
def test_hooks_are_run_and_a_network_with_hooks_in_its_parts_is_not_copied(register, is_whole) -> None:
    network, calls = make_network(), []
    register(network if is_whole else network.blocks[1], lambda *_: calls.append(1))
    assert (for_inference(network) is not network) == is_whole
    for_inference(network)(torch.zeros(1, 3, dtype=torch.long))
    assert calls == [1]
