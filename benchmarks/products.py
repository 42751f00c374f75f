"""Compare matrix products of 2, 3 and 4 dimensions: loops in Python, and one batched product (post 1, reviews).

    python benchmarks/products.py [--rows 50] [--inner 32] [--columns 50] [--heads 4] [--batch-size 32]

A product of 3 dimensions has one matrix for each head, and one of 4 dimensions for each head of each text. The script
checks that all sides have the same products, and that autograd has the gradients dA = dZ·Bᵀ and dB = Aᵀ·dZ. It prints
the milliseconds of each side, and how many times faster the batched product is than each loop.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import tyro
from measure import by_turns, ratio, show, versions
from torch import Tensor
from torch.testing import assert_close

Product = Callable[[Tensor, Tensor], Tensor]


@dataclass
class Options:
    """Options of the comparison."""

    rows: int = 50
    """Number of rows of each left matrix, such as the queries of a review."""
    inner: int = 32
    """Number of columns of each left matrix and of rows of each right matrix."""
    columns: int = 50
    """Number of columns of each right matrix, such as the keys of a review."""
    heads: int = 4
    batch_size: int = 32
    pairs: int = 20
    """Number of products that each side computes."""
    threads: int = 1
    """Number of CPU threads of torch."""


def main() -> None:
    """Check and measure, and print the results."""
    options = tyro.cli(Options)
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    table = []
    for outer in ((), (options.heads,), (options.batch_size, options.heads)):
        left = torch.randn(*outer, options.rows, options.inner)
        right = torch.randn(*outer, options.inner, options.columns)
        sides: dict[str, Product] = {"row by row": by_rows, "matrix by matrix": by_matrices, "batched": torch.matmul}
        check(left, right, sides)
        times = by_turns({name: partial(side, left, right) for name, side in sides.items()}, options.pairs)
        milliseconds = [f"{1000 * statistics.median(each):.3g}" for each in times.values()]
        ratios = [ratio(times[name], times["batched"]) for name in ("row by row", "matrix by matrix")]
        table.append((f"{left.ndim} dimensions", " × ".join(map(str, left.shape)), *milliseconds, *ratios))
    print(versions(options.threads))
    columns = ["", "left", "row by row (ms)", "matrix by matrix (ms)", "batched (ms)", "rows / batched"]
    show("Products of matrices, forward", [*columns, "matrices / batched"], table)


def by_rows(left: Tensor, right: Tensor) -> Tensor:
    """Return the products of the last two axes, one row of a left matrix at a time."""
    if left.ndim == 2:
        return torch.stack([row @ right for row in left])
    return torch.stack([by_rows(*matrices) for matrices in zip(left, right, strict=True)])


def by_matrices(left: Tensor, right: Tensor) -> Tensor:
    """Return the products of the last two axes, one pair of matrices at a time."""
    if left.ndim == 2:
        return left @ right
    return torch.stack([by_matrices(*matrices) for matrices in zip(left, right, strict=True)])


def check(left: Tensor, right: Tensor, sides: dict[str, Product]) -> None:
    """Raise AssertionError unless all sides have the same product Z, and its gradients are dZ·Bᵀ and Aᵀ·dZ."""
    left, right = (each.double().requires_grad_() for each in (left, right))
    expected = left @ right
    change = torch.randn_like(expected)  # dZ
    for side in sides.values():
        product = side(left, right)
        assert_close(product, expected)
        gradients = torch.autograd.grad(product, (left, right), change)
        assert_close(gradients, (change @ right.mT, left.mT @ change))


if __name__ == "__main__":
    main()
