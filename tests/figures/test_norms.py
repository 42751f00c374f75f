"""Tests of norms: their content, and that all texts are readable."""

import numpy as np

from figures_support import check_readable, data_axes
from firstlight.figures.parameters import plot_norms

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
