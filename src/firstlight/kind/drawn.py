"""Results of the figure functions of `explore`, and the error for figures that cannot be drawn."""

from typing import TYPE_CHECKING, NamedTuple

from firstlight.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class NothingToDrawError(UserError):
    """Error of a figure without content, such as a figure of data that is not on this machine."""


class Drawn(NamedTuple):
    """Figure with notes for the user, such as that the text was cut or chosen automatically.

    details: explanations of parts of the figure. They are on the page, and printed only if the user named the figure.
    """

    figure: "Figure"
    notes: list[str] = []  # noqa: RUF012  (never changed)
    details: list[str] = []  # noqa: RUF012  (never changed)
