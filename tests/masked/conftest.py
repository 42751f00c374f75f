"""Texts with masked words for all tests of masked language models."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstlight.masked.data import MaskedReviewData


@pytest.fixture
def reviews(reviews_folder: Path) -> Callable[..., MaskedReviewData]:
    """Return a function for the data module of 600 reviews, cut to 11 tokens, with some options."""

    def make(**options: Any) -> MaskedReviewData:
        defaults = {"context_length": 11, "batch_size": 40, "evaluation_batch_size": 30}
        cache = str(reviews_folder / "cache")
        data = MaskedReviewData(path=str(reviews_folder), cache_dir=cache, **(defaults | options))
        data.ensure_setup()
        return data

    return make
