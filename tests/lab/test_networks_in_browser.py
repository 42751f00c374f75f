"""Tests that the page computes the logits of torch: random networks and texts in a real browser."""

import base64
import copy
import itertools
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from firstlight.lab.playground.page import described
from firstlight.masked.network import MaskedLanguageModel
from firstlight.masked.options import MaskedConfig
from firstlight.networks import (
    Classifier,
    ClassifierConfig,
    EncoderDecoder,
    EncoderDecoderConfig,
    Generator,
    GeneratorConfig,
    TransformerConfig,
    run_with_cache,
    run_with_hooks,
)
from firstlight.networks.variants import Activation, FeedForwardKind, Norm, NormKind, PoolingKind, Positions

VOCABULARY, CONTEXT, OUTPUTS = 40, 14, 3
SIZES = {"dim": 8, "num_heads": 2, "num_layers": 1, "context_length": CONTEXT, "feed_forward_dim": 10}
NUM_TEXTS = 200  # random texts of a thorough comparison
NUM_LENGTHS = 4  # of these texts
TOLERANCE = 1e-4  # of the largest logit of a text
NORMS = [(norm, kind) for norm in Norm for kind in NormKind]
NUM_PAIRS = len(NORMS) * len(Activation)  # networks with every pair of options
OPEN = """
    const tokenizer = { kind: "characters", characters: "a", unknown_symbol: null };
    const buffer = Uint8Array.from(atob(data), (byte) => byte.charCodeAt(0)).buffer;
    const network = openNetwork({ tokenizers: [tokenizer], ...description }, buffer);
    const ids = (input) => Int32Array.from(input);
    const isPair = description.kind === "translator";
"""
SEE = f"""([description, data, input]) => {{
    {OPEN}
    const found = {{}};
    const see = (name, {{ data, shape }}) => (found[name] = [shape, Array.from(data, (value) => String(value))]);
    network.run(isPair ? {{ source: ids(input), target: ids(input) }} : ids(input), {{ see }});
    return [Object.keys(found), found];
}}"""
EDIT = f"""([description, data, input]) => {{
    {OPEN}
    const edit = (name, {{ data, shape }}) => {{
        if (name !== "blocks.0.attn.hook_z") return undefined;
        const isKept = (i) => Math.floor(i / shape[2]) % shape[1] > 0;
        return {{ data: data.map((value, i) => (isKept(i) ? value : 0)), shape }};
    }};
    return Array.from(network.run(ids(input), {{ edit }}).data);
}}"""
NOT_COMPARED = {  # options of the initial weights, of training, of refused networks, and of µP, which has its own test
    *("embedding_std", "initialization", "zero_init", "_target_", "options", "attention", "architecture"),
    *("dropout", "attention_dropout", "attention_output_dropout", "token_dropout"),
    *("parametrization", "base_dim", "base_head_dim"),
}
COMPUTE = f"""([description, data, inputs]) => {{
    {OPEN}
    const inputsOf = (input) => isPair ? {{ source: ids(input[0]), target: ids(input[1]) }} : ids(input);
    return inputs.map((input) => Array.from(network.run(inputsOf(input)).data));
}}"""

Options = dict[str, Any]


def shaken(network: nn.Module, seed: int) -> nn.Module:
    """Return a network with random weights, so that each of them changes the logits."""
    torch.manual_seed(seed)
    for name, weight in network.named_parameters():
        nn.init.normal_(weight, mean=1.0 if "norm" in name and name.endswith("weight") else 0.0, std=0.3)
    return network.eval()


def network_of(config: TransformerConfig, seed: int) -> tuple[str, nn.Module]:
    """Return the kind and a random network of some options."""
    match config:
        case ClassifierConfig():
            return "classifier", shaken(Classifier(config, VOCABULARY, OUTPUTS), seed)
        case GeneratorConfig():
            return "generator", shaken(Generator(config, VOCABULARY), seed)
        case MaskedConfig():
            return "masked", shaken(MaskedLanguageModel(config, VOCABULARY - 1), seed)  # the last id is [MASK]
    return "translator", shaken(EncoderDecoder(config, VOCABULARY, VOCABULARY), seed)


