"""The two classifiers without attention, computed by hand with small weights."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from firstlight.classifier.network import BagOfWords, LogisticRegression
from firstlight.classifier.options import ClassifierConfig
from firstlight.lit.networks import build_network
from firstlight.networks.layers import num_parameters
from stand_ins import random_texts

VOCABULARY, OUTPUTS, DIM, UNKNOWN = 29, 5, 7, 1
Baseline = type[BagOfWords] | type[LogisticRegression]
both = pytest.mark.parametrize("kind", [BagOfWords, LogisticRegression])


def make(kind: Baseline, seed: int = 0, num_outputs: int = OUTPUTS, **options: object) -> nn.Module:
    """Return a network whose weights are all random, including those of a logistic regression."""
    torch.manual_seed(seed)
    config = ClassifierConfig(**({"dim": DIM, "num_heads": 1, "dropout": 0.0, "context_length": 11} | options))
    network = kind(config, VOCABULARY, num_outputs, UNKNOWN).double()
    for parameter in network.parameters():
        nn.init.normal_(parameter)
    return network


def set_to(parameter: nn.Parameter, rows: object) -> None:
    with torch.no_grad():
        parameter.copy_(torch.tensor(rows))


# --- by hand ---

TEXTS = torch.tensor([[2, 3, 2, 0], [4, 0, 0, 0]])
IS_REAL = torch.tensor([[True, True, True, False], [True, False, False, False]])


def test_a_bag_of_words_is_a_linear_layer_of_the_mean_vector() -> None:
    network = BagOfWords(ClassifierConfig(dim=2, num_heads=1, dropout=0.0), 5, 3)
    set_to(network.embedding.weight, [[90, 90], [80, 80], [3, 0], [0, 6], [-1, 1]])
    set_to(network.head.weight, [[1, 0], [0, 1], [2, -1]])
    set_to(network.head.bias, [0.5, 0, -1])
    # means: (3 + 0 + 3, 0 + 6 + 0) / 3 = (2, 2), and (-1, 1), which is a single word
    expected = torch.tensor([[2.5, 2, 2 * 2 - 2 - 1], [-0.5, 1, -2 - 1 - 1]])
    assert_close(network(TEXTS, IS_REAL), expected)


def test_a_logistic_regression_adds_the_weights_of_the_words_as_often_as_they_stand_there() -> None:
    network = LogisticRegression(ClassifierConfig(), 5, 3)
    set_to(network.weights.weight, [[90, 90, 90], [80, 80, 80], [1, 2, -3], [10, 20, 40], [5, 0, 7]])
    set_to(network.bias, [0.5, 0, -1])
    # 2 · (1, 2, -3) + (10, 20, 40), and (5, 0, 7), which is a single word
    expected = torch.tensor([[12.5, 24, 33], [5.5, 0, 6]])
    assert_close(network(TEXTS, IS_REAL), expected)


# --- sizes ---


@pytest.mark.parametrize("num_classes", [2, 5])
def test_the_parameters_are_those_of_the_words_and_of_the_outputs(num_classes: int) -> None:
    outputs = {2: 1, 5: 5}[num_classes]
    counts = {"bag_of_words": 997 * 12 + 12 * outputs + outputs, "logistic": 997 * outputs + outputs}
    for architecture, count in counts.items():
        config = ClassifierConfig(dim=12, num_layers=3, architecture=architecture)
        assert num_parameters(build_network(config, 997, num_classes)) == count


def test_the_vectors_start_as_wide_as_the_config_says() -> None:
    for std in (1.0, 0.02):
        torch.manual_seed(0)
        network = BagOfWords(ClassifierConfig(embedding_std=std), 997, OUTPUTS)
        assert network.embedding.weight.std().item() == pytest.approx(std, rel=0.02)


# --- training ---


@both
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_an_empty_text_is_scored_by_the_bias_alone_and_breaks_no_gradient(kind: Baseline) -> None:
    network = make(kind)
    token_ids, padding_mask = random_texts([7, 0], width=7)
    bias = network.head.bias if isinstance(network, BagOfWords) else network.bias
    with torch.autograd.detect_anomaly():
        logits = network(token_ids, padding_mask)
        logits.square().sum().backward()
    assert_close(logits[1], bias)
    assert_close(network(token_ids[:1]), logits[:1])  # without a mask, every token is real
    for name, parameter in network.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


@both
def test_token_dropout_makes_words_unknown_in_training_alone(kind: Baseline) -> None:
    network = make(kind, token_dropout=0.5)
    token_ids = torch.full((997, 1), 17)
    known, unknown = (make(kind)(torch.tensor([[token]])) for token in (17, UNKNOWN))
    logits = network(token_ids)
    is_known, is_unknown = (torch.isclose(logits, each).all(dim=1) for each in (known, unknown))
    assert (is_known ^ is_unknown).all()
    assert is_unknown.double().mean().item() == pytest.approx(0.5, abs=0.065)  # 4 standard deviations
    assert_close(network.eval()(token_ids), known.expand(997, -1))
