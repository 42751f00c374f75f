import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import firstlight
from firstlight.classifier.options import ClassifierConfig
from firstlight.generator.options import GeneratorConfig
from firstlight.networks.config import Activation, FeedForwardKind, Positions, TransformerConfig


def test_the_defaults_are_a_valid_model() -> None:
    config = ClassifierConfig()
    assert (config.dim, config.num_heads, config.resolved_head_dim, config.resolved_feed_forward_dim) == (32, 4, 8, 128)


def test_a_dim_that_the_heads_do_not_divide_is_an_error_that_names_the_nearest_heads() -> None:
    with pytest.raises(ValueError) as error:
        TransformerConfig(dim=50, num_heads=3)
    assert str(error.value) == (
        "model.dim=50 is not divisible by model.num_heads=3; set model.head_dim, or use 2 or 5 heads"
    )


@pytest.mark.parametrize(
    ("dim", "num_heads", "suggestion"),
    [(7, 2, "use 1 or 7 heads"), (7, 11, "use 7 heads"), (32, 5, "use 4 or 8 heads"), (32, 31, "use 16 or 32 heads")],
)
def test_the_suggested_heads_are_the_divisors_on_either_side(dim: int, num_heads: int, suggestion: str) -> None:
    with pytest.raises(ValueError, match=f"; set model.head_dim, or {suggestion}$"):
        TransformerConfig(dim=dim, num_heads=num_heads)


@settings(deadline=None)
@given(dim=st.integers(1, 200), num_heads=st.integers(1, 200))
def test_dim_and_num_heads_are_accepted_exactly_when_they_divide(dim: int, num_heads: int) -> None:
    if dim % num_heads == 0:
        assert TransformerConfig(dim=dim, num_heads=num_heads).resolved_head_dim * num_heads == dim
    else:
        with pytest.raises(ValueError, match=rf"model\.dim={dim} is not divisible by model\.num_heads={num_heads};"):
            TransformerConfig(dim=dim, num_heads=num_heads)


def test_a_given_head_dim_allows_three_heads_of_a_model_of_width_50() -> None:
    assert TransformerConfig(dim=50, num_heads=3, head_dim=50).resolved_head_dim == 50


def test_a_given_feed_forward_dim_is_taken_as_it_is() -> None:
    assert TransformerConfig(dim=50, num_heads=5, feed_forward_dim=400).resolved_feed_forward_dim == 400
    swiglu = TransformerConfig(dim=50, num_heads=5, feed_forward_dim=400, activation=Activation.swiglu)
    assert swiglu.resolved_feed_forward_dim == 400


@pytest.mark.parametrize(("dim", "hidden_dim"), [(1, 2), (30, 80), (32, 85), (50, 133), (384, 1_024)])
def test_a_gated_layer_is_narrower_so_that_its_three_matrices_are_as_large_as_two(dim: int, hidden_dim: int) -> None:
    config = TransformerConfig(dim=dim, num_heads=1, activation=Activation.swiglu)
    assert config.resolved_feed_forward_dim == hidden_dim
    assert 0 <= 2 * dim * 4 * dim - 3 * dim * hidden_dim < 3 * dim


def test_rotary_positions_with_an_odd_head_width_are_an_error_that_names_the_next_even_one() -> None:
    message = (
        r"^model\.positions=rotary requires an even head width, but it is 7; "
        r"set model\.head_dim=8, or other positions$"
    )
    with pytest.raises(ValueError, match=message):
        TransformerConfig(dim=21, num_heads=3, positions=Positions.rotary)
    with pytest.raises(ValueError, match=message):
        TransformerConfig(dim=22, num_heads=11, head_dim=7, positions=Positions.rotary)
    TransformerConfig(dim=21, num_heads=3, head_dim=8, positions=Positions.rotary)


def test_heads_that_do_not_add_up_to_dim_need_an_output_projection() -> None:
    message = (
        r"^model\.output_projection=false requires model\.num_heads \* model\.head_dim = model\.dim, "
        r"not 3 \* 50 = 150 and 50$"
    )
    with pytest.raises(ValueError, match=message):
        TransformerConfig(dim=50, num_heads=3, head_dim=50, output_projection=False)
    TransformerConfig(dim=64, num_heads=4, output_projection=False)


