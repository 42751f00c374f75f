"""The command line of a resumed run: an override that is typed again replaces the earlier one."""

import pytest

from composed import composed
from firstlight.runs.overrides import merged


@pytest.mark.parametrize(
    ("old", "typed", "expected"),
    [
        ("task=stars seed=2", "", "task=stars seed=2"),
        ("task=stars seed=2", "seed=3", "task=stars seed=3"),
        ("seed=2", "dropout=0", "seed=2 dropout=0"),
        ("seed=2", "seed=3 seed=4", "seed=3 seed=4"),
        # the same command again
        ("~a +b=1 ++c=2 d=3", "~a +b=1 ++c=2 d=3", "~a +b=1 ++c=2 d=3"),
        ("~a +a=1", "~a +a=2", "~a +a=2"),
        ("+group/x@package=y", "+group/x@package=z", "+group/x@package=z"),
        ("+group/x@package=y", "+group/x@other=z", "+group/x@package=y +group/x@other=z"),
        # a change of what the run has
        ("+b=1", "b=2", "+b=2"),
        ("++b=1", "+b=2", "++b=2"),
        ("+b=1", "~b", ""),
        ("+b=1 c=1", "~b +b=2", "+b=2 c=1"),
        ("++b=1", "~b", "++b=1 ~b"),
        ("b=1", "~b", "~b"),
        ("~b", "+b=1", "~b +b=1"),
        ("~b +b=1", "+b=2", "~b +b=2"),
        ("+b={x:1} b.x=2 bb=3", "~b", "bb=3"),
        ("+b={x:1} b.x=2", "+b={x:3}", "+b={x:3} b.x=2"),
    ],
)
def test_what_is_typed_again_replaces_the_old_line(old: str, typed: str, expected: str) -> None:
    assert merged(old.split(), typed.split()) == expected.split()


@pytest.mark.parametrize(
    ("old", "typed"),
    [
        ("~callbacks.early_stopping +trainer.benchmark=true", "~callbacks.early_stopping +trainer.benchmark=true"),
        ("+trainer.benchmark=true", "trainer.benchmark=false"),
        ("++trainer.benchmark=true", "~trainer.benchmark"),
        ("~callbacks.early_stopping", "+callbacks.early_stopping=null"),
        ("~schedule", "+schedule=constant"),
        ("+callbacks.mine={_target_:a.B,x:1} callbacks.mine.x=2", "~callbacks.mine"),
    ],
)
def test_hydra_composes_what_is_typed_after_what_was(old: str, typed: str) -> None:
    composed(*merged(old.split(), typed.split()))
