"""The maximal update parametrization: which weights it scales, and the size of activations in wide networks."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.generator.options import GeneratorConfig
from firstlight.lit.muon import MuonAdamW
from firstlight.lit.networks import build_network
from firstlight.lit.optimizers import OptimizerFactory, build_optimizer
from firstlight.masked.options import MaskedConfig
from firstlight.networks.attention import build_attention
from firstlight.networks.config import TransformerConfig
from firstlight.networks.parametrization import hidden_layers, output_layers, width_multiplier
from firstlight.networks.variants import PoolingKind
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig

VOCABULARY, LENGTH = 13, 7
SIZES = {"dim": 24, "num_heads": 2, "num_layers": 2, "context_length": LENGTH, "dropout": 0.0}
MUP = {"parametrization": "mup", "base_dim": 24, "base_head_dim": 12}
NORMAL = {"initialization": "depth_scaled", "embedding_std": 0.02}
KINDS: dict[str, TransformerConfig] = {
    "generator": GeneratorConfig(**SIZES, causal_convolution=3, activation="swiglu", feed_forward_dim=96),
    "tied": GeneratorConfig(**SIZES, tie_embeddings=True, scale_embeddings=True, positions="learned"),
    "normal": GeneratorConfig(**SIZES, **NORMAL, positions="relative", attention_bias=True, num_loops=2),
    **{
        f"classifier {pooling.value}": ClassifierConfig(**SIZES, pooling=pooling, convolution=3, embedding_dim=5)
        for pooling in (PoolingKind.per_token, PoolingKind.flatten, PoolingKind.attention)
    },
    "translator": EncoderDecoderConfig(**SIZES, num_key_value_heads=1, feed_forward="linear"),
    "masked": MaskedConfig(**SIZES, head_layer=True, convolution=3),
}
OF_EVERY_KIND = pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)


def build(config: TransformerConfig) -> nn.Module:
    """Return a network of a kind. A classifier also reads features."""
    features = {"num_features": 4} if isinstance(config, ClassifierConfig) else {}
    return build_network(config, VOCABULARY, num_classes=3, source_vocab_size=VOCABULARY, **features)


def adamw(lr: float) -> OptimizerFactory:
    return lambda parameters: torch.optim.AdamW(parameters, lr=lr, weight_decay=0.1)


def at_width(config: TransformerConfig, ratio: int) -> TransformerConfig:
    """Return the config of a network that is `ratio` times as wide."""
    feed_forward_dim = None if config.feed_forward_dim is None else ratio * config.feed_forward_dim
    return replace(config, dim=ratio * config.dim, feed_forward_dim=feed_forward_dim)


def logits_of(network: nn.Module, ids: Tensor) -> Tensor:
    if isinstance(network, EncoderDecoder):
        return network(ids, ids)
    if isinstance(network, Classifier):
        return network(ids, None, torch.ones(*ids.shape, network.num_features) if network.num_features else None)
    return network(ids)


def every_parameter(network: nn.Module) -> dict[str, nn.Parameter]:
    return dict(network.named_parameters(remove_duplicate=False))


def trained(network: nn.Module, factory: OptimizerFactory, steps: int) -> Tensor:
    """Return the logits of a network after some steps on random tokens."""
    ids = torch.randint(VOCABULARY, (4, LENGTH), generator=torch.Generator().manual_seed(7))
    optimizer = build_optimizer(network, factory)
    for _ in range(steps):
        optimizer.zero_grad()
        logits = logits_of(network, ids).flatten(0, -2)
        F.cross_entropy(logits, torch.arange(len(logits)) % logits.shape[1]).backward()
        optimizer.step()
    return logits_of(network, ids).detach()


@OF_EVERY_KIND
def test_at_the_base_width_weights_and_steps_are_those_of_the_standard_parametrization(config) -> None:
    networks = []
    for each in (config, replace(config, **MUP)):
        torch.manual_seed(3)
        networks.append(build(each))
    for (name, first), second in zip(networks[0].state_dict().items(), networks[1].state_dict().values(), strict=True):
        assert torch.equal(first, second), name
    assert torch.equal(*(trained(network, adamw(0.01), steps=2) for network in networks))
    groups = [build_optimizer(network, adamw(0.01)).state_dict()["param_groups"] for network in networks]
    assert groups[0] == groups[1]


@OF_EVERY_KIND
def test_hidden_layers_grow_on_both_sides_and_output_layers_on_one(config) -> None:
    with torch.device("meta"):
        base, wide = (build(each) for each in (config, at_width(config, 2)))
    growing: dict[int, set[str]] = {0: set(), 1: set(), 2: set()}
    for (name, old), new in zip(every_parameter(base).items(), every_parameter(wide).values(), strict=True):
        growing[sum(one != other for one, other in zip(old.shape, new.shape, strict=True))].add(name)
    name_of = {id(weight): name for name, weight in every_parameter(wide).items()}  # of a tied matrix, that of the head
    assert {name_of[id(layer.weight)] for layer in hidden_layers(wide)} == growing[2]
    outputs = {name_of[id(layer.weight)] for layer in output_layers(wide.head)}
    assert outputs == {name for name in growing[1] if name.startswith("head.")}


@OF_EVERY_KIND
def test_only_the_initial_weights_of_hidden_layers_depend_on_the_width(config) -> None:
    torch.manual_seed(3)
    base = build(config)
    wide = build(replace(at_width(config, 4), **MUP))
    assert width_multiplier(wide) == 4
    hidden = {id(layer.weight) for layer in hidden_layers(wide)}
    for (name, weight), narrow in zip(wide.named_parameters(), base.parameters(), strict=True):
        size, expected = weight.square().mean().sqrt().item(), narrow.square().mean().sqrt().item()
        expected /= 2 if id(weight) in hidden else 1
        assert size == pytest.approx(expected, rel=5 / math.sqrt(narrow.numel())), name  # of random numbers


def test_scores_of_attention_are_divided_by_the_size_of_a_head() -> None:
    narrow = build_attention(TransformerConfig(dim=32, num_heads=4))
    wide = build_attention(TransformerConfig(dim=128, num_heads=4, parametrization="mup", base_dim=32))
    assert narrow.scale == 1 / math.sqrt(8)
    assert wide.scale * 32 == pytest.approx(narrow.scale * 8)
    more_heads = TransformerConfig(dim=128, num_heads=16, parametrization="mup", base_dim=32, base_head_dim=8)
    assert build_attention(more_heads).scale == narrow.scale


def sizes_of_activations(parametrization: str, factory: OptimizerFactory, dim: int) -> dict[str, float]:
    """Return the mean absolute outputs of the last block and of the logits after some steps."""
    torch.manual_seed(1)
    config = GeneratorConfig(
        **SIZES | {"dim": dim}, norm="pre", final_norm=True, parametrization=parametrization, base_dim=16
    )
    network, found = build(config), {}
    network.blocks[-1].register_forward_hook(lambda *args: found.update(block=args[2].abs().mean().item()))
    found["logits"] = trained(network, factory, steps=5).abs().mean().item()
    return found


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_activations_do_not_grow_with_the_width_after_some_steps(optimizer: str) -> None:
    factory = adamw(0.02) if optimizer == "adamw" else lambda parameters: MuonAdamW(parameters, lr=0.02)
    sizes = {kind: [sizes_of_activations(kind, factory, dim) for dim in (16, 32, 128)] for kind in ("standard", "mup")}
    for name in ("block", "logits"):
        standard, mup = ([each[name] for each in sizes[kind]] for kind in ("standard", "mup"))
        assert max(mup) < 1.6 * mup[0], (name, mup)
        if name == "logits" or optimizer == "adamw":  # steps of Muon have the right size in hidden layers
            assert standard[-1] > 2 * standard[0], (name, standard)


def test_a_fixed_size_of_the_feed_forward_layer_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    fixed = GeneratorConfig(dim=64, num_heads=2, parametrization="mup", base_dim=32, feed_forward_dim=128)
    build_network(fixed, vocab_size=11)
    assert "model.feed_forward_dim=128 is fixed; with model.parametrization=mup it must grow" in caplog.text
    caplog.clear()
    build_network(replace(fixed, feed_forward_dim=None), vocab_size=11)
    assert not caplog.text