def key(name: str) -> str:
    """Return a key as the user types it, as a pattern. The keys of all tasks are at the top level."""
    return name if name in ("context_length", "dropout") else rf"model\.{name}"


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize(
    "name",
    ["dim", "num_heads", "num_layers", "context_length", "head_dim", "feed_forward_dim", "num_key_value_heads"],
)
def test_every_size_must_be_at_least_one(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=rf"^{key(name)}={value} must be at least 1$"):
        TransformerConfig(**{name: value})


def test_every_size_may_be_one() -> None:
    TransformerConfig(dim=1, num_heads=1, num_layers=1, context_length=1, head_dim=1, feed_forward_dim=1)


def test_the_first_position_may_be_zero_but_not_below() -> None:
    TransformerConfig(first_position=0)
    with pytest.raises(ValueError, match=r"^model\.first_position=-1 must be at least 0$"):
        TransformerConfig(first_position=-1)


@pytest.mark.parametrize("value", [-0.1, 1.0, 1.5, float("nan")])
@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "token_dropout"])
def test_a_share_outside_zero_to_one_is_an_error(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"^{key(name)}={value} must be at least 0 and below 1$"):
        ClassifierConfig(**{name: value})


@pytest.mark.parametrize("name", ["dropout", "token_dropout"])
def test_a_share_may_be_zero_or_almost_one(name: str) -> None:
    for value in (0, 0.0, 0.999):
        ClassifierConfig(**{name: value})


@pytest.mark.parametrize("value", [0.0, -0.02, float("nan"), float("inf")])
def test_an_embedding_std_that_is_not_a_finite_number_above_zero_is_an_error(value: float) -> None:
    with pytest.raises(ValueError, match=rf"^model\.embedding_std={value} must be a finite number above 0$"):
        TransformerConfig(embedding_std=value)


@pytest.mark.parametrize("value", [0.0, -0.5, 1.5, float("nan"), float("inf")])
def test_a_position_scale_outside_zero_to_one_is_an_error(value: float) -> None:
    message = rf"^model\.position_scale={value} must be above 0 and at most 1$"
    with pytest.raises(ValueError, match=message):
        TransformerConfig(position_scale=value)


def test_a_position_scale_may_be_one_or_almost_zero() -> None:
    for value in (1, 1.0, 0.5, 1e-6):
        TransformerConfig(position_scale=value)


@pytest.mark.parametrize(
    "options",
    [
        {"residual": False},
        {"output_projection": False},
        {"residual": False, "output_projection": False},
        {"residual": False, "feed_forward": FeedForwardKind.linear},
    ],
)
def test_starting_from_nothing_needs_a_path_around_and_a_last_layer(options: dict[str, object]) -> None:
    message = r"^model\.zero_init=true requires model\.residual=true and model\.output_projection=true$"
    with pytest.raises(ValueError, match=message):
        TransformerConfig(zero_init=True, **options)
    TransformerConfig(zero_init=False, **options)


def test_a_linear_feed_forward_layer_cannot_start_from_nothing() -> None:
    message = r"^model\.zero_init=true would keep model\.feed_forward=linear at zero forever; use mlp$"
    with pytest.raises(ValueError, match=message):
        TransformerConfig(zero_init=True, feed_forward=FeedForwardKind.linear)
    for kind in (FeedForwardKind.mlp, FeedForwardKind.none):
        TransformerConfig(zero_init=True, feed_forward=kind)


def test_a_generator_looks_back_only_and_a_classifier_both_ways_unless_told_otherwise() -> None:
    assert GeneratorConfig().causal
    assert not ClassifierConfig().causal


def test_a_generator_needs_a_token_to_read_and_one_to_foretell() -> None:
    GeneratorConfig(context_length=2)
    with pytest.raises(ValueError, match=r"^context_length=1 must be at least 2 for a generator$"):
        GeneratorConfig(context_length=1)
    with pytest.raises(ValueError, match=r"^context_length=0 must be at least 1$"):
        GeneratorConfig(context_length=0)


@pytest.mark.parametrize("kind", [ClassifierConfig, GeneratorConfig])
def test_relative_positions_take_any_head_width(kind: type[TransformerConfig]) -> None:
    assert kind(dim=21, num_heads=3, positions=Positions.relative).resolved_head_dim == 7


