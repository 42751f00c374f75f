"""The loss as a function of the number of parameters and of training tokens (Hoffmann et al. 2022, approach 3)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from firstlight.lab.reports.significance import LIMITS, Estimate

DELTA = 1e-3  # of the Huber loss, in log loss
DRAWS = 400  # of a bootstrap
FEWEST = 3  # different sizes, and different numbers of tokens, without which the coefficients are not determined
SMALLEST_EXPONENT, LARGEST_EXPONENT = 1e-3, 4.0  # the optimum of a law with an exponent of 0 does not exist
LARGEST_LOG = 300.0  # of the optimum, so that it stays finite
SMALLEST_FACTOR = 1e-300
FLOPS_PER_WEIGHT = 6  # of a training, for each parameter and token (Kaplan et al. 2020)
OPTIONS = {"maxiter": 2000, "ftol": 1e-13, "gtol": 1e-9}

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ScalingLaw:
    """The law L(N, D) = E + A / N^α + B / D^β, of N parameters and D training tokens.

    irreducible: E; size_factor, size_exponent: A, α; data_factor, data_exponent: B, β. excess: by how much the losses
    of unfinished schedules are higher, as a factor; 1 if there are none.

    >>> law = ScalingLaw(irreducible=1.0, size_factor=20, size_exponent=0.5, data_factor=300, data_exponent=0.5)
    >>> float(law.loss(10_000, 1_000_000))
    1.5
    >>> [round(each) for each in law.optimum(6e10)]  # operations
    [25820, 387298]
    """

    irreducible: float
    size_factor: float
    size_exponent: float
    data_factor: float
    data_exponent: float
    excess: float = 1.0

    def loss(self, parameters: ArrayLike, tokens: ArrayLike) -> Array:
        """Return the loss of some sizes and numbers of tokens. The shapes must broadcast."""
        of_size = self.size_factor / np.asarray(parameters, dtype=float) ** self.size_exponent
        of_data = self.data_factor / np.asarray(tokens, dtype=float) ** self.data_exponent
        return np.asarray(self.irreducible + of_size + of_data)

    @property
    def size_share(self) -> float:
        """The exponent a of N* ∝ C^a, β / (α + β). That of D* is 1 − a."""
        return self.data_exponent / (self.size_exponent + self.data_exponent)

    def optimum(self, compute: float) -> tuple[float, float]:
        """Return the number of parameters N* and of tokens D* with the lowest loss for a compute of 6 N D operations.

        N* = G (C / 6)^a and D* = (C / 6)^(1 − a) / G with G = (α A / (β B))^(1 / (α + β)).
        """
        of_size, of_data = (
            math.log(exponent) + math.log(max(factor, SMALLEST_FACTOR))
            for exponent, factor in ((self.size_exponent, self.size_factor), (self.data_exponent, self.data_factor))
        )
        scale = (of_size - of_data) / (self.size_exponent + self.data_exponent)  # log G
        products = math.log(compute / FLOPS_PER_WEIGHT)
        size = min(max(scale + self.size_share * products, -LARGEST_LOG), LARGEST_LOG)
        return math.exp(size), math.exp(min(max(products - size, -LARGEST_LOG), LARGEST_LOG))

    @property
    def is_flat_in_size(self) -> bool:
        """Whether the loss does not fall with the number of parameters."""
        return _is_flat(self.size_factor, self.size_exponent)

    @property
    def is_flat_in_data(self) -> bool:
        """Whether the loss does not fall with the number of training tokens."""
        return _is_flat(self.data_factor, self.data_exponent)


def _is_flat(factor: float, exponent: float) -> bool:
    return exponent <= SMALLEST_EXPONENT or factor <= SMALLEST_FACTOR


@dataclass(frozen=True, eq=False)
class Losses:
    """Measured losses. All arrays are (points,).

    runs: the number of the run of each point, because a bootstrap draws complete runs. is_unfinished: whether the
    schedule of the learning rate had not ended; None: all have ended.
    """

    parameters: Array
    tokens: Array
    losses: Array
    runs: NDArray[np.int64]
    is_unfinished: NDArray[np.bool_] | None = None

    def of(self, places: NDArray[np.int64]) -> "Losses":
        """Return some of the points."""
        unfinished = None if self.is_unfinished is None else self.is_unfinished[places]
        return Losses(self.parameters[places], self.tokens[places], self.losses[places], self.runs[places], unfinished)


@dataclass(frozen=True, eq=False)
class ScalingFit:
    """A fitted law, the laws of a bootstrap, and log(measured / fitted) of each run's points whose schedule ended."""

    law: ScalingLaw
    draws: tuple[ScalingLaw, ...]
    residuals: Array

    def interval(self, value: Callable[[ScalingLaw], float]) -> Estimate:
        """Return a function of the law with the percentile interval of the bootstrap."""
        return _percentiles(value(self.law), [value(each) for each in self.draws])

    def prediction(self, parameters: float, tokens: float) -> Estimate:
        """Return the loss of a new run with its interval: that of the law, and the scatter of single runs around it.

        The scatter is drawn from the residuals, which are made wider by √(n / (n − 5)) for the five coefficients.
        """
        count = len(self.residuals)
        wider = math.sqrt(count / (count - 5)) if count > 5 else 1.0
        drawn = np.random.default_rng(0).choice(self.residuals, size=len(self.draws)) * wider
        losses = [float(law.loss(parameters, tokens)) for law in self.draws] * np.exp(drawn)
        return _percentiles(float(self.law.loss(parameters, tokens)), losses)


