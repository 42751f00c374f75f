"""Groups of parameters of an optimizer: with weight decay, without it, and matrices for Muon."""

from collections.abc import Callable, Iterable
from typing import Any

from torch import nn
from torch.optim import Optimizer

from firstlight.lit.muon import MuonAdamW
from firstlight.networks.block import Block

OptimizerFactory = Callable[[Iterable[Any]], Optimizer]


def build_optimizer(network: nn.Module, factory: OptimizerFactory) -> Optimizer:
    """Return the optimizer of all trainable parameters.

    Weight decay applies to matrices, not to biases, norms or embeddings. Muon applies to the matrices of the blocks.
    """
    learning = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = factory(learning)
    is_muon = isinstance(optimizer, MuonAdamW)
    if not is_muon and not optimizer.defaults.get("weight_decay"):  # from the config or the default of the optimizer
        return optimizer
    embeddings = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    inner = _matrices_of_blocks(network) if is_muon else set()
    orthogonal: list[nn.Parameter] = []
    matrices: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for parameter in learning:
        is_matrix = parameter.ndim >= 2 and id(parameter) not in embeddings
        (orthogonal if id(parameter) in inner else matrices if is_matrix else rest).append(parameter)
    groups: list[dict[str, Any]] = [{"params": matrices}, {"params": rest, "weight_decay": 0.0}]
    return factory([{"params": orthogonal, "orthogonal": True}, *groups] if orthogonal else groups)


def _matrices_of_blocks(network: nn.Module) -> set[int]:
    """Return the ids of the weights of the linear layers in all blocks."""
    blocks = [module for module in network.modules() if isinstance(module, Block)]
    return {id(part.weight) for block in blocks for part in block.modules() if isinstance(part, nn.Linear)}
