"""Tests of norms: their content, and that all texts are readable."""

import numpy as np
import pytest

from figures_support import check_readable, data_axes
from firstlight.figures.norms import plot_norms

NAMES = ["embedding.weight", "blocks.0.attention.query.weight", "head.bias"]


def test_weights_and_gradients_stand_side_by_side_from_the_input_down() -> None:
    figure = plot_norms(NAMES, np.array([7.0, 0.5, 0.0]), np.array([1e-3, 2e-2, 0.3]))
    check_readable(figure)
    weights, gradients = data_axes(figure)
    assert weights.lines[0].get_data()[0].tolist() == [7.0, 0.5]
    assert weights.lines[0].get_data()[1].tolist() == [0, 1]
    assert [text.get_text() for text in weights.texts] == ["0"]  # a logarithmic scale has no zero
    assert gradients.lines[0].get_data()[0].tolist() == [1e-3, 2e-2, 0.3]
    assert [label.get_text() for label in weights.get_yticklabels()] == NAMES
    assert weights.yaxis_inverted()
    assert weights.get_xscale() == "log"
    assert [axes.get_xlabel() for axes in (weights, gradients)] == [
        "norm of the weights",
        "norm of the gradient of the loss",
    ]


@pytest.mark.parametrize("count", [1, 90])
def test_many_layers_can_be_read(count: int) -> None:
    names = [f"decoder.{i}.cross_attention_norm.weight" for i in range(count)]
    values = 10 ** np.random.default_rng(0).uniform(-6, 2, size=count)
    check_readable(plot_norms(names, values, values[::-1]))
    for gradients in (None, np.zeros(count)):
        check_readable(figure := plot_norms(names, values, gradients))
        assert len(data_axes(figure)) == (1 if gradients is None else 2)


def test_other_lengths_are_an_error() -> None:
    for weights, gradients in ((np.ones(2), None), (np.ones(3), np.ones(2))):
        with pytest.raises(ValueError, match="there are 3 names and values of shapes"):
            plot_norms(NAMES, weights, gradients)
    with pytest.raises(ValueError, match="there are 0 names"):
        plot_norms([], np.array([]))
