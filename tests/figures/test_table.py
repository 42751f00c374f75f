"""Tests of a table as a figure."""

from figures_support import check_readable
from firstlight.figures.tables import plot_table


def test_each_row_has_its_name_and_its_value() -> None:
    figure = plot_table({"lines": "182,550", "a $name$_{": "W" * 100}, title="Statistics")
    check_readable(figure)
    assert [text.get_text() for text in figure.axes[0].texts] == ["lines", "182,550", "a $name$_{", "W" * 35 + "…"]
