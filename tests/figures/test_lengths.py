"""Tests of lengths, labels and coverage: their content, and that all texts are readable."""

import numpy as np
import pytest
from numpy.typing import NDArray

from figures_support import check_readable, data_axes, legend_of
from firstlight.figures.data_sets import plot_coverage, plot_label_counts, plot_lengths

WORDS = np.array([3, 5, 7, 11, 13, 17, 19, 23, 29, 31])
CHARACTERS = 6 * WORDS


def heights(axes: object) -> NDArray[np.float64]:
    return np.array([patch.get_height() for patch in axes.patches])  # type: ignore[attr-defined]


def test_the_bar_of_the_longest_texts_says_from_which_length_on() -> None:
    figure = plot_lengths({"words": np.append(np.arange(200) % 40, 900)})
    check_readable(figure)
    assert [text.get_text() for text in data_axes(figure)[0].texts] == ["≥ 39"]
    assert not data_axes(plot_lengths({"words": WORDS}))[0].texts  # no text is longer than its bar


def test_the_bars_are_shares_of_all_texts_divided_by_what_fits() -> None:
    figure = plot_lengths({"words in a text": WORDS, "characters in a text": CHARACTERS}, WORDS <= 17)
    check_readable(figure)
    for axes, name in zip(data_axes(figure), ("words in a text", "characters in a text"), strict=True):
        assert (axes.get_xlabel(), axes.get_ylabel()) == (name, "share of texts")
        fits, cut = (np.array([bar.get_height() for bar in container]) for container in axes.containers)
        assert fits.sum() == pytest.approx(0.6)
        assert cut.sum() == pytest.approx(0.4)
        last = max(bar.get_x() + bar.get_width() for bar in axes.containers[0] if bar.get_height())
        assert last <= min(bar.get_x() for bar in axes.containers[1] if bar.get_height()) + 1
    assert legend_of(figure) == ["fits the context: 60%", "is cut: 40%"]


def test_the_lines_are_the_median_and_the_eighty_per_cent_point() -> None:
    values = np.arange(1, 101)
    figure = plot_lengths({"words": values})
    (axes,) = data_axes(figure)
    assert [line.get_xdata()[0] for line in axes.lines] == pytest.approx([50.5, 80.2])
    assert axes.get_title() == "median: 50 (dashed), 80th percentile: 80 (dotted)"
    assert not figure.legends


def test_the_longest_hundredth_stands_in_the_last_bar() -> None:
    values = np.append(np.arange(1, 1000), 100_000)
    (axes,) = data_axes(plot_lengths({"words": values}))
    assert axes.get_xlim()[1] < 1100
    assert heights(axes).sum() == pytest.approx(1)


@pytest.mark.parametrize("values", [np.arange(12, 17), np.repeat(np.arange(2, 130), 3), np.arange(40, 9_000)])
def test_every_bar_has_equally_many_lengths_and_no_label_is_repeated(values: NDArray[np.int64]) -> None:
    figure = plot_lengths({"words": np.append(values, values[0])})
    (axes,) = data_axes(figure)
    widths = {round(bar.get_width(), 6) for bar in axes.patches}
    assert len(widths) == 1
    assert min(widths).is_integer()
    assert np.all(heights(axes) > 0)
    check_readable(figure)
    for axis in (axes.xaxis, axes.yaxis):
        labels = [
            label.get_text().rstrip("%").replace(",", "").replace("\N{MINUS SIGN}", "-")
            for label in axis.get_ticklabels()
        ]
        assert len(np.unique(np.diff([float(label) for label in labels]).round(6))) == 1, labels


def test_a_share_is_never_rounded_to_all_or_nothing() -> None:
    fits = np.ones(1000, bool)
    assert legend_of(plot_lengths({"words": np.full(1000, 5)}, fits)) == ["fits the context: 100%"]
    fits[0] = False
    figure = plot_lengths({"words": np.arange(1000)}, fits, limit="50 words", beyond="is longer")
    assert legend_of(figure) == ["fits 50 words: 99.90%", "is longer: 0.10%"]


def test_every_split_has_a_panel_and_every_label_a_bar() -> None:
    counts = np.array([[700, 11, 0], [5, 7, 2]])
    figure = plot_label_counts(counts, ["train", "test"], ["1 star", "$2", "a class with a very long name indeed"])
    check_readable(figure)
    panels = data_axes(figure)
    assert [axes.get_title() for axes in panels] == ["train (n = 711)", "test (n = 14)"]
    for axes, values in zip(panels, counts, strict=True):
        assert [bar.get_width() for bar in axes.patches] == values.tolist()
        assert [text.get_text() for text in axes.texts] == [f"{value:,}" for value in values]
        assert axes.get_xlabel() == "number of rows"
    assert [label.get_text() for label in panels[0].get_yticklabels()][:2] == ["1 star", "$2"]
    assert panels[0].yaxis_inverted()


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
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts == ["en: 3 distinct words", "vocabulary in use, 2 words: 75.0%", "de: 2 distinct words"]
