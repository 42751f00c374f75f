"""Tests of projected vectors: the projection, the points and their labels."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.text import Text

from figures_support import check_readable, data_axes
from firstlight.figures import style
from firstlight.figures.embeddings import plot_embeddings

RNG = np.random.default_rng(0)
TOKENS = [f"token{i}" for i in range(7)]
GROUPS = [0, 1, 2, 0, 1, 2, 0]
NAMES = ["vowels", "consonants", "other words"]


def test_points_have_the_color_of_their_group() -> None:
    panels = {"embedding, PCA": RNG.normal(size=(7, 2)), "embedding, t-SNE": RNG.normal(size=(7, 2))}
    labels = {"embedding, PCA": ("1st component (50%)", "2nd component (20%)")}
    figure = plot_embeddings(panels, TOKENS, GROUPS, NAMES, axis_labels=labels)
    check_readable(figure)
    for axes, (title, points) in zip(data_axes(figure), panels.items(), strict=True):
        assert axes.get_title() == title
        for group, line in enumerate(axes.lines):
            np.testing.assert_array_equal(np.array(line.get_data()).T, points[[g == group for g in GROUPS]])
        assert [line.get_color() for line in axes.lines] == [style.BLUE, style.VERMILION, style.SOFT]
        assert len({line.get_marker() for line in axes.lines}) == 3
        assert axes.lines[2].get_markersize() < axes.lines[0].get_markersize()  # other words are in the background
    assert [text.get_text() for text in figure.legends[0].get_texts()] == NAMES
    assert data_axes(figure)[0].get_ylabel() == "2nd component (20%)"


def test_a_name_stands_beside_its_point_in_its_color() -> None:
    points = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    figure = plot_embeddings({"map": points}, ["left", "$top", "right"], [0, 1, 2], NAMES)
    (axes, *_) = data_axes(figure)
    found = {text.get_text(): text for text in axes.texts}
    for name, point, color in zip(
        ("left", "$top", "right"), points, (style.BLUE, style.VERMILION, style.SOFT), strict=True
    ):
        assert found[name].xy == pytest.approx(point, abs=0.15)
        assert found[name].get_color() == color


def test_names_lie_neither_on_each_other_nor_on_points() -> None:
    points = RNG.normal(size=(300, 2))
    tokens = [f"word{i}" for i in range(300)]
    figure = plot_embeddings({"PCA": points, "t-SNE": points**3}, tokens, [i % 3 for i in range(300)], NAMES)
    check_readable(figure)
    for axes, drawn in zip(data_axes(figure), (points, points**3), strict=True):
        boxes = [Text.get_window_extent(text) for text in axes.texts]  # without its line to the point
        assert 10 < len(boxes) < 300
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
        places = axes.transData.transform(drawn)
        for box in boxes:
            assert not ((box.min < places) & (places < box.max)).all(axis=1).any()
