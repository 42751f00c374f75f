from functools import partial
from itertools import chain

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from firstlight.lit.optimizers import build_optimizer
from firstlight.networks.classifier import Classifier
from firstlight.networks.config import ClassifierConfig, FeedForwardKind, NormKind, PoolingKind, Positions

MATRICES = {"linear.weight", "convolution.weight"}
DECAYING = partial(AdamW, lr=0.1, weight_decay=0.5)


class Network(nn.Module):
    """A network with a parameter of each kind: matrices decay; biases, norms and embeddings do not."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 3)
        self.linear = nn.Linear(3, 5)
        self.convolution = nn.Conv1d(5, 5, 3)
        self.layer_norm = nn.LayerNorm(5)
        self.rms_norm = nn.RMSNorm(5)
        self.scale = nn.Parameter(torch.ones(()))


def names(network: nn.Module, optimizer: Optimizer) -> list[list[str]]:
    """Return the names of the parameters of each group."""
    name_of = {parameter: name for name, parameter in network.named_parameters()}
    return [[name_of[parameter] for parameter in group["params"]] for group in optimizer.param_groups]


def moved_without_a_gradient(network: nn.Module, optimizer: Optimizer) -> set[str]:
    """Return the parameters that decay: those that a step changes although every gradient is zero."""
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    return {name for name, parameter in network.named_parameters() if not torch.equal(parameter, before[name])}


def test_only_matrices_decay() -> None:
    network = Network()
    assert moved_without_a_gradient(network, build_optimizer(network, DECAYING)) == MATRICES


def test_the_groups_are_what_decays_and_what_does_not() -> None:
    network = Network()
    optimizer = build_optimizer(network, DECAYING)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.5, 0.0]
    assert set(names(network, optimizer)[0]) == MATRICES


@pytest.mark.parametrize(
    "factory",
    [
        partial(AdamW, lr=0.1),  # the default weight decay of torch is 0.01
        lambda parameters: AdamW(parameters, lr=0.1, weight_decay=0.5),
    ],
    ids=["torch's default", "no partial"],
)
def test_only_matrices_decay_wherever_the_decay_is_written(factory) -> None:
    network = Network()
    assert moved_without_a_gradient(network, build_optimizer(network, factory)) == MATRICES


@pytest.mark.parametrize("factory", [Adam, SGD, partial(AdamW, lr=0.1, weight_decay=0.0), partial(Adam, lr=0.1)])
def test_without_weight_decay_there_is_one_group(factory) -> None:
    network = Network()
    optimizer = build_optimizer(network, factory)
    assert len(optimizer.param_groups) == 1
    assert moved_without_a_gradient(network, optimizer) == set()


@pytest.mark.parametrize("factory", [DECAYING, Adam])
def test_every_parameter_that_learns_is_there_once_and_a_frozen_one_is_not(factory) -> None:
    network = Network()
    network.layer_norm.requires_grad_(False)
    network.linear.weight.requires_grad_(False)
    found = sorted(chain(*names(network, build_optimizer(network, factory))))
    assert found == sorted(name for name, parameter in network.named_parameters() if parameter.requires_grad)
    assert "layer_norm.weight" not in found
    assert "linear.weight" not in found


@pytest.mark.parametrize("factory", [DECAYING, Adam])
def test_a_shared_parameter_is_there_once_and_an_embedding_wherever_else_it_is(factory) -> None:
    network = Network()
    network.output = nn.Linear(3, 11, bias=False)
    network.output.weight = network.embedding.weight
    groups = names(network, build_optimizer(network, factory))
    assert list(chain(*groups)).count("embedding.weight") == 1
    assert "embedding.weight" in groups[-1]


@pytest.mark.parametrize("pooling", PoolingKind)
def test_a_classifiers_matrices_decay_and_its_vectors_do_not(pooling: PoolingKind) -> None:
    for positions, norm_kind, feed_forward in [
        (Positions.sinusoidal, NormKind.layer, FeedForwardKind.mlp),
        (Positions.rotary, NormKind.rms, FeedForwardKind.linear),
    ]:
        config = ClassifierConfig(
            pooling=pooling, positions=positions, norm_kind=norm_kind, feed_forward=feed_forward, final_norm=True
        )
        network = Classifier(config, 29, 5)
        decaying, rest = names(network, build_optimizer(network, DECAYING))
        assert sorted(decaying + rest) == sorted(name for name, _ in network.named_parameters())
        assert {name for name in rest if not name.endswith("bias") and "norm" not in name} == {"embedding.weight"}
        assert not [name for name in decaying if "norm" in name or name.endswith("bias") or "embedding" in name]
