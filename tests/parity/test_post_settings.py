"""The settings of the posts and of the best recipes, composed as in a run: sizes, and options of the training."""

from pathlib import Path
from string import ascii_lowercase

import hydra
import pytest
import torch
import yaml
from omegaconf import OmegaConf
from torch import nn
from torch.testing import assert_close

from composed import composed
from firstlight.data.windows import RandomWindows, Stream
from firstlight.lit import MuonAdamW
from firstlight.lit.networks import build_network
from firstlight.networks import num_parameters
from firstlight.networks.attention import MultiHeadAttention
from firstlight.text.text_tokenizers import CharacterTokenizer

PLAYS = "\n !(),-.:;?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz—‘’“”"  # the 71 characters of post 2
NAMES = "." + ascii_lowercase
NO_UNKNOWN_SYMBOL = "tokenizer.unknown_symbol=null"


def network_of(*overrides: str, vocab_size: int, num_classes: int = 0) -> nn.Module:
    return build_network(OmegaConf.to_object(composed(*overrides).model), vocab_size, num_classes)


def tokenizer_of(alphabet: str, *overrides: str) -> CharacterTokenizer:
    """Return the tokenizer that a run with these settings trains on a text of these characters."""
    return CharacterTokenizer.train([alphabet], composed(*overrides).tokenizer.unknown_symbol)


# --- sizes ---


@pytest.mark.parametrize(
    ("experiment", "vocab_size", "num_classes", "parameters"),
    [
        ("post/stars", 7_455, 5, 251_456),
        ("post/stars", 6_653, 5, 12_896 + 32 * 6_653),
        ("post/sentiment", 7_455, 2, 251_456 - 4 * (50 + 1)),  # one output instead of five
        # words 8 · 6,653 = 53,224, attention 4 · 8² + 8, feed-forward 2 · 8 · 32 + 32 + 8, norms 4 · 8, head 264
        ("post/stars_dim8", 6_653, 5, 54_336),  # "about 54,000"
        # of each block: attention 4 · 3 · 50² + 50, feed-forward 2 · 50 · 400 + 400 + 50; head 12 · 50 + 1
        ("post/movies", 6_653, 2, 50 * 6_653 + 2 * (30_050 + 40_450) + 601),
    ],
)
def test_the_shipped_classifiers_have_the_parameters_of_the_posts(experiment, vocab_size, num_classes, parameters):
    network = network_of(f"experiment={experiment}", vocab_size=vocab_size, num_classes=num_classes)
    assert num_parameters(network) == parameters


