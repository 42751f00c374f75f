"""Named activations: all of them are read and replaced where their names say, and nothing remains afterwards."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from firstlight.classifier.network import BagOfWords, LogisticRegression
from firstlight.classifier.options import ClassifierConfig
from firstlight.decoding.generate import generate
from firstlight.generator.lstm import LSTM
from firstlight.generator.options import GeneratorConfig
from firstlight.networks import masks
from firstlight.networks.attention import attention_weights
from firstlight.networks.instrument import activation_names, hooks, run_with_cache, run_with_hooks
from firstlight.networks.variants import Positions
from stand_ins import LENGTH, WORDS, classifier, generator, masked, translator

CASES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "generator, post-norm": (generator, {}),
    "generator, pre-norm, SwiGLU": (generator, {"norm": "pre", "final_norm": True, "activation": "swiglu"}),
    "generator, no norm": (generator, {"norm": "none"}),
    "generator, loops and convolution": (generator, {"num_loops": 2, "causal_convolution": 3, "norm": "pre"}),
    "generator, one linear layer": (generator, {"feed_forward": "linear", "residual": False}),
    "generator, no feed-forward": (generator, {"feed_forward": "none", "output_projection": False}),
    "generator, grouped heads": (generator, {"num_key_value_heads": 1, "positions": "rotary"}),
    "classifier": (classifier, {"convolution": 3, "norm": "pre", "norm_kind": "rms", "final_norm": True}),
    "classifier, norms over words": (classifier, {"norm_kind": "over_words"}),
    "masked": (masked, {"head_layer": True, "scale_embeddings": True}),
    "translator": (translator, {}),
    "translator, pre-norm": (translator, {"norm": "pre", "final_norm": True, "norm_kind": "over_words"}),
}
every_network = pytest.mark.parametrize(("make", "options"), CASES.values(), ids=CASES.keys())


def left_overs(network: nn.Module) -> list[str]:
    """Return the modules that still have a hook or a watch."""
    return [
        name
        for name, module in network.named_modules()
        if module._forward_hooks or module._forward_pre_hooks or getattr(module, "watch", None) is not None
    ]


@every_network
def test_every_activation_is_read_and_the_logits_are_those_of_the_fused_network(make, options) -> None:
    network, inputs = make(**options)
    plain = network(*inputs)
    logits, cache = run_with_cache(network, *inputs)
    assert_close(logits, plain, rtol=0, atol=1e-12)
    assert set(cache) == set(activation_names(network))
    assert not any(value.requires_grad for value in cache.values())
    assert left_overs(network) == []
    assert torch.equal(network(*inputs), plain)


@every_network
def test_an_activation_that_is_replaced_by_itself_changes_nothing_and_by_another_one_changes_the_logits(make, options):
    network, inputs = make(**options)
    plain = network(*inputs)
    for name in activation_names(network):
        same = run_with_hooks(network, *inputs, fwd_hooks=[(name, lambda value, hook: value.clone())])
        assert_close(same, plain, rtol=0, atol=1e-12)
        changed = run_with_hooks(network, *inputs, fwd_hooks=[(name, lambda value, hook: value.flip(-1) * 1.5)])
        assert not torch.allclose(changed, plain, rtol=1e-6), name


@pytest.mark.parametrize("make", [generator, classifier, translator, masked])
def test_in_float32_the_instrumented_logits_differ_by_a_millionth_of_the_largest(make: Callable[..., Any]) -> None:
    network, inputs = make()
    network.float()
    for parameter in network.parameters():
        parameter.data /= 4
    logits, _ = run_with_cache(network, *inputs)
    fused = network(*inputs)
    assert_close(logits, fused, rtol=0, atol=1e-6 * fused.abs().max().item())


@pytest.mark.parametrize("positions", Positions)
def test_the_steps_of_a_block_follow_from_one_another(positions: Positions) -> None:
    network, inputs = generator(positions=positions, norm="pre", final_norm=True)
    logits, cache = run_with_cache(network, *inputs)
    for layer, block in enumerate(network.blocks):
        pre, mid = cache["resid_pre", layer], cache["resid_mid", layer]
        assert_close(cache["attn_out", layer], mid - pre)
        assert_close(cache["mlp_out", layer], cache["resid_post", layer] - mid)
        normalized = cache[f"blocks.{layer}.ln1.hook_normalized"]
        assert_close(normalized, block.self_attention_norm(pre))
        assert_close(cache["v", layer].flatten(2), block.self_attention.value(normalized))
        assert_close(cache["attn_scores", layer].softmax(dim=-1), cache["pattern", layer])
        z = torch.einsum("bhqk,bkhe->bqhe", cache["pattern", layer], cache["v", layer])
        assert_close(cache["z", layer], z)
        assert_close(block.self_attention.output(z.flatten(2)), cache["attn_out", layer])
        assert_close(cache["post", layer], cache["pre", layer].relu())
        assert_close(block.feed_forward.contract(cache["post", layer]), cache["mlp_out", layer])
    assert_close(cache["resid_post", 0], cache["resid_pre", 1])
    assert_close(network.head(cache["ln_final.hook_normalized"]), logits)
    assert cache["pattern", 0].shape == (2, 3, LENGTH, LENGTH)
    if positions is Positions.none:
        q, k = cache["q", 0], cache["k", 0]
        later = ~masks.causal(torch.arange(LENGTH), torch.arange(LENGTH))
        scores = torch.einsum("bqhe,bkhe->bhqk", q, k) / 2
        assert_close(cache["attn_scores", 0], scores.masked_fill(later, -torch.inf))


def test_the_names_are_those_of_transformerlens() -> None:
    network, _ = generator(norm="pre", final_norm=True)
    block = [
        *("hook_resid_pre", "ln1.hook_normalized", "attn.hook_q", "attn.hook_k", "attn.hook_v"),
        *("attn.hook_attn_scores", "attn.hook_pattern", "attn.hook_z", "hook_attn_out", "hook_resid_mid"),
        *("ln2.hook_normalized", "mlp.hook_pre", "mlp.hook_post", "hook_mlp_out", "hook_resid_post"),
    ]
    blocks = [f"blocks.{layer}.{name}" for layer in range(2) for name in block]
    assert activation_names(network) == ["hook_embed", *blocks, "ln_final.hook_normalized"]
    of_translator = activation_names(translator(norm="pre", final_norm=True, activation="swiglu")[0])
    for name in (
        *("encoder.hook_embed", "encoder.1.hook_resid_post", "encoder_final_ln.hook_normalized", "decoder.hook_embed"),
        *("decoder.2.attn.hook_pattern", "decoder.2.hook_resid_mid", "decoder.2.cross_attn.hook_pattern"),
        *("decoder.2.hook_cross_attn_out", "decoder.2.hook_resid_mid_cross", "decoder.2.ln3.hook_normalized"),
        *("decoder.2.mlp.hook_pre_linear", "decoder_final_ln.hook_normalized"),
    ):
        assert name in of_translator


def test_blocks_that_are_applied_again_have_their_own_numbers() -> None:
    network, inputs = generator(num_loops=3, norm="pre")
    _, cache = run_with_cache(network, *inputs, names_filter=lambda name: "resid" in name)
    assert [name for name in cache if name.endswith("resid_post")] == [f"blocks.{i}.hook_resid_post" for i in range(6)]
    for layer in range(5):
        assert torch.equal(cache["resid_post", layer], cache["resid_pre", layer + 1])
    stop = run_with_hooks(network, *inputs, fwd_hooks=[("blocks.5.hook_resid_post", lambda value, hook: value * 0)])
    assert_close(stop, network.head(torch.zeros(2, LENGTH, 12, dtype=torch.float64)))


def test_the_captured_tensors_are_copies() -> None:
    network, inputs = generator()

    def double(value: Tensor, *, hook: Any) -> Tensor:
        return value.mul_(2)

    with hooks(network, [("blocks.0.hook_resid_post", double)]):
        _, cache = run_with_cache(network, *inputs)
    _, plain = run_with_cache(network, *inputs)
    assert torch.equal(cache["resid_post", 0], 2 * plain["resid_post", 0])  # the outer function is first
    assert torch.equal(cache["mlp_out", 0], plain["mlp_out", 0])


def test_a_function_gets_the_name_and_the_number_of_the_block() -> None:
    network, inputs = generator()
    seen: dict[str, int] = {}

    def note(value: Tensor, *, hook: Any) -> None:
        seen[hook.name] = hook.layer()

    run_with_hooks(network, *inputs, fwd_hooks=[(["blocks.1.hook_mlp_out", "blocks.0.attn.hook_z"], note)])
    assert seen == {"blocks.1.hook_mlp_out": 1, "blocks.0.attn.hook_z": 0}
    with pytest.raises(ValueError, match="hook_embed is outside the blocks"):
        run_with_hooks(network, *inputs, fwd_hooks=[("hook_embed", note)])


def test_nothing_remains_after_an_exception_and_the_watches_of_outer_blocks_do() -> None:
    network, inputs = generator()
    with attention_weights(network) as weights:
        with pytest.raises(ZeroDivisionError), hooks(network, [(None, lambda value, hook: 1 / 0)]):
            network(*inputs)
        network(*inputs)
    assert set(weights) == {"blocks.0.self_attention", "blocks.1.self_attention"}
    assert left_overs(network) == []


def test_gradients_flow_through_an_instrumented_network() -> None:
    network, inputs = generator()
    (expected,) = torch.autograd.grad(network(*inputs).square().sum(), network.embedding.weight)
    leaves: list[Tensor] = []
    with hooks(network, [("blocks.1.attn.hook_pattern", lambda value, hook: leaves.append(value))]):
        loss = network(*inputs).square().sum()
    found, of_pattern = torch.autograd.grad(loss, [network.embedding.weight, leaves[0]])
    assert_close(found, expected)
    assert of_pattern.abs().max() > 0


@pytest.mark.parametrize("name", ["blocks.1.attn.hook_z", "blocks.1.hook_mlp_out", "blocks.0.attn.hook_k"])
def test_generation_with_a_cache_sees_the_hooks(name: str) -> None:
    network, (token_ids,) = generator(positions="learned")
    given = torch.tensor([[3, 8, 1, 5]]).expand(2, -1)
    read = torch.cat((token_ids, given), dim=1)[:, :-1]

    def scored() -> Tensor:
        """Return the logits from which each of four tokens is chosen, (batch, 4, words)."""
        scores: list[Tensor] = []

        def choose(logits: Tensor) -> Tensor:
            scores.append(logits)
            return given[:, len(scores) - 1]

        assert len([*generate(network, token_ids, 4, choose)]) == 4
        return torch.stack(scores, dim=1)

    with torch.no_grad(), hooks(network, [(name, lambda value, hook: -value)]):
        assert_close(scored(), network(read)[:, LENGTH - 1 :])
        changed = scored()
    assert not torch.allclose(changed, scored())


def test_a_compiled_network_is_instrumented_and_compiled_again_afterwards() -> None:
    network, inputs = generator()
    plain = network(*inputs)
    network.compile(backend="eager")
    compiled = network._compiled_call_impl
    with hooks(network, [("blocks.0.attn.hook_z", lambda value, hook: value * 0)]):
        assert network._compiled_call_impl is None
        assert not torch.allclose(network(*inputs), plain)
    assert network._compiled_call_impl is compiled


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda network: hooks(network, [("blocks.0.attn.hook_patern", print)]), "did you mean blocks.0.attn.hook_pa"),
        (lambda network: hooks(network, [("blocks.7.hook_mlp_out", print)]), r"did you mean blocks\.\d\.hook_mlp_out"),
        (lambda network: hooks(network, [("weights", print)]), "no activation is named weights; there are hook_embed"),
        (lambda network: hooks(network, [(lambda name: False, print)]), "selects none of the activations, such as"),
    ],
)
def test_a_wrong_name_is_answered_in_one_line(make: Callable[..., Any], message: str) -> None:
    network, _ = generator()
    with pytest.raises(ValueError, match=message) as error, make(network):
        pass
    assert "\n" not in str(error.value)
    assert left_overs(network) == []


def test_a_value_of_another_shape_is_refused() -> None:
    network, inputs = generator()
    expected = re.escape("blocks.0.hook_mlp_out: the function must return a tensor of (2, 7, 12), not (2, 12)")
    with pytest.raises(ValueError, match=expected):
        run_with_hooks(network, *inputs, fwd_hooks=[("blocks.0.hook_mlp_out", lambda value, hook: value[:, 0])])


@pytest.mark.parametrize(
    "network",
    [
        LSTM(GeneratorConfig(), WORDS),
        BagOfWords(ClassifierConfig(), WORDS, 5),
        LogisticRegression(ClassifierConfig(), WORDS, 5),
        nn.Linear(3, 3),
    ],
    ids=lambda network: type(network).__name__,
)
def test_a_network_without_blocks_is_refused_by_its_name(network: nn.Module) -> None:
    with pytest.raises(ValueError, match=f"a {type(network).__name__} has no blocks whose activations have names"):
        activation_names(network)
    with pytest.raises(KeyError, match=r"did you mean blocks\.0\.hook_resid_post"):
        run_with_cache(*generator()[:1], *generator()[1])[1]["resid_pots", 0]
