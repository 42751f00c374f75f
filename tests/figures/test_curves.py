"""Tests of training curves: their content, and that all texts are readable."""

import numpy as np
import pytest

from figures_support import check_readable, data_axes, legend_of
from firstlight.figures import style
from firstlight.figures.curves import Curve, plot_curves, plot_learning_curves

STEPS = np.array([9, 19, 29])


def line(label: str, values: list[float], color: str = style.BLUE) -> Curve:
    return Curve(label, STEPS[: len(values)], np.array(values), color)


def test_every_metric_has_a_panel_and_every_curve_a_line() -> None:
    figure = plot_curves(
        {
            "loss (nats)": [line("training", [3.0, 2.0, 1.0], style.ORANGE), line("validation", [2.5, 2.0])],
            "accuracy": [line("validation", [0.1, 0.2])],
        },
        references={"loss (nats)": ("expected", 2.7)},
    )
    check_readable(figure)
    loss, accuracy = data_axes(figure)
    assert (loss.get_xlabel(), loss.get_ylabel(), accuracy.get_ylabel()) == ("step", "loss (nats)", "accuracy")
    training, validation, expected = loss.lines
    assert training.get_xdata().tolist() == [9, 19, 29]
    assert training.get_ydata().tolist() == [3, 2, 1]
    assert (training.get_color(), validation.get_color()) == (style.ORANGE, style.BLUE)
    assert list(expected.get_ydata()) == [2.7, 2.7]
    assert legend_of(figure) == ["training", "validation", "expected"]


def test_a_single_value_has_its_label_at_the_point() -> None:
    figure = plot_curves({"loss": [line("training", [3, 2, 1]), Curve("validation", STEPS[2:], np.array([2.5]), "k")]})
    check_readable(figure)
    (label,) = data_axes(figure)[0].texts
    assert (label.get_text(), label.xy) == ("validation 2.5", (29, 2.5))


def test_long_curves_stand_pale_behind_their_running_mean() -> None:
    steps, values = 25_000 * np.arange(200), np.random.default_rng(0).random(200)
    figure = plot_curves({"loss": [Curve("training", steps, values, style.BLUE)]})
    check_readable(figure)
    raw, smooth = data_axes(figure)[0].lines
    assert raw.get_ydata().tolist() == values.tolist()
    assert raw.get_alpha() < 0.5
    assert smooth.get_ydata()[0] == pytest.approx(values[:20].mean())
    assert smooth.get_xdata()[0] == 25_000 * 19
    assert smooth.get_ydata()[-1] == pytest.approx(values[-20:].mean())
    assert smooth.get_xdata()[-1] == 25_000 * 199


def test_a_few_very_high_losses_do_not_press_the_others_into_a_corner() -> None:
    values = np.concatenate(([4000.0], np.linspace(3, 1, 99)))
    (axes,) = data_axes(plot_curves({"loss": [Curve("training", np.arange(100), values, style.BLUE)]}))
    assert axes.get_ylim()[1] < 10
    assert axes.get_ylim()[0] < 1


def test_a_learning_curve_has_its_sizes_on_the_axis_and_a_baseline_is_dashed() -> None:
    lines = {"small": [(1000, 0.5, 0.1), (30_800, 0.7, 0.02)], "tfidf": [(1000, 0.6, None), (10_000, 0.65, None)]}
    figure = plot_learning_curves(lines, unit="val/accuracy", dashed=["tfidf"])
    check_readable(figure)
    (axes,) = data_axes(figure)
    assert (axes.get_xscale(), axes.get_ylabel()) == ("log", "val/accuracy")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["small", "tfidf"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1,000", "10,000", "30,800"]
    small, tfidf = (container.lines for container in axes.containers)
    assert (small[0].get_linestyle(), tfidf[0].get_linestyle()) == ("-", "--")
    assert small[0].get_ydata().tolist() == [0.5, 0.7]
    assert [segment[:, 1].round(6).tolist() for segment in small[2][0].get_segments()] == [[0.4, 0.6], [0.68, 0.72]]
