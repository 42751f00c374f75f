"""The options of networks: what they are by default, and one line for each combination that is impossible."""

import pytest

from firstlight.classifier.options import ClassifierConfig
from firstlight.generator.options import GeneratorConfig
from firstlight.masked.options import MaskedConfig
from firstlight.networks.config import TransformerConfig
from firstlight.networks.variants import FeedForwardKind, Positions

NAN, INFINITE = float("nan"), float("inf")
ANY, CLASSIFIER, GENERATOR = TransformerConfig, ClassifierConfig, GeneratorConfig
EVEN_WIDTH = "model.positions=rotary requires an even model.head_dim, not 7$"
LAST_LAYERS = "model.zero_init=true requires model.residual=true, .*; set model.zero_init=false$"
IMPOSSIBLE: list[tuple[type[TransformerConfig], dict[str, object], str]] = [
    (ANY, {"dim": 50, "num_heads": 3}, "model.dim=50 .* model.num_heads=3; set model.head_dim, or use 2 or 5 heads$"),
    (ANY, {"dim": 7, "num_heads": 2}, "model.dim=7 .* or use 1 or 7 heads$"),
    (ANY, {"dim": 32, "num_heads": 31}, "model.dim=32 .* or use 16 or 32 heads$"),
    (ANY, {"dim": 7, "num_heads": 11}, "model.dim=7 .* or use 7 heads$"),
    (
        ANY,
        {"dim": 12, "num_heads": 6, "num_key_value_heads": 4},
        ".* must divide model.num_heads=6; use 3 or 6$",
    ),
    (ANY, {"dim": 21, "num_heads": 3, "positions": Positions.rotary}, EVEN_WIDTH),
    (ANY, {"dim": 22, "num_heads": 11, "head_dim": 7, "positions": Positions.rotary}, EVEN_WIDTH),
    (ANY, {"head_dim": 50, "output_projection": False}, "model.output_projection=false requires .* = 32$"),
    (ANY, {"first_position": -1}, "model.first_position=-1 must be at least 0$"),
    (ANY, {"zero_init": True, "residual": False}, LAST_LAYERS),
    (ANY, {"zero_init": True, "output_projection": False}, LAST_LAYERS),
    (ANY, {"zero_init": True, "feed_forward": FeedForwardKind.linear}, LAST_LAYERS),
    (ANY, {"zero_init": True, "initialization": "depth_scaled", "embedding_std": 0.02}, LAST_LAYERS),
    (ANY, {"feed_forward": FeedForwardKind.linear, "activation": "swiglu"}, "model.feed_forward=linear has no"),
    (ANY, {"initialization": "normal"}, "model.embedding_std=1.0 is too large .*; set it to 0.02$"),
    (ANY, {"positions": Positions.learned, "rotary_base": 500}, "model.rotary_base=500 .*rotary; set it to 10000$"),
    (GENERATOR, {"context_length": 1}, "context_length=1 must be at least 2 for a generator$"),
    (GENERATOR, {"context_length": 0}, "context_length=0 must be at least 1$"),
    (GENERATOR, {"num_loops": 0}, "model.num_loops=0 must be at least 1$"),
    (GENERATOR, {"causal_convolution": 1}, "model.causal_convolution=1 must be at least 2$"),
    (GENERATOR, {"norm_kind": "over_words"}, "model.norm_kind=over_words .*causal=false; set model.norm_kind=layer$"),
    (MaskedConfig, {"norm_kind": "over_words"}, "model.norm_kind=over_words applies to classifiers and translators,"),
    (CLASSIFIER, {"causal": True, "convolution": 3}, "model.convolution=3 lets a token see .* model.causal=true"),
    (
        ANY,
        {"positions": Positions.learned, "position_scale": 0.5},
        "model.position_scale=0.5 requires .* to 1$",
    ),
    *(
        (GENERATOR, {name: None}, f"model.{name}=None must be one of ")
        for name in ("positions", "norm", "initialization")
    ),
    *(
        (ANY, {name: value}, f"model.{name}={value} must be at least 1$")
        for name in ("dim", "num_heads", "num_layers", "head_dim", "feed_forward_dim", "num_key_value_heads")
        for value in (0, -1)
    ),
    *(
        (CLASSIFIER, {name.removeprefix("model."): value}, f"{name}={value} must be at least 0 and below 1$")
        for name in ("dropout", "model.attention_dropout", "model.token_dropout")
        for value in (-0.1, 1.0, NAN)
    ),
    *(
        (ANY, {name: value}, f"model.{name}={value} must be a finite number above 0")
        for name in ("embedding_std", "norm_eps")
        for value in (0.0, -0.02, NAN, INFINITE)
    ),
    *(
        (ANY, {"position_scale": value}, f"model.position_scale={value} must be above 0 and at most 1$")
        for value in (0.0, -0.5, 1.5, NAN, INFINITE)
    ),
    *(
        (ANY, {"positions": Positions.rotary, "rotary_base": value}, f"model.rotary_base={value} must be .* above 1$")
        for value in (1.0, 0.0, NAN, INFINITE)
    ),
]


@pytest.mark.parametrize(("kind", "options", "message"), IMPOSSIBLE)
def test_an_impossible_option_is_an_error_that_names_it(
    kind: type[TransformerConfig], options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        kind(**options)


@pytest.mark.parametrize("attention", [{"window": 3}, {"_target_": None, "window": 3}, "my.Attention"])
def test_arguments_of_an_attention_require_its_class(attention: object) -> None:
    with pytest.raises(ValueError, match=r"^model\.attention=.* requires a class; set model\.attention\._target_$"):
        TransformerConfig(attention=attention)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (TransformerConfig, {"dim": 1, "num_heads": 1, "num_layers": 1, "context_length": 1, "feed_forward_dim": 1}),
        (TransformerConfig, {"dim": 21, "num_heads": 3, "head_dim": 8, "positions": Positions.rotary}),
        (TransformerConfig, {"dim": 21, "num_heads": 3, "positions": Positions.relative}),
        (TransformerConfig, {"dim": 64, "num_heads": 4, "output_projection": False}),
        (TransformerConfig, {"first_position": 0, "position_scale": 1e-6}),
        (TransformerConfig, {"zero_init": True, "feed_forward": FeedForwardKind.none}),
        (ClassifierConfig, {"dropout": 0.999, "token_dropout": 0}),
        (ClassifierConfig, {"causal": True, "convolution": 1}),
        (GeneratorConfig, {"context_length": 2, "num_loops": 1, "causal_convolution": 2}),
    ],
)
def test_the_ends_of_what_is_allowed_are_accepted(kind: type[TransformerConfig], options: dict[str, object]) -> None:
    kind(**options)
