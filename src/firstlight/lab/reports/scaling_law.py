"""The loss as a function of the number of parameters and of training tokens (Hoffmann et al. 2022, approach 3)."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import huber
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

    irreducible: E; size_factor, size_exponent: A, α; data_factor, data_exponent: B, β.

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
        of_size = math.log(self.size_exponent) + math.log(max(self.size_factor, SMALLEST_FACTOR))
        of_data = math.log(self.data_exponent) + math.log(max(self.data_factor, SMALLEST_FACTOR))
        scale = (of_size - of_data) / (self.size_exponent + self.data_exponent)  # log G
        products = math.log(compute / FLOPS_PER_WEIGHT)
        size = min(max(scale + self.size_share * products, -LARGEST_LOG), LARGEST_LOG)
        return math.exp(size), math.exp(min(max(products - size, -LARGEST_LOG), LARGEST_LOG))

    @property
    def has_optimum(self) -> bool:
        """Whether the loss falls with the number of parameters and with that of tokens."""
        terms = ((self.size_factor, self.size_exponent), (self.data_factor, self.data_exponent))
        return all(factor > SMALLEST_FACTOR and exponent > SMALLEST_EXPONENT for factor, exponent in terms)


@dataclass(frozen=True, eq=False)
class ScalingFit:
    """A fitted law, the laws of a bootstrap, and log(measured / fitted) of each run."""

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


def fit_scaling_law(
    parameters: ArrayLike, tokens: ArrayLike, losses: ArrayLike, *, draws: int | None = None
) -> ScalingFit:
    """Fit the law to the final losses of runs, with a bootstrap over runs.

    As in Hoffmann et al. (2022), log L is the log-sum-exp of three terms, and the Huber loss of its error, δ = 0.001,
    is minimized by L-BFGS from a grid of starts. The errors are summed and not averaged, so that L-BFGS does not stop
    too early (Besiroglu et al. 2024).

    parameters, tokens, losses: (runs,). draws: the number of samples of the bootstrap; None: DRAWS. Each sample has as
    many runs as the data, with replacement, and is drawn again if it has fewer than FEWEST sizes or numbers of tokens.
    Raises ValueError if the data itself has fewer.
    """
    runs = np.array([parameters, tokens, losses], dtype=float)
    if not _is_enough(runs):
        raise ValueError(f"at least {FEWEST} sizes and {FEWEST} numbers of tokens are required")
    generator = np.random.default_rng(0)
    found: list[ScalingLaw] = []
    with threadpool_limits(1):  # the arrays are small, and other threads of BLAS would only wait
        law, start = _best(runs, _grid(runs[2]))
        while len(found) < (DRAWS if draws is None else draws):
            drawn = runs[:, generator.integers(runs.shape[1], size=runs.shape[1])]
            if _is_enough(drawn):
                found.append(_best(drawn, [start])[0])
    return ScalingFit(law, tuple(found), np.log(runs[2] / law.loss(runs[0], runs[1])))


def _is_enough(runs: Array) -> bool:
    return min(len(np.unique(runs[0])), len(np.unique(runs[1]))) >= FEWEST


def _grid(losses: Array) -> Iterator[Array]:
    """Yield the starts: shares of the loss that E and both terms have in the middle of the data, and exponents."""
    low, middle = float(losses.min()), float(np.median(losses))
    for share, of_size, alpha, beta in product((0.3, 0.8), (0.3, 0.7), (0.3, 0.8), (0.3, 0.8)):
        floor = share * low
        rest = middle - floor
        terms = [math.log(of_size * rest), math.log((1 - of_size) * rest), math.log(floor)]
        yield np.array([*terms, alpha, beta])


def _best(runs: Array, starts: Iterable[Array]) -> tuple[ScalingLaw, Array]:
    """Return the law with the smallest error from several starts, and its coefficients as a start for others.

    runs: (3, runs) sizes, tokens and losses. The terms are those at the geometric mean of sizes and of tokens, so that
    they hardly depend on the exponents.
    """
    log_size, log_tokens, log_loss = np.log(runs)
    middle = log_size.mean(), log_tokens.mean()
    size, tokens = log_size - middle[0], log_tokens - middle[1]

    def error(theta: Array) -> tuple[float, Array]:
        terms = np.array([theta[0] - theta[3] * size, theta[1] - theta[4] * tokens, np.full_like(size, theta[2])])
        fitted = np.logaddexp.reduce(terms)  # (3, runs) to (runs,)
        shares = np.exp(terms - fitted)
        ratio = (fitted - log_loss) / DELTA
        slope = np.clip(ratio, -1, 1) / DELTA
        by_theta = np.stack((*shares, -shares[0] * size, -shares[1] * tokens))
        return float(huber(1, ratio).sum()), by_theta @ slope

    exponents = (SMALLEST_EXPONENT, LARGEST_EXPONENT)
    bounds = [(None, None)] * 3 + [exponents, exponents]
    found = [minimize(error, start, jac=True, method="L-BFGS-B", bounds=bounds, options=OPTIONS) for start in starts]
    best = min(found, key=lambda each: float(each.fun)).x
    law = ScalingLaw(
        irreducible=float(np.exp(best[2])),
        size_factor=float(np.exp(best[0] + best[3] * middle[0])),
        size_exponent=float(best[3]),
        data_factor=float(np.exp(best[1] + best[4] * middle[1])),
        data_exponent=float(best[4]),
    )
    return law, best


def _percentiles(value: float, drawn: Sequence[float] | Array) -> Estimate:
    low, high = np.quantile(drawn, LIMITS)
    return Estimate(value, float(low), float(high), len(drawn))
