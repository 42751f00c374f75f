"""How many numbers a network keeps."""

from torch import nn

from firstlight.networks.evidence import NgramEvidence


def num_parameters(network: nn.Module, *, trained_only: bool = False) -> int:
    """The weights of a network, and what was counted into it; trained_only: weights that stay as they are left out."""
    weights = sum(weight.numel() for weight in network.parameters() if weight.requires_grad or not trained_only)
    return weights + sum(part.num_numbers for part in network.modules() if isinstance(part, NgramEvidence))
