"""Tests of frequencies and coverage: their content, and that all texts are readable."""

import string

import numpy as np
import pytest

from figures_support import check_readable, data_axes
from firstlight.figures.data_sets import MOST_BARS, plot_character_frequencies, plot_coverage


def test_characters_stand_in_the_order_of_their_frequency() -> None:
    figure = plot_character_frequencies(["a", "␣", "$", "q"], np.array([30, 60, 10, 0]))
    check_readable(figure)
    (axes,) = data_axes(figure)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["␣", "a", "$"]  # q does not occur
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([0.6, 0.3, 0.1])
    assert axes.get_yscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("character", "share of the text")


def test_seventy_characters_can_be_read_in_two_rows() -> None:
    characters = list(string.ascii_letters + " !(),-.:;?[]_—‘’“”")
    figure = plot_character_frequencies(characters, np.arange(1, len(characters) + 1) ** 3)
    check_readable(figure)
    first, second = data_axes(figure)
    assert len(first.patches) == 40
    assert len(first.patches) + len(second.patches) == len(characters)
    assert min(bar.get_height() for bar in first.patches) > max(bar.get_height() for bar in second.patches)
    assert first.get_xlim() == second.get_xlim()


def test_of_very_many_characters_the_most_frequent_are_drawn() -> None:
    counts = np.random.default_rng(5).permutation(300)
    figure = plot_character_frequencies([chr(100 + i) for i in range(300)], counts)
    heights = [bar.get_height() for axes in data_axes(figure) for bar in axes.patches]
    assert heights == pytest.approx(np.sort(counts)[::-1][:MOST_BARS] / counts.sum())


def test_coverage_grows_by_the_most_frequent_words_first() -> None:
    figure = plot_coverage({"en": np.array([2, 5, 3]), "de": np.array([1, 1])}, {"en": (2, 0.75)})
    check_readable(figure)
    (axes,) = data_axes(figure)
    english, chosen, german = axes.lines
    assert english.get_xdata().tolist() == [1, 2, 3]
    assert english.get_ydata().tolist() == pytest.approx([0.5, 0.8, 1])
    assert german.get_ydata().tolist() == pytest.approx([0.5, 1])
    assert (chosen.get_xdata()[0], chosen.get_ydata()[0]) == (2, 0.75)
    assert chosen.get_color() == english.get_color() != german.get_color()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "en: 3 distinct words",
        "vocabulary in use, 2 words: 75.0%",
        "de: 2 distinct words",
    ]
