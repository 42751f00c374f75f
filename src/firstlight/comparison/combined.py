"""One p-value for several tests of the same two settings, such as one test for each pair of seeds."""

from collections.abc import Sequence


def combined(p_values: Sequence[float]) -> float:
    """Return a p-value for several tests that may depend on one another, such as tests on the same texts.

    The k-th smallest of m p-values times m / k is valid whatever the dependence (Rüger 1978). k is the upper median, so
    that more than half of the tests must agree: with three tests the result is 1.5 times the median. Raises ValueError
    without p-values.

    >>> combined([0.01, 0.02, 0.8])
    0.03
    """
    if not p_values:
        raise ValueError("p_values is empty; at least one test is required")
    number, place = len(p_values), len(p_values) // 2 + 1
    return min(1.0, sorted(p_values)[place - 1] * number / place)
