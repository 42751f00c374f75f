"""Groups of parameters of an optimizer: with weight decay, without it, matrices for Muon, and hidden matrices of µP."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from torch import nn
from torch.optim import Adam, AdamW, Optimizer

from firstlight.errors import UserError
from firstlight.lit.muon import MuonAdamW
from firstlight.networks.block import Block
from firstlight.networks.parametrization import hidden_layers, width_multiplier

OptimizerFactory = Callable[[Iterable[Any]], Optimizer]


def default_optimizer(lr: float = 1e-3) -> OptimizerFactory:
    """Return AdamW as in conf/optimizer/adamw.yaml, but not fused, which not every device and precision supports."""
    return partial(AdamW, lr=lr, betas=(0.9, 0.98), weight_decay=0.01)


def build_optimizer(network: nn.Module, factory: OptimizerFactory) -> Optimizer:
    """Return the optimizer of all trainable parameters.

    Weight decay applies to matrices, not to biases, norms or embeddings. Muon applies to the matrices of the blocks.
    With the maximal update parametrization, the learning rates depend on the width. Raises UserError for an optimizer
    whose rates would depend on it in another way.
    """
    learning = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = factory(learning)
    ratio = width_multiplier(network)
    groups = _groups(network, learning, optimizer)
    if ratio != 1:
        _refuse_unknown_rule(optimizer)
        hidden = {id(layer.weight) for layer in hidden_layers(network)}
        groups = _scaled(groups, hidden, ratio, optimizer.defaults)
    return optimizer if len(groups) == 1 else factory(groups)


def _groups(network: nn.Module, learning: list[nn.Parameter], optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return the groups of the trainable parameters. The optimizer was made with one group."""
    is_muon = isinstance(optimizer, MuonAdamW)
    if not is_muon and not optimizer.defaults.get("weight_decay"):  # from the config or the default of the optimizer
        return [{"params": learning}]
    embeddings = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    inner = _matrices_of_blocks(network) if is_muon else set()
    orthogonal: list[nn.Parameter] = []
    matrices: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for parameter in learning:
        is_matrix = parameter.ndim >= 2 and id(parameter) not in embeddings
        (orthogonal if id(parameter) in inner else matrices if is_matrix else rest).append(parameter)
    groups: list[dict[str, Any]] = [{"params": matrices}, {"params": rest, "weight_decay": 0.0}]
    return [{"params": orthogonal, "orthogonal": True}, *groups] if orthogonal else groups


def _scaled(
    groups: list[dict[str, Any]], hidden: set[int], ratio: float, defaults: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the groups with separate ones for hidden matrices, last, whose learning rate is divided by the ratio.

    The product of learning rate and weight decay stays the same (Yang et al. 2022, appendix B.3). A step of Muon
    already has the size that the maximal update parametrization requires (Yang et al. 2023).
    """
    outer: list[dict[str, Any]] = []
    inner: list[dict[str, Any]] = []
    for group in groups:
        if group.get("orthogonal"):
            outer.append(group)
            continue
        decay = group.get("weight_decay", defaults.get("weight_decay", 0.0))
        scaled = {"lr": defaults["lr"] / ratio, "weight_decay": decay * ratio}
        outer.append({**group, "params": [each for each in group["params"] if id(each) not in hidden]})
        inner.append({**group, "params": [each for each in group["params"] if id(each) in hidden], **scaled})
    return [group for group in (*outer, *inner) if group["params"]]


def _refuse_unknown_rule(optimizer: Optimizer) -> None:
    """Raise UserError unless the rules of the maximal update parametrization for Adam apply to an optimizer."""
    options = optimizer.defaults
    if not isinstance(optimizer, Adam) or (options["weight_decay"] and not options["decoupled_weight_decay"]):
        problem = f"model.parametrization=mup does not scale the steps of {type(optimizer).__name__}"
        raise UserError(f"{problem} with weight_decay={options.get('weight_decay')}; set optimizer=adamw or muon")


def _matrices_of_blocks(network: nn.Module) -> set[int]:
    """Return the ids of the weights of the linear layers in all blocks."""
    blocks = [module for module in network.modules() if isinstance(module, Block)]
    return {id(part.weight) for block in blocks for part in block.modules() if isinstance(part, nn.Linear)}