def sent(kind: str, network: nn.Module, config: TransformerConfig) -> list[Any]:
    """Return a network as the scripts of the page take it: its description and its weights."""
    description, tensors = described(network, config)
    return [{"kind": kind, **description}, base64.b64encode(tensors).decode()]


def drawn_length() -> int:
    return int(torch.randint(1, CONTEXT + 1, ()))


@torch.inference_mode()
def compare(page: Any, config: TransformerConfig, seed: int = 0, num_texts: int = NUM_LENGTHS) -> None:
    """Check that the page computes the logits of a random network for random texts."""
    kind, network = network_of(config, seed)
    torch.manual_seed(seed)
    inputs: list[Any] = []
    expected: list[np.ndarray] = []
    exact: list[np.ndarray] = []
    divides_by_little = config.norm_kind is NormKind.over_words  # torch itself may round by more than the tolerance
    precise = copy.deepcopy(network).double() if divides_by_little else network
    for _ in range(NUM_LENGTHS):
        texts, targets = (torch.randint(VOCABULARY, (num_texts // NUM_LENGTHS, drawn_length())) for _ in range(2))
        is_pair = kind == "translator"
        given = (texts, targets) if is_pair else (texts,)
        expected += [*network(*given).flatten(1).numpy()]
        exact += [*precise(*given).flatten(1).numpy()]
        inputs += [*zip(texts.tolist(), targets.tolist(), strict=True)] if is_pair else texts.tolist()
    found = page.evaluate(COMPUTE, [*sent(kind, network, config), inputs])
    for logits, true, precisely in zip(found, expected, exact, strict=True):
        rounded = np.abs(true - precisely).max()  # 0 unless the norm is over words
        assert np.abs(np.array(logits) - true).max() <= TOLERANCE * np.abs(true).max() + 4 * rounded, config


def options_of(number: int, norms: list[tuple[Norm, NormKind]]) -> Options:
    """Return options. Below len(norms) · 9, every pair of a position, a norm and an activation appears."""
    row, column = number % len(norms), number // len(norms) % len(Activation)
    activation, has_gate = [*Activation][column], [*Activation][column] is Activation.swiglu
    positions = [*Positions][(row + column) % len(Positions)]
    has_output_layer = number % 6 != 5
    feed_forward = {4: FeedForwardKind.linear, 9: FeedForwardKind.linear, 7: FeedForwardKind.none}.get(number % 11)
    return SIZES | {
        "positions": positions,
        "position_scale": 0.5 if positions in (Positions.rotary, Positions.sinusoidal) and column % 2 else 1.0,
        "rotary_base": 100.0 if positions is Positions.rotary else 10_000.0,
        "head_dim": 6 if has_output_layer and number % 4 == 3 else None,
        "norm": norms[row][0],
        "norm_kind": norms[row][1],
        "activation": activation,
        "feed_forward": FeedForwardKind.mlp if has_gate or feed_forward is None else feed_forward,
        "num_layers": 1 + number % 2,
        "num_key_value_heads": 1 + number // 2 % 2,
        "first_position": number % 2,
        "embedding_norm": number % 3 == 0,
        "final_norm": number % 3 != 1,
        "norm_affine": number % 5 != 0,
        "norm_eps": None if number % 4 else 0.01,
        "residual": number % 7 != 3,
        "scale_embeddings": number % 3 == 1,
        "scale_scores": number % 5 != 2,
        "attention_bias": number % 2 == 0,
        "output_bias": number % 3 != 2,
        "output_projection": has_output_layer,
    }


def classifier(number: int) -> ClassifierConfig:
    column, row = divmod(number, len(NORMS))
    options = options_of(number, NORMS) | {
        "pooling": [*PoolingKind][(2 * row + column + row // 5) % len(PoolingKind)],
        "causal": number % 4 == 1 and NORMS[number % len(NORMS)][1] is not NormKind.over_words,
        "embedding_dim": 5 if number % 4 == 2 else None,
        "embedded_words": 30 if number % 4 == 3 else None,
    }
    return ClassifierConfig(**options, convolution=3 if number % 3 == 0 and not options["causal"] else None)


def generator(number: int) -> GeneratorConfig:
    norms = [each for each in NORMS if each[1] is not NormKind.over_words]
    return GeneratorConfig(
        **options_of(number, norms),
        num_loops=1 + number % 2,
        causal_convolution=3 if number % 3 == 0 else None,
        tie_embeddings=number % 2 == 0,
        head_bias=number % 3 != 1,
        causal=number % 5 != 4,
    )


def translator(number: int) -> EncoderDecoderConfig:
    return EncoderDecoderConfig(
        **options_of(number, NORMS),
        num_decoder_layers=1 + number % 3,
        share_embeddings=number % 2 == 0,
        tie_embeddings=number % 3 == 0,
        head_bias=number % 3 != 1,
    )


def masked(number: int) -> MaskedConfig:
    options = options_of(number, [each for each in NORMS if each[1] is not NormKind.over_words])
    has_head_layer = number % 2 == 0 and options["activation"] is not Activation.swiglu
    return MaskedConfig(
        **options,
        head_layer=has_head_layer,
        convolution=3 if number % 3 == 0 else None,
        tie_embeddings=number % 4 < 2,
        head_bias=number % 3 != 1,
    )


@pytest.mark.parametrize("config_of", [classifier, generator, translator, masked])
def test_the_page_computes_the_logits_of_torch(page: Any, config_of: Callable[[int], TransformerConfig]) -> None:
    for number in range(NUM_PAIRS):
        compare(page, config_of(number), number)


def test_every_pair_of_options_is_compared() -> None:
    configs = [classifier(number) for number in range(NUM_PAIRS)]
    found = [(each.positions, (each.norm, each.norm_kind), each.activation, each.pooling) for each in configs]
    for first, second in itertools.combinations(range(4), 2):
        values = [{options[place] for options in found} for place in (first, second)]
        assert {(options[first], options[second]) for options in found} == set(itertools.product(*values))
    assert [len({options[place] for options in found}) for place in range(4)] == [6, 9, 9, 8]


@pytest.mark.parametrize("config_of", [classifier, generator, translator, masked])
def test_every_option_that_changes_the_logits_is_compared(config_of: Callable[[int], TransformerConfig]) -> None:
    """A new option must be computed by network.js and be drawn here, or be one of those that do not change them."""
    configs = [config_of(number) for number in range(NUM_PAIRS)]
    names = {option.name for option in fields(configs[0])} - NOT_COMPARED - SIZES.keys()
    if config_of in (translator, masked):
        names.remove("causal")  # it must be false
    assert {name for name in names if len({str(getattr(each, name)) for each in configs}) == 1} == set()


def test_widths_of_mup_and_200_texts(page: Any) -> None:
    config = ClassifierConfig(**SIZES, parametrization="mup", base_dim=4, base_head_dim=2, pooling="attention")
    compare(page, config, num_texts=NUM_TEXTS)


@pytest.mark.slow  # minutes: 3,000 networks, of which the test above draws some
@pytest.mark.parametrize("positions", list(Positions))
@pytest.mark.parametrize("norm", NORMS, ids=lambda pair: f"{pair[0].name}-{pair[1].name}")
def test_every_combination_on_200_texts(page: Any, positions: Positions, norm: tuple[Norm, NormKind]) -> None:
    for number, activation in enumerate(Activation):
        options = SIZES | {"positions": positions, "activation": activation, "norm": norm[0], "norm_kind": norm[1]}
        options |= {"final_norm": norm[0] is not Norm.post}
        for pooling in PoolingKind:
            compare(page, ClassifierConfig(**options, pooling=pooling), number, NUM_TEXTS)
        compare(page, EncoderDecoderConfig(**options), number, NUM_TEXTS)
        if norm[1] is not NormKind.over_words:
            compare(page, GeneratorConfig(**options), number, NUM_TEXTS)
            compare(page, MaskedConfig(**options), number, NUM_TEXTS)


@pytest.mark.parametrize("config_of", [classifier, generator, translator, masked])
@torch.inference_mode()
def test_activations_have_the_names_and_the_values_of_torch(
    page: Any, config_of: Callable[[int], TransformerConfig]
) -> None:
    more = {"hook_pos_embed", "hook_rot_q", "hook_rot_k"}  # only in the page, for the figures
    for number in range(len(Positions)):
        config = config_of(number)
        kind, network = network_of(config, number)
        ids = torch.tensor([[7, 3, 5, 11]])
        _, cache = run_with_cache(network, *[ids] * (2 if kind == "translator" else 1))
        names, found = page.evaluate(SEE, [*sent(kind, network, config), ids[0].tolist()])
        assert [name for name in names if name.rpartition(".")[2] not in more] == sorted(cache, key=names.index)
        assert set(names) == found.keys()
        for name, value in cache.items():
            shape, data = found[name]
            numbers = np.array([float(number.replace("Infinity", "inf")) for number in data])
            np.testing.assert_allclose(numbers.reshape(shape), value[0], atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_pairs_in_both_orders_and_answers_of_multiple_choice(page: Any) -> None:
    config = ClassifierConfig(**SIZES, convolution=3)
    pairs = [[2, 7, 9, 3, 11, 4], [2, 3, 8, 12, 13, 4], [2, 5, 3, 4]]
    network = shaken(Classifier(config, VOCABULARY, OUTPUTS, both_orders=True), 0)
    found = page.evaluate(COMPUTE, [*sent("classifier", network, config), pairs])
    for logits, pair in zip(found, pairs, strict=True):
        np.testing.assert_allclose(logits, network(torch.tensor([pair]))[0], rtol=1e-4, atol=1e-4)
    network = shaken(Classifier(config, VOCABULARY, 1, choices=True), 0)
    choose = COMPUTE.replace("isPair ?", "true ? input.map(ids) : isPair ?")
    padded = torch.tensor([[pair + [0] * (6 - len(pair)) for pair in pairs]])
    mask = torch.tensor([[[place < len(pair) for place in range(6)] for pair in pairs]])
    (found,) = page.evaluate(choose, [*sent("classifier", network, config), [pairs]])
    np.testing.assert_allclose(found, network(padded, mask)[0], rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_an_activation_that_is_replaced_changes_the_logits_as_in_torch(page: Any) -> None:
    config = generator(1)
    kind, network = network_of(config, 1)

    def remove(value: torch.Tensor, *, hook: Any) -> torch.Tensor:
        value[..., 0, :] = 0
        return value

    ids = torch.tensor([[7, 3, 5, 11]])
    expected = run_with_hooks(network, ids, fwd_hooks=[("blocks.0.attn.hook_z", remove)]).flatten().numpy()
    found = np.array(page.evaluate(EDIT, [*sent(kind, network, config), ids[0].tolist()]))
    assert np.abs(found - expected).max() <= TOLERANCE * np.abs(expected).max()
    assert np.abs(found - network(ids).flatten().numpy()).max() > 0.01


def test_each_weight_is_stored_once() -> None:
    _, network = network_of(GeneratorConfig(**SIZES, tie_embeddings=True, positions="rotary"), 0)
    description, tensors = described(network, GeneratorConfig(**SIZES, tie_embeddings=True, positions="rotary"))
    places = {name: offset for name, _, offset in description["tensors"]}
    assert places["head.weight"] == places["embedding.weight"]
    rotary = 2 * CONTEXT * SIZES["dim"] // SIZES["num_heads"] // 2
    assert len(tensors) == 4 * (sum(weight.numel() for weight in network.parameters()) + rotary)
    pairs = itertools.pairwise(sorted(set(places.values())))
    assert all(second > first for first, second in pairs)
