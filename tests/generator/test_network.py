import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.testing import assert_close

from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.networks.variants import Norm, Positions

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


def test_a_generator_is_an_embedding_positions_blocks_a_norm_and_a_head() -> None:
    generator = make_generator(positions=Positions.learned, final_norm=True).eval()
    token_ids = random_texts(2, 11)
    hidden = generator.embedding.weight[token_ids] + generator.positions.table.weight[:11]
    for block in generator.blocks:
        hidden = block(hidden, torch.ones(11, 11, dtype=torch.bool).tril())
    normalized = F.layer_norm(hidden, (12,), generator.final_norm.weight, generator.final_norm.bias)
    assert_close(generator(token_ids), normalized @ generator.head.weight.T + generator.head.bias)


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
