"""Fixtures of the tests of the laboratory."""

from collections.abc import Iterator
from typing import Any

import pytest

from browser import a_browser
from firstlight.lab.playground.page import network_script


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """Yield an empty page with the scripts that compute networks."""
    with a_browser() as browser:
        opened = browser.new_page()
        opened.add_script_tag(content=network_script())
        yield opened
