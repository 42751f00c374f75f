"""Tests of the fit of a scaling law: it finds known coefficients, and its intervals come from complete runs."""

import numpy as np
import pytest

from firstlight.lab.reports.scaling_law import ScalingFit, ScalingLaw, fit_scaling_law

TRUE = ScalingLaw(irreducible=1.1, size_factor=60, size_exponent=0.45, data_factor=2500, data_exponent=0.5)
SIZES, TOKENS = (2.9e3, 10.4e3, 39e3, 118e3, 340e3), (0.25e6, 0.5e6, 1e6, 4e6)
NAMES = ("irreducible", "size_factor", "size_exponent", "data_factor", "data_exponent")


def fitted(noise: float, draws: int) -> ScalingFit:
    """Return the fit to losses of the law with log-normal noise."""
    sizes, tokens = (each.ravel() for each in np.meshgrid(SIZES, TOKENS))
    scatter = np.exp(noise * np.random.default_rng(0).normal(size=len(sizes)))
    return fit_scaling_law(sizes, tokens, TRUE.loss(sizes, tokens) * scatter, draws=draws)


def test_without_noise_the_fit_finds_the_coefficients() -> None:
    found = fitted(0.0, draws=1).law
    assert [getattr(found, name) for name in NAMES] == pytest.approx([getattr(TRUE, name) for name in NAMES], rel=1e-5)


@pytest.fixture(scope="module")
def fit() -> ScalingFit:
    return fitted(0.004, draws=40)


def test_with_noise_the_coefficients_are_in_their_intervals_and_the_intervals_are_narrow(fit: ScalingFit) -> None:
    for name in NAMES:
        found = fit.interval(lambda law, name=name: getattr(law, name))
        assert found.low < getattr(TRUE, name) < found.high, name
    assert fit.interval(lambda law: law.size_exponent).half_width < 0.1
    assert fit.interval(lambda law: law.data_exponent).half_width < 0.1


def test_a_size_outside_the_fit_is_predicted_within_the_interval(fit: ScalingFit) -> None:
    found = fit.prediction(1.03e6, 2e6)
    assert found.low < TRUE.loss(1.03e6, 2e6) < found.high
    law_only = fit.interval(lambda law: float(law.loss(1.03e6, 2e6)))
    assert found.half_width > law_only.half_width
    assert found.half_width < 0.05 * found.value


def test_the_optimum_has_the_lowest_loss_of_its_compute() -> None:
    for compute in (1e10, 3e13):
        size, tokens = TRUE.optimum(compute)
        assert 6 * size * tokens == pytest.approx(compute)
        others = size * np.geomspace(0.2, 5, 1001)
        losses = TRUE.loss(others, compute / (6 * others))
        assert others[losses.argmin()] == pytest.approx(size, rel=0.01)
    assert TRUE.optimum(1e12)[0] / TRUE.optimum(1e10)[0] == pytest.approx(100 ** (0.5 / 0.95))


def test_two_sizes_are_too_few() -> None:
    with pytest.raises(ValueError, match="at least 3 sizes and 3 numbers of tokens"):
        fit_scaling_law([1e3, 1e3, 1e4, 1e4], [1e5, 2e5, 3e5, 4e5], [2.0, 1.9, 1.8, 1.7])


@pytest.mark.parametrize("flat", ["size", "data"])
def test_a_law_that_is_flat_has_a_finite_optimum_and_says_that_it_is_flat(flat: str) -> None:
    sizes, tokens = (each.ravel() for each in np.meshgrid(SIZES, TOKENS))
    falling, rising = (sizes, tokens) if flat == "data" else (tokens, sizes)
    losses = 1.1 + 60 / falling**0.45 + 1e-3 * np.log(rising)
    found = fit_scaling_law(sizes, tokens, losses, draws=10)
    assert not found.law.has_optimum
    for law in (found.law, *found.draws):
        assert np.isfinite([*law.optimum(1e12), law.loss(*law.optimum(1e12))]).all()
