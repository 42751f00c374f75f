"""Generation token by token: the cache does not change the tokens."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from firstlight.decoding.generate import Window, for_inference, generate
from firstlight.decoding.sampling import Sampling
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.networks.config import Norm, Positions

VOCABULARY, CONTEXT, BATCH = 29, 13, 3
every_position = pytest.mark.parametrize("positions", Positions)
every_window = pytest.mark.parametrize("window", Window)
# 7 is between 1 and the context length. A prompt of 31 tokens is longer than the context, so the window has moved.
from_short_and_long = pytest.mark.parametrize(
    "prompt_length", [1, CONTEXT, *(pytest.param(length, marks=pytest.mark.slow) for length in (7, 31))]
)


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


def written(network: Any, prompt: Tensor, num_tokens: int, choose: Any = greedy, **options: Any) -> Tensor:
    """Return all new ids, (batch, num_tokens)."""
    return torch.stack(list(generate(network, prompt, num_tokens, choose, **options)), dim=1)


@torch.no_grad()
def naive(network: Any, prompt: Tensor, num_tokens: int, length: int, choose: Any = greedy) -> Tensor:
    """Return the same as `written`, with the last `length` tokens read again at each step."""
    text = prompt
    for _ in range(num_tokens):
        text = torch.cat((text, choose(network(text[:, -length:])[:, -1])[:, None]), dim=1)
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

    def new_cache(self) -> Any:
        return self.network.new_cache()


@every_window
@every_position
@pytest.mark.parametrize("prompt_length", [1, 5, 12])
def test_until_the_context_is_full_it_is_the_naive_loop(
    positions: Positions, window: Window, prompt_length: int
) -> None:
    """The first token beyond the context is chosen from all tokens of the full context."""
    network, prompt = make_network(positions=positions), random_prompt(prompt_length)
    count = CONTEXT - prompt_length + 1
    assert torch.equal(written(network, prompt, count, window=window), naive(network, prompt, count, CONTEXT))


@every_position
@from_short_and_long
def test_a_sliding_window_is_the_naive_loop_for_ever(positions: Positions, prompt_length: int) -> None:
    network, prompt = make_network(positions=positions), random_prompt(prompt_length)
    assert torch.equal(written(network, prompt, 53, window=Window.slide), naive(network, prompt, 53, CONTEXT))


@every_position
@from_short_and_long
def test_a_half_window_reads_the_kept_half_anew(positions: Positions, prompt_length: int) -> None:
    network, prompt = make_network(positions=positions), random_prompt(prompt_length)
    assert torch.equal(written(network, prompt, 53), naive_half(network, prompt, 53, CONTEXT))


@every_position
def test_the_two_windows_write_differently_beyond_the_context(positions: Positions) -> None:
    """This shows that the tests above do not pass by chance."""
    network, prompt = make_network(positions=positions), random_prompt(5)
    half, slide = (written(network, prompt, 53, window=window) for window in Window)
    assert torch.equal(half[:, :9], slide[:, :9])
    assert ((half != slide)[:, 11:].double().mean(dim=1) > 0.7).all()
    assert all(len(row.unique()) > 17 for row in half)


@pytest.mark.parametrize("length", [1, 5, CONTEXT])
@every_position
def test_a_shorter_view_sees_no_more_than_that(positions: Positions, length: int) -> None:
    network, prompt = make_network(positions=positions), random_prompt(7)
    sliding = written(network, prompt, 31, window=Window.slide, context_length=length)
    assert torch.equal(sliding, naive(network, prompt, 31, length))
    halving = written(network, prompt, 31, window=Window.half, context_length=length)
    assert torch.equal(halving, naive_half(network, prompt, 31, length))


@every_window
def test_of_a_prompt_longer_than_the_context_the_end_is_read(window: Window) -> None:
    network, prompt = make_network(), random_prompt(31)
    assert torch.equal(
        written(network, prompt, 23, window=window), written(network, prompt[:, -CONTEXT:], 23, window=window)
    )


@every_window
@every_position
def test_a_network_that_sees_what_follows_reads_everything_anew_each_time(positions: Positions, window: Window) -> None:
    network = Watched(make_network(positions=positions, causal=False))
    prompt = random_prompt(5)
    assert torch.equal(written(network, prompt, 23, window=window), naive(network.network, prompt, 23, CONTEXT))
    assert network.lengths == [min(5 + number, CONTEXT) for number in range(23)]
    assert not any(network.cached)


def test_while_the_cache_has_room_the_network_is_given_single_tokens() -> None:
    network = Watched(make_network())
    written(network, random_prompt(5), CONTEXT - 5 + 1)
    assert network.lengths == [5] + [1] * (CONTEXT - 5)
    assert all(network.cached)


def test_a_half_window_reads_half_a_context_once_it_is_full_and_then_single_tokens() -> None:
    network = Watched(make_network())
    written(network, random_prompt(CONTEXT), 20)
    assert network.lengths == [13] + ([6] + [1] * 7) * 2 + [6] + [1] * 2


def test_a_sliding_window_reads_the_whole_context_for_each_token_once_it_is_full() -> None:
    network = Watched(make_network())
    written(network, random_prompt(11), 7, window=Window.slide)
    assert network.lengths == [11, 1, 1, 13, 13, 13, 13]


@every_window
@pytest.mark.parametrize("num_tokens", [1, 2, 9, 53])
def test_there_are_exactly_as_many_tokens_as_were_asked_for(num_tokens: int, window: Window) -> None:
    network = Watched(make_network())
    tokens = list(generate(network, random_prompt(5), num_tokens, greedy, window=window))
    assert [tuple(ids.shape) for ids in tokens] == [(BATCH,)] * num_tokens
    assert len(network.lengths) == num_tokens  # no call is superfluous


def test_no_tokens_are_none() -> None:
    assert list(generate(make_network(), random_prompt(5), 0, greedy)) == []


@every_window
def test_one_text_of_a_batch_cannot_change_another(window: Window) -> None:
    network, prompt = make_network(), random_prompt(5)
    together = written(network, prompt, 53, window=window)
    alone = [written(network, prompt[row : row + 1], 53, window=window) for row in range(BATCH)]
    assert torch.equal(together, torch.cat(alone))


def test_each_token_comes_before_the_next_is_computed() -> None:
    network = Watched(make_network())
    steps = generate(network, random_prompt(5), 7, greedy)
    for number in range(1, 4):
        next(steps)
        assert len(network.lengths) == number


def test_the_same_seed_writes_the_same_and_as_the_naive_loop_does() -> None:
    network, prompt = make_network(), random_prompt(5)

    def choose(seed: int) -> Callable[[Tensor], Tensor]:
        random = torch.Generator().manual_seed(seed)
        return lambda logits: Sampling(temperature=3.0).choose(logits, random)

    network.head.weight.data *= 0.1
    first = written(network, prompt, 31, choose(1), window=Window.slide)
    assert torch.equal(written(network, prompt, 31, choose(1), window=Window.slide), first)
    assert torch.equal(naive(network, prompt, 31, CONTEXT, choose(1)), first)
    assert not torch.equal(written(network, prompt, 31, choose(2), window=Window.slide), first)


@every_window
def test_nothing_is_kept_for_gradients_and_gradients_stay_on_elsewhere(window: Window) -> None:
    network = Watched(make_network())
    for _ in generate(network, random_prompt(5), 17, greedy, window=window):
        assert torch.is_grad_enabled()  # between two tokens
        assert not torch.is_inference_mode_enabled()
    assert not any(network.graphs)


def test_the_prompt_is_left_as_it_is() -> None:
    prompt = random_prompt(5)
    written(make_network(), prompt, 23)
    assert torch.equal(prompt, random_prompt(5))


def test_two_texts_written_by_turns_do_not_disturb_each_other() -> None:
    network = make_network()
    first, second = generate(network, random_prompt(3), 29, greedy), generate(network, random_prompt(7), 29, greedy)
    pairs = list(zip(first, second, strict=True))
    assert torch.equal(torch.stack([ids for ids, _ in pairs], dim=1), written(network, random_prompt(3), 29))
    assert torch.equal(torch.stack([ids for _, ids in pairs], dim=1), written(network, random_prompt(7), 29))


def test_an_empty_prompt_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError, match="a prompt must have at least one token"):
        next(generate(make_network(), random_prompt(0), 1, greedy))


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


def test_a_copy_for_inference_of_a_network_in_training_has_its_dropout() -> None:
    network, token_ids = make_network(dropout=0.5).train(), torch.randint(VOCABULARY, (BATCH, 7))
    logits = []
    for each in (network, for_inference(network)):
        torch.manual_seed(3)
        logits.append(each(token_ids))
    assert torch.equal(*logits)
    assert not torch.equal(logits[0], network.eval()(token_ids))


@pytest.mark.parametrize("register", [nn.Module.register_forward_hook, nn.Module.register_forward_pre_hook])
def test_a_network_with_hooks_in_its_parts_is_not_copied(register: Callable[..., Any]) -> None:
    network, calls = make_network(), []
    register(network.blocks[1], lambda *_: calls.append(1))
    assert for_inference(network) is network
    for_inference(network)(torch.zeros(1, 3, dtype=torch.long))
    assert calls == [1]


@pytest.mark.parametrize("register", [nn.Module.register_forward_hook, nn.Module.register_forward_pre_hook])
def test_a_copy_for_inference_runs_the_hooks_of_the_network_itself(register: Callable[..., Any]) -> None:
    network, calls = make_network(), []
    register(network, lambda *_: calls.append(1))
    assert for_inference(network) is not network
    for_inference(network)(torch.zeros(1, 3, dtype=torch.long))
    assert calls == [1]
