"""A figure that a figure function returns, and the error of one that has nothing to draw."""

from typing import TYPE_CHECKING, NamedTuple

from firstlight.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class NothingToDrawError(UserError):
    """What a figure is about is not there, such as the data of a run that was trained elsewhere."""


class Drawn(NamedTuple):
    """A figure, and what there is to say of this one: that a text was cut, or chosen."""

    figure: "Figure"
    notes: list[str] = []  # noqa: RUF012  (never changed)
