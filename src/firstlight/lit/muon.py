"""Muon, an optimizer for the matrices of a network's blocks, with AdamW for everything else."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic that brings singular values near 1 fastest


class MuonAdamW(AdamW):
    """Muon (Jordan et al. 2024) in the groups that say `orthogonal`, AdamW in the others.

    Muon's step is the momentum of the gradient with all its singular values made about equal, so that directions in
    which the gradient is small are learned as fast as the others. `torch.optim.Muon` does the same, one matrix after
    the other in bfloat16: with the 16 small matrices of a tiny generator it takes 13 times as long on a CPU.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        *,
        matrix_lr: float = 0.02,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        fused: bool | None = None,
    ) -> None:
        """matrix_lr, momentum: of Muon; lr, betas: of AdamW; weight_decay: of both."""
        if not matrix_lr >= 0:  # nor nan
            raise ValueError(f"matrix_lr={matrix_lr} must be at least 0")
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum={momentum} must be at least 0 and below 1")
        super().__init__(params, lr=lr, betas=betas, weight_decay=weight_decay, fused=fused)
        self.defaults |= {"matrix_lr": matrix_lr, "momentum": momentum}
        for group in self.param_groups:
            if group.setdefault("orthogonal", False):
                group |= {"lr": matrix_lr, "momentum": momentum}

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of both. The closure, which may clear and clip gradients, is called while all groups are there."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        groups = self.param_groups
        try:
            self.param_groups = [group for group in groups if not group["orthogonal"]]
            super().step()
        finally:
            self.param_groups = groups
        for group in groups:
            if group["orthogonal"]:
                self._step_matrices(group)
        return loss

    def _step_matrices(self, group: dict[str, Any]) -> None:
        """Muon's step of one group, all matrices of a shape and its transpose at once."""
        shapes: dict[tuple[int, ...], list[Tensor]] = {}
        for matrix in group["params"]:
            if matrix.grad is not None:
                shapes.setdefault(tuple(sorted(matrix.shape)), []).append(matrix)
        for matrices in shapes.values():
            momenta = [self._momentum(matrix, group["momentum"]) for matrix in matrices]
            steps = orthogonalized(torch.stack([_wide(momentum) for momentum in momenta]))
            for matrix, step in zip(matrices, steps, strict=True):
                rows, columns = matrix.shape
                matrix.mul_(1 - group["lr"] * group["weight_decay"])
                matrix.add_(step if rows <= columns else step.T, alpha=-group["lr"] * max(1, rows / columns) ** 0.5)

    def _momentum(self, matrix: Tensor, share: float) -> Tensor:
        """Nesterov's: the running mean of the gradients, one step ahead. (rows, columns)."""
        assert matrix.grad is not None
        state = self.state[matrix]
        if not state:  # Adam's loading looks for a step wherever there is a state
            state |= {"step": torch.zeros(()), "momentum_buffer": torch.zeros_like(matrix)}
        buffer: Tensor = state["momentum_buffer"]
        buffer.lerp_(matrix.grad, 1 - share)
        return matrix.grad.lerp(buffer, share)


def _wide(matrix: Tensor) -> Tensor:
    """The matrix, or its transpose where it has more rows than columns."""
    return matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T


def orthogonalized(matrices: Tensor, iterations: int = 5) -> Tensor:
    """The matrices with singular values near 1, by Newton and Schulz' iteration: between 0.7 and 1.2 after five.

    matrices: (number, rows, columns), at most as many rows as columns; returns the same shape.
    """
    linear, cubic, quintic = COEFFICIENTS
    matrices = matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-7)
    for _ in range(iterations):
        gram = matrices @ matrices.mT  # (number, rows, rows)
        odd = torch.baddbmm(gram, gram, gram, beta=cubic, alpha=quintic)
        matrices = torch.baddbmm(matrices, odd, matrices, beta=linear)
    return matrices
