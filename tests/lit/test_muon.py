import math
from functools import partial
from itertools import chain

import pytest
import torch
from torch import Tensor, nn
from torch.optim import AdamW, Muon
from torch.testing import assert_close

from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.lit.muon import MuonAdamW, orthogonalized
from firstlight.lit.optimizers import build_optimizer
from firstlight.networks.variants import NormKind, Positions

VOCABULARY = 29
FACTORY = partial(MuonAdamW, lr=0.01, matrix_lr=0.05, momentum=0.9, weight_decay=0.3, fused=True)


def random_tensor(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_generator(**options: object) -> Generator:
    torch.manual_seed(0)
    sizes = {"dim": 12, "num_heads": 3, "num_layers": 2, "context_length": 13, "dropout": 0.0, "causal_convolution": 3}
    return Generator(GeneratorConfig(**(sizes | options)), VOCABULARY)


def train(generator: Generator, optimizer: torch.optim.Optimizer, steps: range, *, by_closure: bool = False) -> None:
    for step in steps:
        token_ids = torch.randint(0, VOCABULARY, (5, 13), generator=torch.Generator().manual_seed(step))

        def closure(token_ids: Tensor = token_ids) -> Tensor:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(generator(token_ids[:, :-1]).flatten(0, 1), token_ids[:, 1:].flatten())
            loss.backward()
            return loss

        if by_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()


@pytest.mark.parametrize("shape", [(7, 7), (5, 17), (1, 3), (31, 97)])
def test_the_singular_values_come_near_one_and_the_singular_vectors_stay(shape: tuple[int, int]) -> None:
    matrices = random_tensor(3, *shape) * torch.tensor([1e-4, 1.0, 1e4])[:, None, None]
    if shape == (7, 7):
        matrices += 3 * matrices.abs().amax(dim=(1, 2), keepdim=True) * torch.eye(7)  # not nearly singular
    found = orthogonalized(matrices)
    values = torch.linalg.svdvals(found)
    assert 0.6 < values.min() <= values.max() < 1.25
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    inner = left.mT @ found @ right.mT  # diagonal if the singular vectors are the same
    assert_close(inner, torch.diag_embed(inner.diagonal(dim1=-2, dim2=-1)), atol=1e-4, rtol=0)


@pytest.mark.parametrize("shape", [(7, 7), (5, 17), (17, 5)])
def test_it_steps_as_torchs_muon_does_but_for_its_half_precision(shape: tuple[int, int]) -> None:
    ours, theirs = (nn.Parameter(random_tensor(*shape)) for _ in range(2))
    optimizers = (
        MuonAdamW([{"params": [ours], "orthogonal": True}], matrix_lr=0.1, momentum=0.9, weight_decay=0.3),
        Muon([theirs], lr=0.1, momentum=0.9, weight_decay=0.3),
    )
    for step in range(3):
        before = ours.detach().clone()
        for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
            parameter.grad = random_tensor(*shape, seed=step)
            optimizer.step()
        moved = (ours.detach() - before).norm()
        assert (ours - theirs).norm() < 0.03 * (step + 1) * moved
        with torch.no_grad():
            theirs.copy_(ours)


def test_everything_else_steps_as_with_adamw() -> None:
    options = {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.3}
    ours, theirs = (nn.Parameter(random_tensor(3, 5)) for _ in range(2))
    matrix = nn.Parameter(random_tensor(5, 3))
    mixed = MuonAdamW([{"params": [matrix], "orthogonal": True}, {"params": [ours]}], **options)
    adamw = AdamW([theirs], **options)
    for step in range(3):
        ours.grad, theirs.grad, matrix.grad = (random_tensor(*shape, seed=step) for shape in ((3, 5), (3, 5), (5, 3)))
        mixed.step()
        adamw.step()
    assert torch.equal(ours, theirs)
    assert not torch.isclose(matrix, random_tensor(5, 3)).any()


def test_matrices_of_different_shapes_and_gradients_of_different_sizes_do_not_mix() -> None:
    shapes = [(5, 17), (17, 5), (5, 17), (5, 5)]
    together = [nn.Parameter(random_tensor(*shape, seed=i)) for i, shape in enumerate(shapes)]
    alone = [nn.Parameter(matrix.detach().clone()) for matrix in together]
    for i, (one, other) in enumerate(zip(together, alone, strict=True)):
        one.grad = 100**i * random_tensor(*one.shape, seed=10 + i)
        other.grad = random_tensor(*one.shape, seed=10 + i)
        MuonAdamW([{"params": [other], "orthogonal": True}]).step()
    MuonAdamW([{"params": together, "orthogonal": True}]).step()
    for one, other in zip(together, alone, strict=True):
        assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_muon_takes_the_matrices_of_the_blocks_and_nothing_else() -> None:
    generator = make_generator(positions=Positions.relative, norm_kind=NormKind.rms)
    optimizer = build_optimizer(generator, FACTORY)
    name_of = {parameter: name for name, parameter in generator.named_parameters()}
    groups = [{name_of[parameter] for parameter in group["params"]} for group in optimizer.param_groups]
    assert [group["orthogonal"] for group in optimizer.param_groups] == [True, False, False]
    assert [group["lr"] for group in optimizer.param_groups] == [0.05, 0.01, 0.01]
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.3, 0.3, 0.0]
    layers = ("query", "key", "value", "output", "expand", "contract")
    assert len(groups[0]) == 2 * len(layers)
    assert {name.split(".")[-2] for name in groups[0]} == set(layers)
    assert {name.split(".")[-1] for name in groups[0]} == {"weight"}
    assert groups[1] == {"head.weight"} | {name for name in name_of.values() if "convolution" in name}
    assert sorted(chain(*groups)) == sorted(name_of.values())


def test_it_goes_on_from_its_state_as_if_it_had_never_stopped() -> None:
    whole, first, second = make_generator(), make_generator(), make_generator()
    train(whole, build_optimizer(whole, FACTORY), range(7))
    optimizer = build_optimizer(first, FACTORY)
    train(first, optimizer, range(3))
    second.load_state_dict(first.state_dict())
    resumed = build_optimizer(second, FACTORY)
    resumed.load_state_dict(optimizer.state_dict())
    train(second, resumed, range(3, 7))
    for one, other in zip(whole.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_closure_that_clears_the_gradients_clears_those_of_the_matrices_too() -> None:
    """Lightning's closure also clears the gradients of all parameters."""
    inside, outside = make_generator(), make_generator()
    train(outside, build_optimizer(outside, FACTORY), range(3))
    train(inside, build_optimizer(inside, FACTORY), range(3), by_closure=True)
    for one, other in zip(inside.parameters(), outside.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"matrix_lr": -0.1}, r"^matrix_lr=-0\.1 must be at least 0$"),
        ({"matrix_lr": math.nan}, r"^matrix_lr=nan must be at least 0$"),
        ({"momentum": 1.0}, r"^momentum=1\.0 must be at least 0 and below 1$"),
    ],
)
def test_a_rate_or_a_momentum_out_of_range_is_an_error(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MuonAdamW([nn.Parameter(random_tensor(3, 5))], **options)
