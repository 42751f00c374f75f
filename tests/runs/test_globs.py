"""Patterns such as `experiment=glob(post/*)` in a sweep."""

import re

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from firstlight import config_files
from firstlight.errors import UserError
from firstlight.sweeps.jobs import choices


def test_a_pattern_matches_the_choices_of_a_group_in_its_folders_too() -> None:
    parse = OverridesParser.create().parse_overrides
    best = ["best/movies", "best/names", "best/sentiment", "best/stars"]
    (pattern,) = parse(["experiment=glob(best/*,exclude=*shakespeare*)"])
    assert choices(pattern) == [f"experiment={name}" for name in best]
    (pattern,) = parse(["model=glob([t*,small])"])
    assert choices(pattern) == ["model=small", "model=tiny"]
    (pattern,) = parse(["experiment=glob(*)"])
    assert len(choices(pattern)) == len(config_files.choices("experiment")) > 10


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("experiment=glob(nope*)", "no choice of experiment matches; the choices are best/movies, best/names"),
        ("seed=glob(*)", r"glob requires a group, such as task=glob\(\*\), and seed is a key$"),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused(typed: str, message: str) -> None:
    (pattern,) = OverridesParser.create().parse_overrides([typed])
    with pytest.raises(UserError, match=f"^{re.escape(typed)}: {message}"):
        choices(pattern)