def fit_scaling_law(points: Losses, *, draws: int | None = None) -> ScalingFit:
    """Fit the law to measured losses, with a bootstrap over runs.

    As in Hoffmann et al. (2022), log L is the log-sum-exp of three terms, and the Huber loss of its error, δ = 0.001,
    is minimized by L-BFGS from a grid of starts. The errors are summed and not averaged, so that L-BFGS does not stop
    too early (Besiroglu et al. 2024). The losses of unfinished schedules have one more coefficient, a common factor.

    draws: the number of samples of the bootstrap; None: DRAWS. Each sample has as many runs as the data, with
    replacement, and is drawn again if it has fewer than FEWEST sizes or numbers of tokens. Raises ValueError if the
    data itself has fewer.
    """
    if not _is_enough(points):
        raise ValueError(f"at least {FEWEST} sizes and {FEWEST} numbers of tokens are required")
    places = _places_of_runs(points.runs)
    generator = np.random.default_rng(0)
    found: list[ScalingLaw] = []
    with threadpool_limits(1):  # the arrays are small, and other threads of BLAS would only wait
        law, start = _best(points, _grid(points))
        while len(found) < (DRAWS if draws is None else draws):
            chosen = np.concatenate([places[each] for each in generator.integers(len(places), size=len(places))])
            drawn = points.of(chosen)
            if _is_enough(drawn):
                found.append(_best(drawn, [start])[0])
    ended = np.full(len(points.losses), True) if points.is_unfinished is None else ~points.is_unfinished
    fitted = law.loss(points.parameters, points.tokens)
    return ScalingFit(law, tuple(found), np.log(points.losses / fitted)[ended])


def _is_enough(points: Losses) -> bool:
    return min(len(np.unique(points.parameters)), len(np.unique(points.tokens))) >= FEWEST


def _places_of_runs(runs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    return [np.flatnonzero(runs == each) for each in np.unique(runs)]


def _grid(points: Losses) -> list[Array]:
    """Return the starts: shares of the loss that E and both terms have in the middle of the data, and exponents."""
    low = float(points.losses.min())
    middle = float(np.median(points.losses))
    starts = []
    for share, of_size, alpha, beta in product((0.3, 0.8), (0.3, 0.7), (0.3, 0.8), (0.3, 0.8)):
        floor = share * low
        rest = middle - floor
        terms = [math.log(of_size * rest), math.log((1 - of_size) * rest), math.log(floor)]
        starts.append(np.array([*terms, alpha, beta, 0.0]))
    return starts


def _best(points: Losses, starts: Sequence[Array]) -> tuple[ScalingLaw, Array]:
    """Return the law with the smallest error from several starts, and its coefficients as a start for others.

    The terms are those at the geometric mean of sizes and of tokens, so that they hardly depend on the exponents.
    """
    log_size, log_tokens, log_loss = np.log(points.parameters), np.log(points.tokens), np.log(points.losses)
    middle = log_size.mean(), log_tokens.mean()
    size, tokens = log_size - middle[0], log_tokens - middle[1]
    unfinished = np.zeros_like(log_loss) if points.is_unfinished is None else points.is_unfinished.astype(float)

    def error(theta: Array) -> tuple[float, Array]:
        terms = np.array([theta[0] - theta[3] * size, theta[1] - theta[4] * tokens, np.full_like(size, theta[2])])
        largest = terms.max(axis=0)  # of (3, points)
        shares = np.exp(terms - largest)
        total = shares.sum(axis=0)
        fitted, shares = largest + np.log(total), shares / total
        ratio = (fitted + theta[5] * unfinished - log_loss) / DELTA
        near = np.abs(ratio) <= 1
        slope = np.where(near, ratio, np.sign(ratio)) / DELTA
        by_theta = np.stack((*shares, -shares[0] * size, -shares[1] * tokens, unfinished))
        return float(np.where(near, ratio**2 / 2, np.abs(ratio) - 0.5).sum()), by_theta @ slope

    exponents = (SMALLEST_EXPONENT, LARGEST_EXPONENT)
    bounds = [(None, None)] * 3 + [exponents, exponents, (None, None)]
    found = [minimize(error, start, jac=True, method="L-BFGS-B", bounds=bounds, options=OPTIONS) for start in starts]
    best = min(found, key=lambda each: float(each.fun)).x
    law = ScalingLaw(
        irreducible=float(np.exp(best[2])),
        size_factor=float(np.exp(best[0] + best[3] * middle[0])),
        size_exponent=float(best[3]),
        data_factor=float(np.exp(best[1] + best[4] * middle[1])),
        data_exponent=float(best[4]),
        excess=float(np.exp(best[5])),
    )
    return law, best


def _percentiles(value: float, drawn: Sequence[float] | Array) -> Estimate:
    low, high = np.quantile(drawn, LIMITS)
    return Estimate(value, float(low), float(high), len(drawn))
