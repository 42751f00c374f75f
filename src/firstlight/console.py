"""The console of rich that shows texts of data as they are: brackets are no markup, and no character is a command."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from firstlight.terminal_text import visible


class Console(RichConsole):
    """A rich console without markup, emoji codes and highlights, whose texts are made visible.

    A string in a table is a text like any other: `[red]` remains `[red]`, and ESC is written as an escape.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"markup": False, "emoji": False, "highlight": False} | options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as a rich text; here, so that the columns of a table have the width of what is shown."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of an object, with control characters in its text escaped; rich's own commands stay."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))
