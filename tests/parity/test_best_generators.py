"""The best recipes for the plays do not exceed the budgets of their comparison."""

import hydra
import pytest
from omegaconf import OmegaConf

from composed import composed
from firstlight.lit.muon import MuonAdamW
from firstlight.lit.networks import build_network
from firstlight.networks import num_parameters

CHARACTERS = 72  # the characters of the plays, and the unknown symbol


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
    network = build_network(OmegaConf.to_object(config.model), CHARACTERS)
    assert num_parameters(network) == parameters <= most_parameters
    steps = config.epochs * config.trainer.limit_train_batches
    assert 0.99 * most_characters < steps * config.data.batch_size * config.context_length <= most_characters
    assert config.context_length == 64
    assert hydra.utils.get_class(config.optimizer._target_) is MuonAdamW
    assert config.data.validation_fraction == 0.05
    assert config.data.split.value == "sequential"


def test_the_short_recipe_is_the_long_ones_network() -> None:
    assert composed("experiment=best/shakespeare_short").model == composed("experiment=best/shakespeare").model
