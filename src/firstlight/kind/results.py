"""What a run returns to the commands: measurements and figures. Imports no torch."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from firstlight.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WHOLE = "whole"  # name of the split if all of another text is evaluated


class Measurement(NamedTuple):
    """Results of a run for one split.

    metrics: metrics by name. size: how much was measured, for metrics.json. notes: notes on the results, which are
    printed. write: function that writes more files into a folder. contents: name of all files of the results.
    per_class: precision, recall and F1 of each class of a classifier, as rows of a table that is printed.
    """

    metrics: dict[str, float]
    size: dict[str, Any]
    notes: tuple[str, ...] = ()
    write: Callable[[Path], None] | None = None
    contents: str = "The metrics"
    per_class: Sequence[Mapping[str, Any]] = ()


class NothingToDrawError(UserError):
    """Error of a figure without content, such as a figure of data that is not on this machine."""


class Drawn(NamedTuple):
    """Figure with notes for the user, such as that the text was cut or chosen automatically.

    details: explanations of parts of the figure. They are on the page, and printed only if the user named the figure.
    """

    figure: "Figure"
    notes: list[str] = []  # noqa: RUF012  (never changed)
    details: list[str] = []  # noqa: RUF012  (never changed)
