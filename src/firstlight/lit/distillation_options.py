"""Options of the distillation of a teacher into a network. Imports no torch."""

import math
from dataclasses import dataclass


@dataclass
class DistillationOptions:
    """Node `distillation`: how a network learns from the teacher that `teacher` names."""

    weight: float = 0.5
    """Share of the loss that compares the network with the teacher, from 0 to 1; the rest compares it with the true
    labels or tokens."""
    temperature: float = 1.0
    """Temperature of both distributions in that comparison; above 1, the smaller probabilities of the teacher count
    more."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise ValueError(f"distillation.weight={self.weight} must lie between 0 and 1")
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"distillation.temperature={self.temperature} must be a finite number above 0")
