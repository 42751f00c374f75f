"""Checks of figures: complete, labeled, and without overlapping texts."""

import warnings
from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

TOUCH = 1.0  # pixels that two texts may share


def check_readable(figure: Figure) -> None:
    """Render a figure with warnings as errors. Fail if it has no heading, or if a text is cut off or overlaps."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()
    texts = [text for text in texts_of(figure) if text.get_visible() and text.get_text().strip()]
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in texts]  # without the line of an annotation
    width, height = figure.bbox.width, figure.bbox.height
    for text, box in boxes:
        assert box.x0 >= -TOUCH, f"{text!r} is cut off at the left"
        assert box.y0 >= -TOUCH, f"{text!r} is cut off at the bottom"
        assert box.x1 <= width + TOUCH, f"{text!r} is cut off at the right"
        assert box.y1 <= height + TOUCH, f"{text!r} is cut off at the top"
    for (one, first), (other, second) in combinations(boxes, 2):
        across = min(first.x1, second.x1) - max(first.x0, second.x0)
        up = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert across <= TOUCH or up <= TOUCH, f"{one!r} overlaps {other!r}"
    assert figure.get_suptitle()
    assert not any(
        text.get_parse_math() and "$" in text.get_text() and "mathdefault" not in text.get_text() for text in texts
    )


def texts_of(figure: Figure) -> list[Text]:
    """Return all texts that are drawn."""
    found: list[Text] = [figure._suptitle] if figure._suptitle is not None else []  # type: ignore[attr-defined]
    for legend in [*figure.legends, *(axes.get_legend() for axes in figure.axes)]:
        found += legend.get_texts() if legend is not None else []
    for axes in figure.axes:
        found += axes.texts
        if axes.axison:
            found += [axes.title, axes.xaxis.label, axes.yaxis.label, *tick_labels(axes)]
    return found


def tick_labels(axes: Axes) -> list[Text]:
    """Return the labels of the ticks within the view."""
    labels = []
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if low <= tick.get_loc() <= high and tick.label1.get_visible():
                labels.append(tick.label1)
    return labels


def data_axes(figure: Figure) -> list[Axes]:
    """Return the axes with labeled data, without color bars."""
    return [axes for axes in figure.axes if axes.get_label() != "<colorbar>" and axes.axison]


def check_inside(figure: Figure) -> None:
    """Render a figure. Fail if something is cut off."""
    figure.draw_without_rendering()
    content = figure.get_tightbbox()  # inches
    assert content.x0 >= 0
    assert content.y0 >= 0
    assert content.x1 <= figure.get_figwidth()
    assert content.y1 <= figure.get_figheight()


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]
