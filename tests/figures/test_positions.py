"""Tests of position encodings: their content, and that all texts are readable."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

from figures_support import check_readable, data_axes
from firstlight.figures.embeddings import plot_position_similarity, plot_position_waves

RNG = np.random.default_rng(0)


def test_encodings_stand_side_by_side_on_one_scale() -> None:
    encodings = {f"encoding {i} (this run)": RNG.normal(size=(11 + 2 * i, 5)) for i in range(2)}
    figure = plot_position_similarity(encodings)
    check_readable(figure)
    panels = data_axes(figure)
    assert [axes.get_title() for axes in panels] == list(encodings)
    for axes, vectors in zip(panels, encodings.values(), strict=True):
        np.testing.assert_allclose(axes.images[0].get_array(), cosine_similarity(vectors))
        assert axes.images[0].get_clim() == (-1, 1)
        assert axes.get_xlabel() == "position"
    (bar,) = [axes for axes in figure.axes if axes not in panels]
    assert bar.get_xlabel() == "cosine similarity"


@pytest.mark.parametrize("shape", [(50, 32), (7, 2)])
def test_the_table_is_a_heat_map_and_some_columns_are_waves(shape: tuple[int, int]) -> None:
    table = RNG.normal(size=shape)
    figure = plot_position_waves(table, title="The table")
    check_readable(figure)
    top, bottom = data_axes(figure)
    np.testing.assert_array_equal(top.images[0].get_array(), table.T)  # coordinates upwards, positions across
    low, high = top.images[0].get_clim()
    assert high == -low == np.abs(table).max()
    assert (top.get_xlabel(), top.get_ylabel()) == ("position", "coordinate")
    for line in bottom.lines:
        column = int(line.get_label().removeprefix("coordinate "))
        np.testing.assert_array_equal(line.get_ydata(), table[:, column])
    assert len(bottom.lines) == min(4, -(-shape[1] // 2))
