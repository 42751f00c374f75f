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


def num_embedding_parameters(network: nn.Module) -> int:
    """Return the number of trained parameters of the embeddings. Kaplan et al. (2020) leave them out of a size.

    The weight of an output layer that is tied to an embedding is counted once, as part of the embedding.

    Args:
        network: any module.

    Example:
        >>> from torch import nn
        >>> from firstlight.networks.size import num_embedding_parameters
        >>> num_embedding_parameters(nn.Sequential(nn.Embedding(7, 5), nn.Linear(5, 7)))
        35
    """
    tables = [module for module in network.modules() if isinstance(module, nn.Embedding)]
    weights = {id(table.weight): table.weight for table in tables if table.weight.requires_grad}
    return sum(weight.numel() for weight in weights.values())
