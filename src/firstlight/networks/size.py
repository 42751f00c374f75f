"""The size of a network."""

from torch import nn


def num_parameters(network: nn.Module, *, trained_only: bool = False) -> int:
    """Return the number of parameters of a network.

    Args:
        network: any module.
        trained_only: whether to count only parameters that require a gradient.

    Example:
        >>> from torch import nn
        >>> from firstlight.networks import num_parameters
        >>> num_parameters(nn.Linear(7, 5))
        40
    """
    return sum(weight.numel() for weight in network.parameters() if weight.requires_grad or not trained_only)
