"""Tests of colored text: the positions and colors of the pieces."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from figures_support import check_readable
from firstlight.figures import style
from firstlight.figures.colored_text import COLUMNS, SURPRISE, plot_colored_words, plot_surprising_text

WORDS = ["this", "is", "not", "a", "$good", "thing"]
SCORES = np.array([0.1, -0.04, -2.0, 0.0, 1.0, 0.52])


def grounds(figure: Figure) -> Any:
    return figure.axes[0].collections[0].get_facecolors()


def written(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def test_every_word_has_its_score_below_it() -> None:
    figure = plot_colored_words(WORDS, SCORES, title="Why", label="what each word adds (nats)")
    check_readable(figure)
    texts = figure.axes[0].texts
    assert written(figure) == ["this", "+0.1", "is", "0.0", "not", "−2.0", "a", "0.0", "$good", "+1.0", "thing", "+0.5"]
    for word, number in zip(texts[::2], texts[1::2], strict=True):
        assert word.get_position()[0] == number.get_position()[0]
        assert word.get_position()[1] < number.get_position()[1]  # the axis points down
    assert figure.axes[1].get_xlabel() == "what each word adds (nats)"


def test_words_for_are_blue_and_words_against_are_red_by_as_much() -> None:
    colors = grounds(plot_colored_words(WORDS, SCORES))
    assert tuple(colors[2]) == pytest.approx(to_rgba(style.VERMILION), abs=0.01)
    assert tuple(colors[3]) == pytest.approx((1, 1, 1, 1), abs=0.02)
    assert tuple(colors[4]) == pytest.approx(style.DIVERGING(0.75), abs=0.01)
    (blue,) = grounds(plot_colored_words(["good"], np.array([0.7])))
    assert tuple(blue) == pytest.approx(to_rgba(style.BLUE), abs=0.01)


def test_words_keep_their_order_and_apart() -> None:
    words = [f"word{i}" * (1 + i % 3) for i in range(61)]
    figure = plot_colored_words(words, np.linspace(-1, 1, 61))
    check_readable(figure)
    places = [text.get_position() for text in figure.axes[0].texts[::2]]
    assert written(figure)[::2] == words
    assert all((b[1], b[0]) > (a[1], a[0]) for a, b in pairwise(places))
    assert len({y for _, y in places}) > 3
    boxes = [path.get_extents() for path in figure.axes[0].collections[0].get_paths()]
    assert all(box.width >= len(word) for box, word in zip(boxes, words, strict=True)), "a word stays in its box"
    assert all(right.x0 > left.x1 for left, right in pairwise(boxes) if left.y0 == right.y0)


def test_characters_are_darker_the_more_bits_they_are_worth() -> None:
    figure = plot_surprising_text(list("abc"), np.array([0.0, 4.0, 99.0]))
    check_readable(figure)
    colors = grounds(figure)
    for color, share in zip(colors, (0.0, 0.5, 1.0), strict=True):
        assert tuple(color) == pytest.approx(SURPRISE(share), abs=0.01)
    assert figure.axes[1].get_xlabel() == "surprise (bits per character)"
    assert written(figure) == ["a", "b", "c"]


def test_new_lines_are_shown_and_obeyed() -> None:
    figure = plot_surprising_text(["To", " ", "be", "\n", "\n", "or"], np.zeros(6))
    check_readable(figure)
    assert written(figure) == ["To", "be", "⏎", "⏎", "or"]
    lines = [text.get_position()[1] for text in figure.axes[0].texts]
    assert lines == pytest.approx([0.5, 0.5, 0.5, 1.5, 2.5])


def test_a_line_holds_so_many_characters_and_no_more() -> None:
    figure = plot_surprising_text(list("x" * (COLUMNS + 1)), np.zeros(COLUMNS + 1))
    check_readable(figure)
    places = [text.get_position() for text in figure.axes[0].texts]
    assert places[-2][1] == 0.5
    assert places[-1] == (0.5, 1.5)


def test_a_long_piece_is_cut_and_wide_and_combining_characters_have_their_width() -> None:
    assert written(plot_surprising_text(["y" * 400], np.zeros(1))) == ["y" * (COLUMNS - 1) + "…"]
    figure = plot_surprising_text(["日", "e\u0301", "x"], np.zeros(3))
    assert [text.get_position()[0] for text in figure.axes[0].texts] == [1, 2.5, 3.5]


def test_small_scores_have_as_many_decimals_as_they_need() -> None:
    assert written(plot_colored_words(["a", "b"], np.array([0.041, -0.02])))[1::2] == ["+0.041", "−0.020"]
