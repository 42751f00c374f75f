import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.networks.variants import FeedForwardKind, Norm, Positions

VOCABULARY, CONTEXT = 29, 13
every_position = pytest.mark.parametrize("positions", Positions)


def make_generator(seed: int = 0, **options: object) -> Generator:
    torch.manual_seed(seed)
    sizes = {"dim": 12, "num_heads": 3, "num_layers": 2, "context_length": CONTEXT}
    return Generator(GeneratorConfig(**(sizes | options)), VOCABULARY).double()


def random_texts(*shape: int, vocab_size: int = VOCABULARY) -> Tensor:
    return torch.randint(0, vocab_size, shape, generator=torch.Generator().manual_seed(1))


def change_from(token_ids: Tensor, place: int) -> Tensor:
    changed = token_ids.clone()
    changed[:, place:] = (token_ids[:, place:] + 1) % VOCABULARY
    return changed


def next_token_loss(generator: Generator, token_ids: Tensor) -> Tensor:
    return F.cross_entropy(generator(token_ids[:, :-1]).flatten(0, 1), token_ids[:, 1:].flatten())


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


POST = {"dim": 32, "num_heads": 4, "num_layers": 3, "context_length": 64, "positions": Positions.learned}


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({"num_layers": 5}, 2 * 12_608),
        ({"positions": Positions.none}, -64 * 32),
        ({"positions": Positions.sinusoidal}, -64 * 32),
        ({"positions": Positions.rotary}, -64 * 32),
        ({"positions": Positions.relative}, 3 * 127 * 8 - 64 * 32),
        ({"final_norm": True}, 2 * 32),
        ({"head_bias": False}, -71),
        ({"tie_embeddings": True}, -71 * 32),
        ({"tie_embeddings": True, "head_bias": False}, -71 * 32 - 71),
        ({"causal": False}, 0),
        ({"zero_init": True}, 0),
        ({"positions": Positions.sinusoidal, "position_scale": 0.5}, -64 * 32),
        ({"num_loops": 5}, 0),
        ({"causal_convolution": 5}, 3 * 2 * 5 * 32),
        ({"causal_convolution": 5, "feed_forward": FeedForwardKind.none}, 3 * (5 * 32 - 8_352 - 64)),
    ],
)
def test_the_config_decides_the_parameters(options: dict[str, object], more: int) -> None:
    assert count(Generator(GeneratorConfig(**POST | options), 71)) == 44_487 + more


def test_a_generator_is_an_embedding_positions_blocks_a_norm_and_a_head() -> None:
    generator = make_generator(positions=Positions.learned, final_norm=True).eval()
    token_ids = random_texts(2, 11)
    hidden = generator.embedding.weight[token_ids] + generator.positions.table.weight[:11]
    for block in generator.blocks:
        hidden = block(hidden, torch.ones(11, 11, dtype=torch.bool).tril())
    normalized = F.layer_norm(hidden, (12,), generator.final_norm.weight, generator.final_norm.bias)
    assert_close(generator(token_ids), normalized @ generator.head.weight.T + generator.head.bias)


def test_dropout_falls_on_the_sum_of_embedding_and_positions() -> None:
    generator = make_generator(dropout=0.5, positions=Positions.learned)
    token_ids = random_texts(97, CONTEXT)
    seen: list[Tensor] = []
    generator.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    generator(token_ids)
    expected = generator.embedding(token_ids) + generator.positions.table.weight
    kept = seen[0] != 0
    assert kept.double().mean().item() == pytest.approx(0.5, abs=0.02)
    assert_close(seen[0][kept], 2 * expected[kept])  # the kept values are scaled up


def test_tied_embeddings_survive_saving_loading_copying_and_another_precision() -> None:
    trained, fresh = (make_generator(seed, tie_embeddings=True, head_bias=False).eval() for seed in (0, 1))
    token_ids = random_texts(2, 11)
    assert not torch.equal(fresh(token_ids), trained(token_ids))
    fresh.load_state_dict(trained.state_dict())
    assert torch.equal(fresh(token_ids), trained(token_ids))
    for generator in (fresh, copy.deepcopy(trained), copy.deepcopy(trained).float()):
        assert generator.head.weight is generator.embedding.weight


@every_position
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("norm", Norm)
def test_gradients_reach_every_parameter(norm: Norm, tied: bool, positions: Positions) -> None:
    generator = make_generator(norm=norm, positions=positions, tie_embeddings=tied, context_length=7)
    next_token_loss(generator, random_texts(3, 7)).backward()
    for name, parameter in generator.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.count_nonzero() > 0, name


LOOPED = {"num_layers": 2, "num_loops": 3, "norm": Norm.pre}
CONVOLVED = {"causal_convolution": 5, "norm": Norm.pre}


def make_restless(**options: object) -> Generator:
    """Return a generator whose parameters are all random, so that a convolution is not the identity."""
    generator = make_generator(**options).eval()
    for parameter in generator.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return generator


@every_position
@pytest.mark.parametrize("options", [{"norm": Norm.pre}, {"norm": Norm.post}, LOOPED, CONVOLVED], ids=str)
def test_a_future_token_cannot_change_the_past(options: dict[str, object], positions: Positions) -> None:
    generator = make_restless(positions=positions, **options)
    token_ids = random_texts(2, 11)
    logits = generator(token_ids)
    for place in (1, 5, 10):
        changed = generator(change_from(token_ids, place))
        assert_close(changed[:, :place], logits[:, :place])
        assert not torch.isclose(changed[:, place:], logits[:, place:]).all()


def test_looped_blocks_are_a_deeper_network_with_the_same_weights_in_every_round() -> None:
    looped, deep = make_restless(**LOOPED), make_restless(**LOOPED | {"num_layers": 6, "num_loops": 1})
    weights = looped.state_dict()
    for name in deep.state_dict():
        if name.startswith("blocks."):
            _, number, rest = name.split(".", 2)
            weights[name] = looped.state_dict()[f"blocks.{int(number) % 2}.{rest}"]
    deep.load_state_dict(weights)
    token_ids = random_texts(2, 11)
    assert_close(looped(token_ids), deep(token_ids))
    assert not torch.isclose(looped(token_ids), make_restless(**LOOPED | {"num_loops": 2})(token_ids)).all()


def test_with_convolutions_a_generator_begins_as_one_without() -> None:
    plain, convolved = make_generator(norm=Norm.pre), make_generator(**CONVOLVED)
    token_ids = random_texts(2, 11)
    assert_close(convolved.eval()(token_ids), plain.eval()(token_ids))
