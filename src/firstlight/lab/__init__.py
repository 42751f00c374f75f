"""What reads finished runs and nothing else: reports, figures and pages of explore, and the playground.

All pages have one frame: their head, style, icon and title.
"""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any
from urllib.parse import quote


def packaged(name: str, package: str = "firstlight.lab") -> str:
    """Return the text of a file in a package: below lab/, or that of a kind."""
    return (files(package) / name).read_text(encoding="utf-8")


def rendered(name: str, **values: Any) -> str:
    """Return a template of Jinja below lab/ with its values, whose texts are escaped."""
    from jinja2 import Environment, StrictUndefined  # takes 50 ms, which a report need not spend

    environment = Environment(autoescape=True, trim_blocks=True, undefined=StrictUndefined)
    return environment.from_string(packaged(name)).render(values)


def framed(title: str, body: str, styles: Sequence[str], policy: str = "form-action 'none'") -> str:
    """Return a page with the common style, followed by the named ones. The title is escaped, the body is not.

    policy: directives of its Content-Security-Policy, which by default allows no script.
    """
    style = "".join(packaged(name) for name in ("look.css", "page.css", *styles))
    icon = f"data:image/svg+xml,{quote(packaged('logo.svg'))}"
    frame = Template(packaged("frame.html"))
    return frame.substitute(title=escape(title), body=body, style=style, policy=policy, icon=icon)