def test_a_classifier_is_checked_like_every_transformer() -> None:
    with pytest.raises(ValueError, match=r"model\.dim=50 is not divisible by model\.num_heads=3;"):
        ClassifierConfig(dim=50, num_heads=3)


def test_a_generator_is_checked_like_every_transformer() -> None:
    with pytest.raises(ValueError, match=r"model\.dim=50 is not divisible by model\.num_heads=3;"):
        GeneratorConfig(dim=50, num_heads=3)


@pytest.mark.parametrize("kind", [ClassifierConfig, GeneratorConfig])
def test_every_field_has_a_default_so_that_a_config_file_may_name_only_what_it_changes(
    kind: type[TransformerConfig],
) -> None:
    assert [field.name for field in fields(kind) if field.default is field.default_factory] == []


def test_importing_the_config_imports_no_torch() -> None:
    source = Path(firstlight.__file__).parents[1]
    heavy = "{'torch', 'numpy', 'lightning', 'hydra', 'omegaconf'}"
    code = f"import sys, firstlight.networks.config; print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "[]"


def test_a_gate_needs_two_layers() -> None:
    with pytest.raises(ValueError, match=r"model\.feed_forward=linear has no gate for model\.activation=swiglu"):
        TransformerConfig(feed_forward=FeedForwardKind.linear, activation=Activation.swiglu)


def test_a_convolution_that_shows_the_next_token_is_refused_where_it_may_not_be_seen() -> None:
    message = r"^model\.convolution=3 lets a token see the next one, which model\.causal=true"
    with pytest.raises(ValueError, match=message):
        ClassifierConfig(causal=True, convolution=3)
    for allowed in (None, 1):
        ClassifierConfig(causal=True, convolution=allowed)


@pytest.mark.parametrize("positions", [Positions.learned, Positions.relative, Positions.none])
def test_a_scale_is_refused_where_nothing_is_scaled(positions: Positions) -> None:
    message = (
        rf"^model\.position_scale=0\.5 scales sinusoidal and rotary positions, not {positions.value}; set it to 1$"
    )
    with pytest.raises(ValueError, match=message):
        TransformerConfig(positions=positions, position_scale=0.5)


@pytest.mark.parametrize(("name", "value", "least"), [("num_loops", 0, 1), ("causal_convolution", 1, 2)])
def test_blocks_are_run_at_least_once_and_a_convolution_sees_at_least_one_token_before(
    name: str, value: int, least: int
) -> None:
    with pytest.raises(ValueError, match=rf"^model\.{name}={value} must be at least {least}$"):
        GeneratorConfig(**{name: value})
    GeneratorConfig(**{name: least})


@pytest.mark.parametrize("name", ["positions", "norm", "norm_kind", "feed_forward", "activation", "initialization"])
def test_a_choice_cannot_be_none(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^model\.{name}=None must be one of "):
        GeneratorConfig(**{name: None})


@pytest.mark.parametrize("value", [1.0, 0.0, float("nan"), float("inf")])
def test_a_rotary_base_must_be_above_one_and_have_positions_to_rotate(value: float) -> None:
    with pytest.raises(ValueError, match=rf"^model\.rotary_base={value} must be a finite number above 1$"):
        TransformerConfig(positions=Positions.rotary, rotary_base=value)
    message = r"^model\.rotary_base=500 requires model\.positions=rotary, not learned; set it to 10000$"
    with pytest.raises(ValueError, match=message):
        TransformerConfig(positions=Positions.learned, rotary_base=500)


@pytest.mark.parametrize("value", [0.0, -1e-5, float("nan"), float("inf")])
def test_a_norm_eps_that_is_not_a_finite_number_above_zero_is_an_error(value: float) -> None:
    with pytest.raises(ValueError, match=rf"^model\.norm_eps={value} must be a finite number above 0, or null$"):
        TransformerConfig(norm_eps=value)


@pytest.mark.parametrize("attention", [{"window": 3}, {"_target_": None, "window": 3}, "my.Attention"])
def test_arguments_of_an_attention_require_its_class(attention: object) -> None:
    with pytest.raises(ValueError, match=r"^model\.attention=.* requires a class; set model\.attention\._target_, or"):
        TransformerConfig(attention=attention)
