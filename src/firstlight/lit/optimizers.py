"""Which parameters an optimizer decays."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from torch import nn
from torch.optim import Optimizer

OptimizerFactory = Callable[[Iterable[Any]], Optimizer]


def build_optimizer(network: nn.Module, factory: OptimizerFactory) -> Optimizer:
    """The optimizer of all parameters that learn; weight decay acts on matrices, not on biases, norms or embeddings."""
    decays = isinstance(factory, partial) and factory.keywords.get("weight_decay", 0) > 0
    if not decays:
        return factory([parameter for parameter in network.parameters() if parameter.requires_grad])
    embeddings = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    matrices: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for parameter in network.parameters():
        if parameter.requires_grad:
            is_matrix = parameter.ndim >= 2 and id(parameter) not in embeddings
            (matrices if is_matrix else rest).append(parameter)
    return factory([{"params": matrices}, {"params": rest, "weight_decay": 0.0}])
