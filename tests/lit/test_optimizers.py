from functools import partial
from itertools import chain

import hydra
import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from composed import composed
from firstlight.errors import UserError
from firstlight.lit import MuonAdamW
from firstlight.lit.optimizers import build_optimizer
from firstlight.networks import MaskedConfig, MaskedLanguageModel

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


@pytest.mark.parametrize("factory", [DECAYING, partial(AdamW, lr=0.1), lambda weights: DECAYING(weights)])
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


def wide_masked_network() -> MaskedLanguageModel:
    """A network of 4 times its base width, with hidden matrices inside and outside of its blocks."""
    options = {"dim": 16, "num_heads": 2, "head_layer": True, "convolution": 3, "tie_embeddings": False}
    return MaskedLanguageModel(MaskedConfig(**options, parametrization="mup", base_dim=4), 11)


def rates_and_decays(network: nn.Module, optimizer: Optimizer) -> dict[str, tuple[float, float]]:
    """Return the learning rate and the weight decay of each parameter."""
    name_of = {parameter: name for name, parameter in network.named_parameters()}
    groups = optimizer.param_groups
    return {name_of[each]: (group["lr"], group["weight_decay"]) for group in groups for each in group["params"]}


def test_mup_divides_the_rates_of_hidden_matrices_and_keeps_the_product_with_their_decay() -> None:
    network = wide_masked_network()
    found = rates_and_decays(network, build_optimizer(network, partial(AdamW, lr=0.1, weight_decay=0.5)))
    hidden = {name for name, (rate, _) in found.items() if rate == 0.1 / 4}
    assert hidden == {
        "convolution.mixture.weight",
        "head_layer.linear.weight",
        *(f"blocks.0.self_attention.{part}.weight" for part in ("query", "key", "value", "output")),
        *(f"blocks.0.feed_forward.{part}.weight" for part in ("expand", "contract")),
    }
    for name, pair in found.items():
        assert pair == ((0.1 / 4, 0.5 * 4) if name in hidden else (0.1, 0.5) if name == "head.weight" else (0.1, 0.0))
    assert found.keys() == dict(network.named_parameters()).keys()


def test_mup_leaves_the_rate_of_muon_and_divides_that_of_other_hidden_matrices() -> None:
    network = wide_masked_network()
    found = rates_and_decays(network, build_optimizer(network, partial(MuonAdamW, lr=0.1, matrix_lr=0.3)))
    assert {rate for name, (rate, _) in found.items() if "blocks" in name and name.endswith("query.weight")} == {0.3}
    assert {name for name, (rate, _) in found.items() if rate == 0.1 / 4} == {
        "convolution.mixture.weight",
        "head_layer.linear.weight",
    }


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (partial(SGD, lr=0.1), "parametrization=mup does not scale the steps of SGD .*; set optimizer=adamw"),
        (partial(Adam, lr=0.1, weight_decay=0.5), "the steps of Adam with weight_decay=0.5; set optimizer=adamw"),
    ],
)
def test_mup_refuses_optimizers_whose_steps_depend_on_the_width_in_another_way(factory, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_optimizer(wide_masked_network(), factory)


@pytest.mark.parametrize("name", ["adam", "adamw", "muon", "sgd"])
def test_every_optimizer_accepts_what_the_configuration_of_a_generator_gives_it(name: str) -> None:
    node = composed("task=names", f"optimizer={name}").optimizer
    assert node.get("betas") == (None if name == "sgd" else [0.9, 0.99])
    weights = [nn.Parameter(torch.zeros(2, 2))]
    assert hydra.utils.instantiate(node)(weights).param_groups[0]["lr"] == 5e-3
