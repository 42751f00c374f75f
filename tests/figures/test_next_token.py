"""Tests of the next token and of the loss at each position: their content, and that all texts are readable."""

import numpy as np
import pytest

from figures_support import check_readable
from firstlight.figures import plot_loss_per_position, plot_next_tokens, style


def test_the_bars_are_the_probabilities_and_what_is_left() -> None:
    figure = plot_next_tokens(["e", "␣", "$"], np.array([0.5, 0.25, 0.05]), prompt="How\nchanc")
    check_readable(figure)
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([0.5, 0.25, 0.05])
    assert [text.get_text() for text in axes.texts] == ["50.0%", "25.0%", "5.0%"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["e", "␣", "$"]
    assert axes.yaxis_inverted()  # the most likely token is on top
    assert axes.get_xlabel() == "probability of the next token; all others together: 20.0%; ␣ is a space"
    assert axes.get_ylabel() == "next token"
    assert figure.get_suptitle() == "Next token after “How⏎chanc”"


def test_a_token_that_would_have_0_percent_has_no_bar() -> None:
    (axes,) = plot_next_tokens(["a", "b", "c"], np.array([0.999, 0.0006, 0.0004])).axes
    assert [text.get_text() for text in axes.texts] == ["99.9%", "0.1%"]
    (axes,) = plot_next_tokens(["a", "b"], np.array([0.0001, 0.0001])).axes
    assert len(axes.patches) == 1


def test_of_a_long_prompt_the_end_is_shown_and_of_none_a_beginning() -> None:
    heading = plot_next_tokens(["e"], np.array([0.5]), prompt="x" * 100 + "the end").get_suptitle()
    assert heading.startswith("Next token after “…x")
    assert heading.endswith("xthe end”")
    assert plot_next_tokens(["e"], np.array([0.5])).get_suptitle() == "First token of a text"


def test_the_curve_is_the_mean_of_each_position_with_twice_its_error() -> None:
    losses = np.array([[4.0, 2.0, 1.0], [2.0, 2.0, 3.0], [3.0, 2.0, 2.0], [3.0, 2.0, 2.0]])
    figure = plot_loss_per_position(losses, unit="nats per character")
    check_readable(figure)
    (axes,) = figure.axes
    mean, all_positions = axes.lines
    assert mean.get_xdata().tolist() == [1, 2, 3]
    assert mean.get_ydata().tolist() == [3, 2, 2]
    assert mean.get_color() == style.BLUE
    assert all_positions.get_ydata()[0] == pytest.approx(losses.mean())
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(3 + 2 * np.sqrt(0.5) / 2)
    assert axes.get_ylabel() == "loss (nats per character)"
    assert axes.get_xlabel().startswith("position in the context")
