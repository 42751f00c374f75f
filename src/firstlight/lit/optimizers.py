"""Which parameters an optimizer decays."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn
from torch.optim import Optimizer

OptimizerFactory = Callable[[Iterable[Any]], Optimizer]


def build_optimizer(network: nn.Module, factory: OptimizerFactory) -> Optimizer:
    """The optimizer of all parameters that learn; weight decay acts on matrices, not on biases, norms or embeddings."""
    learning = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = factory(learning)
    if not optimizer.defaults.get("weight_decay"):  # of the config, or of the optimizer's own
        return optimizer
    embeddings = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    matrices: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for parameter in learning:
        is_matrix = parameter.ndim >= 2 and id(parameter) not in embeddings
        (matrices if is_matrix else rest).append(parameter)
    return factory([{"params": matrices}, {"params": rest, "weight_decay": 0.0}])