@pytest.mark.parametrize(
    ("overrides", "alphabet", "vocab_size", "parameters"),
    [
        (["experiment=post/shakespeare", NO_UNKNOWN_SYMBOL], PLAYS, 71, 44_487),
        (["experiment=post/shakespeare"], PLAYS, 72, 44_552),
        (["experiment=post/shakespeare_no_mask"], PLAYS, 72, 44_552),
        (["experiment=post/shakespeare_context16"], PLAYS, 72, 44_552 - (64 - 16) * 32),
        (["experiment=post/names", "ladder=one_head"], NAMES, 27, 15_771),
        (["experiment=post/names", "ladder=pre_norm"], NAMES, 27, 72_347),
        (["experiment=post/names"], NAMES, 27, 72_347),
        (["experiment=post/names", "ladder=bigram_table"], NAMES, 27, 27 * 27),
        (["experiment=post/names", "ladder=running_averages"], NAMES, 27, 27 * 64 + 64 * 27 + 27),
        (["experiment=post/names", "ladder=raw_affinities"], NAMES, 27, 27 * 64 + 64 * 27 + 27),
        (["experiment=post/names_five_letters"], NAMES, 27, 72_347 - (32 - 5) * 64),
        (["experiment=post/names_lstm"], NAMES, 27, 70_407),  # of the same size
        (["experiment=post/names_lstm_stateful"], NAMES, 27, 70_407),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_the_shipped_generators_have_the_posts_vocabularies_and_parameters(overrides, alphabet, vocab_size, parameters):
    tokenizer = tokenizer_of(alphabet, *overrides)
    assert tokenizer.vocab_size == vocab_size
    assert num_parameters(network_of(*overrides, vocab_size=vocab_size)) == parameters


# --- options that determine a training ---

POSTS = yaml.safe_load(Path(__file__).with_name("posts.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("typed", [typed for typed in POSTS if "=" in typed])
def test_a_shipped_setting_is_that_of_its_post(typed: str) -> None:
    plain = OmegaConf.create(OmegaConf.to_container(composed(*typed.split()), enum_to_str=True))
    assert {key: OmegaConf.select(plain, key, throw_on_missing=True) for key in POSTS[typed]} == POSTS[typed]


@pytest.mark.parametrize(
    ("overrides", "steps"),
    [
        ([], 2_300),  # 0.95 · 4,963,197 / (64 · 32)
        (["context_length=32"], 4_600),  # as in the author's script
        (["context_length=32", "data.batch_size=64"], 2_300),
    ],
)
def test_an_epoch_of_the_plays_has_about_the_posts_steps(overrides: list[str], steps: int) -> None:
    data = composed("experiment=post/shakespeare", *overrides).data
    length = round((1 - data.validation_fraction - data.test_fraction) * 4_963_197)
    assert round(len(RandomWindows(Stream(range(length)), data.context_length, data.batch_size, 0)), -2) == steps


# --- the meaning of the settings ---


@pytest.mark.parametrize(
    ("experiment", "looks_ahead"), [("post/shakespeare", False), ("post/shakespeare_no_mask", True)]
)
def test_only_the_setting_without_a_mask_sees_what_it_is_to_predict(experiment: str, looks_ahead: bool) -> None:
    torch.manual_seed(0)
    network = network_of(f"experiment={experiment}", vocab_size=72).eval()
    token_ids = torch.arange(1, 65)[None]
    changed = token_ids.clone()
    changed[:, 41:] += 5
    differs = (network(changed) - network(token_ids)).abs().amax(dim=2)[0] > 1e-4
    assert differs[:41].any().item() is looks_ahead
    assert differs[41:].all()


def test_dropout_of_post_5_is_on_the_summed_inputs_and_on_the_feed_forward_layers_only() -> None:
    config = OmegaConf.to_object(composed("experiment=post/translation", "dropout=0.25").model)
    network = build_network(config, vocab_size=7, source_vocab_size=5)
    blocks = [*network.encoder, *network.decoder]
    assert network.dropout.p == 0.25
    assert [block.feed_forward.dropout for block in blocks] == [0.25] * 4
    attentions = [part for part in network.modules() if isinstance(part, MultiHeadAttention)]
    assert [(attention.dropout, attention.output_dropout) for attention in attentions] == [(0.0, 0.0)] * 6
    added = []
    for positions in (network.source_positions, network.positions):
        positions.register_forward_hook(lambda _, arguments, output: added.append((output - arguments[0])[0, 0]))
    network(torch.tensor([[3]]), torch.tensor([[2]]))
    for first in added:
        assert_close(first, torch.tensor([0.0, 1.0]).repeat(64))  # sinusoids that count from 0, on both sides


# --- characters ---


def test_lysander_is_spelled_as_in_post_2() -> None:
    """In the post, the first character has the id 1. Here it has 0, or 1 if the unknown symbol has 0."""
    spelled = [23, 36, 30, 12, 25, 15, 16, 29]
    plain = tokenizer_of(PLAYS, "experiment=post/shakespeare", NO_UNKNOWN_SYMBOL)
    assert plain.encode("LYSANDER").tolist() == [place - 1 for place in spelled]
    shipped = tokenizer_of(PLAYS, "experiment=post/shakespeare")
    assert shipped.encode("LYSANDER").tolist() == spelled
    assert shipped.words[0] == "Ø"


# --- the best recipes for the plays, which do not exceed the budgets of their comparison ---


@pytest.mark.parametrize(
    ("experiment", "parameters", "most_parameters", "most_characters"),
    [
        ("best/shakespeare", 44_520, 44_552, 47_200_000),
        ("best/shakespeare_short", 44_520, 44_552, 1_200_000),
        ("best/shakespeare_nanogpt", 799_360, 810_000, 2_000 * 12 * 64),
    ],
)
def test_a_best_recipe_keeps_to_its_budget(experiment, parameters, most_parameters, most_characters) -> None:
    config = composed(f"experiment={experiment}")
    network = build_network(OmegaConf.to_object(config.model), 72)
    assert num_parameters(network) == parameters <= most_parameters
    steps = config.epochs * config.trainer.limit_train_batches
    assert 0.99 * most_characters < steps * config.data.batch_size * config.context_length <= most_characters
    assert config.context_length == 64
    assert hydra.utils.get_class(config.optimizer._target_) is MuonAdamW
    assert config.data.validation_fraction == 0.05
    assert config.data.split.value == "sequential"


def test_the_short_recipe_is_the_long_ones_network() -> None:
    assert composed("experiment=best/shakespeare_short").model == composed("experiment=best/shakespeare").model
