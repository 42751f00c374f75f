import pytest

from firstlight.earlier_names import RENAMED, current_config, current_override, earlier_config

OLD = {"model": {"dim": 8, "evidence": True, "evidence_pairs": 7, "evidence_shrinkage": 2.0}, "data": {"seed": 1}}
NEW = {"model": {"dim": 8}, "data": {"seed": 1, "evidence": True, "evidence_pairs": 7, "evidence_shrinkage": 2.0}}


def test_a_configuration_of_an_earlier_version_gets_the_names_of_this_one_and_back() -> None:
    assert current_config(OLD) == NEW
    assert earlier_config(NEW) == OLD
    assert current_config(NEW) == NEW
    assert OLD["model"]["evidence"] is True, "the configuration that is given stays as it is"


@pytest.mark.parametrize("broken", [None, 3, [], {}, {"model": None, "data": {}}, {"model": {"evidence": 1}}])
def test_what_is_no_configuration_stays_as_it_is(broken: object) -> None:
    assert current_config(broken) == broken


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("model.evidence=true", "data.evidence=true"),
        ("++model.evidence_pairs=3", "++data.evidence_pairs=3"),
        ("~model.evidence", "~data.evidence"),
        ("model.dim=8", "model.dim=8"),
        ("data.path='model.evidence=1'", "data.path='model.evidence=1'"),
    ],
)
def test_an_override_of_an_earlier_version_gets_the_name_of_this_one(line: str, expected: str) -> None:
    assert current_override(line) == expected


def test_no_name_is_both_earlier_and_current() -> None:
    assert not RENAMED.keys() & set(RENAMED.values())
