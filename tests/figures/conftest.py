"""Figures are drawn with warnings as errors."""

import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)  # of what earlier tests left open
        yield
