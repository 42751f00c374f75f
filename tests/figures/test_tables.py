"""Tests of the figures of tables: their content, and that all texts are readable."""

from figures_support import check_readable
from firstlight.figures.tables import Mistake, plot_mistakes, plot_table

LONG = "It was very good until it broke, and then it was not. " * 30


def texts(*rows: Mistake) -> list[str]:
    figure = plot_mistakes(rows)
    check_readable(figure)
    axes = figure.axes[0].get_window_extent()
    assert all(text.get_window_extent().x1 <= axes.x1 + 1 for text in figure.axes[0].texts), "wider than the lines"
    return [text.get_text() for text in figure.axes[0].texts]


def test_each_mistake_has_its_classes_its_probability_and_its_text() -> None:
    found = texts(
        Mistake("Good.\n Not!", "negative", "positive", 0.987), Mistake("Bad, $5_{", "5 stars", "1 star", 0.5)
    )
    assert found[:3] == ["true", "predicted", "text"]
    assert found[3:6] == ["negative", "positive\n98.7%", "Good. Not!"]
    assert found[6:] == ["5 stars", "1 star\n50.0%", "Bad, $5_{"]


def test_a_long_text_is_cut_after_three_lines() -> None:
    *_, text = texts(Mistake(LONG, "negative", "positive", 0.9))
    assert len(text.split("\n")) == 3
    assert text.endswith("…")
    assert LONG.startswith(" ".join(text.removesuffix("…").split("\n")))


def test_each_row_has_its_name_and_its_value() -> None:
    figure = plot_table({"lines": "182,550", "a $name$_{": "W" * 100}, title="Statistics")
    check_readable(figure)
    assert [text.get_text() for text in figure.axes[0].texts] == ["lines", "182,550", "a $name$_{", "W" * 35 + "…"]
