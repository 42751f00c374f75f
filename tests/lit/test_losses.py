import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from firstlight.lit.losses import classification_loss, probabilities

ROWS = 23


def logits_of(outputs: int, seed: int = 3) -> Tensor:
    return 2 * torch.randn(ROWS, outputs, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def targets_of(classes: int, seed: int = 5) -> Tensor:
    return torch.randint(classes, (ROWS,), generator=torch.Generator().manual_seed(seed))


def as_two(logits: Tensor) -> Tensor:
    """Return two outputs with the same probabilities: (batch, 1) -> (batch, 2)."""
    return torch.cat((torch.zeros_like(logits), logits), dim=1)


# --- probabilities ---


@settings(deadline=None)
@given(
    logit=st.floats(-1e30, 1e30, allow_nan=False),
    outputs=st.sampled_from([1, 2, 3]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
)
def test_even_extreme_logits_have_probabilities(logit: float, outputs: int, dtype: torch.dtype) -> None:
    logits = torch.full((1, outputs), logit).clamp(torch.finfo(dtype).min, torch.finfo(dtype).max).to(dtype)
    assert probabilities(logits).sum().item() == pytest.approx(1, abs=0.01)


# --- the loss for two classes ---


@pytest.mark.parametrize("label_smoothing", [0.0, 0.13])
@pytest.mark.parametrize("class_weights", [None, torch.tensor([0.5, 2.0], dtype=torch.float64)], ids=["", "weighted"])
def test_one_logit_has_the_loss_of_two(label_smoothing: float, class_weights: Tensor | None) -> None:
    logits, targets = logits_of(1), targets_of(2)
    assert_close(
        classification_loss(logits, targets, class_weights, label_smoothing=label_smoothing),
        classification_loss(as_two(logits), targets, class_weights, label_smoothing=label_smoothing),
    )


def test_a_hopeless_logit_has_a_finite_loss_and_gradient() -> None:
    logits = torch.tensor([[-1e4], [1e4]], requires_grad=True)
    loss = classification_loss(logits, torch.tensor([1, 0]))
    loss.backward()
    assert loss.item() == pytest.approx(1e4)
    assert logits.grad.flatten().tolist() == [-0.5, 0.5]


# --- the loss for more classes ---


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_smoothed_labels_give_every_class_its_share(smoothing: float) -> None:
    logits, targets = logits_of(5), targets_of(5)
    shares = (1 - smoothing) * F.one_hot(targets, 5) + smoothing / 5
    expected = -(shares * logits.log_softmax(dim=1)).sum(dim=1).mean()
    assert_close(classification_loss(logits, targets, label_smoothing=smoothing), expected)


# --- class weights ---


@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_a_class_of_weight_two_counts_as_if_its_rows_were_there_twice(outputs: int) -> None:
    logits, targets = logits_of(outputs), targets_of(max(outputs, 2))
    weights = torch.ones(max(outputs, 2), dtype=torch.float64)
    weights[1] = 2
    again = targets == 1
    twice = classification_loss(torch.cat((logits, logits[again])), torch.cat((targets, targets[again])))
    assert_close(classification_loss(logits, targets, weights), twice)
