"""Tests of the predictions for masks: their content, and that all texts are readable."""

import numpy as np
import pytest

from figures_support import check_readable
from firstlight.figures.probabilities import plot_fillings


def test_each_mask_has_its_words_and_what_is_left() -> None:
    words = [["broke", "$", "died"], ["week", "year", "day"]]
    shares = np.array([[0.5, 0.25, 0.05], [0.9, 0.02, 0.0004]])
    figure = plot_fillings("It [MASK] after one [MASK]", words, shares)
    check_readable(figure)
    for axes, names, row, shown, rest in zip(figure.axes, words, shares, (3, 2), ("20.0%", "8.0%"), strict=True):
        assert [bar.get_width() for bar in axes.patches] == pytest.approx(row[:shown])  # none is 0.0%
        assert [label.get_text() for label in axes.get_yticklabels()] == names[:shown]
        assert axes.get_xlabel() == f"probability; all others together: {rest}"
        assert axes.yaxis_inverted()  # the most likely word is on top
    assert [axes.get_title() for axes in figure.axes] == ["[MASK] 1 of 2", "[MASK] 2 of 2"]
    assert figure.get_suptitle() == "Predictions for “It [MASK] after one [MASK]”"
