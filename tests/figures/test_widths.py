"""Tests of the figures of networks of several widths, sizes and budgets: their content, not their style."""

import numpy as np
import pytest

from firstlight.figures.ablations import plot_activation_sizes, plot_loss_by_rate, plot_scaling_fit

STANDARD = {32: {0.001: [2.6], 0.01: [2.2, 2.24], 0.1: [3.1]}, 128: {0.001: [2.1], 0.01: [2.4], 0.1: [9.0]}}
MUP = {32: {0.001: [2.6], 0.01: [2.2, 2.24], 0.1: [3.1]}, 128: {0.001: [2.5], 0.01: [2.0], 0.1: [3.0]}}


def test_every_width_has_a_line_of_means_and_its_best_rate_a_large_point() -> None:
    figure = plot_loss_by_rate({"standard": STANDARD, "µP": MUP})
    standard, mup = figure.axes
    assert (standard.get_title(), mup.get_title(), standard.get_xscale()) == ("standard", "µP", "log")
    lines = [[list(map(float, line.get_xdata())) for line in axes.lines] for axes in (standard, mup)]
    rates = [0.001, 0.01, 0.1]
    assert lines == [[rates, [0.01], rates, [0.001]], [rates, [0.01], rates, [0.01]]]
    assert standard.lines[0].get_ydata() == pytest.approx([2.6, 2.22, 3.1])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["dim 32", "dim 128"]
    low, high = standard.get_ylim()
    assert low < 2.0 < 2.22 < high < 9.0  # very high losses are outside
    plot_loss_by_rate({"standard": {32: {0.01: [2.2]}}}).draw_without_rendering()


def test_the_sizes_of_a_layer_are_drawn_against_the_width_with_a_line_for_each_step() -> None:
    sizes = {"embedding": {0: {64: 0.1, 32: 0.2}, 5: {32: 0.3, 64: 0.4}}, "head": {0: {32: 1.0, 64: 2.0}}}
    figure = plot_activation_sizes({"standard": sizes, "µP": sizes})
    figure.draw_without_rendering()
    assert [axes.get_title() for axes in figure.axes] == ["embedding", "head", "", ""]
    assert [axes.get_ylabel() for axes in figure.axes] == ["standard", "", "µP", ""]
    assert [list(line.get_ydata()) for line in figure.axes[2].lines] == [[0.2, 0.1], [0.3, 0.4]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["step 0", "step 5"]
    with pytest.raises(ValueError, match="the same layers"):
        plot_activation_sizes({"standard": sizes, "µP": {"head": {0: {32: 1.0}}}})


def test_a_scaling_law_has_a_line_for_each_budget_and_each_size_and_hollow_points_for_held_out_runs() -> None:
    sizes, tokens = np.repeat([2e3, 9e3, 40e3], 2), np.tile([1e5, 4e5], 3)
    losses = 1.5 + 30 / sizes**0.5
    figure = plot_scaling_fit(
        sizes,
        tokens,
        losses,
        lambda n, d: 1.4 + 30 / n**0.5 + 0 * d,
        held_out=sizes == 40e3,
        formula="$L = 1.4 + 30 / N^{0.5}$",
    )
    assert figure.axes[0].title.get_parse_math()
    figure.draw_without_rendering()
    left, right = figure.axes
    names = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in (left, right)]
    assert names == [["100 k", "400 k", "held out"], ["2 k", "9 k", "40 k"]]
    law, measured = left.lines[:2]
    assert law.get_ydata()[0] == pytest.approx(1.4 + 30 / 2e3**0.5)
    assert measured.get_xdata().tolist() == [2e3, 9e3]
    assert measured.get_ydata() == pytest.approx(losses[[0, 2]])
    hollow = [each for each in right.lines if str(each.get_markerfacecolor()) == "white"]
    assert [each.get_xdata().tolist() for each in hollow if len(each.get_xdata())] == [[6 * 40e3 * 1e5, 6 * 40e3 * 4e5]]
