"""The trials of the fault tests can be repeated: they do not depend on what has run before."""

import hypothesis.strategies as st
import pytest
from hypothesis.internal.conjecture import providers

from faults.trials import Trials

STRATEGY = st.tuples(st.floats(0, 1), st.integers(0, 10**6), st.text(max_size=3))


def drawn() -> list[tuple[float, int, str]]:
    found: list[tuple[float, int, str]] = []
    Trials("a kind").examples(STRATEGY, found.append, 20, "something")
    return found


def test_the_examples_do_not_depend_on_the_modules_that_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    before = drawn()
    of_a_module = providers.Constants(integers={777}, floats={0.777}, bytes=set(), strings={"777"})
    monkeypatch.setattr(providers, "_get_local_constants", lambda: of_a_module)
    providers.CONSTANTS_CACHE.cache.clear()
    assert drawn() == before
    providers.CONSTANTS_CACHE.cache.clear()
