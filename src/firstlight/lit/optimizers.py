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
    groups = _groups(network, learning, optimizer)
    return optimizer if [group.keys() for group in groups] == [{"params"}] else factory(groups)


def _groups(network: nn.Module, learning: list[nn.Parameter], optimizer: Optimizer) -> list[dict[str, Any]]:
    """Return the groups of the trainable parameters. The optimizer was made with one group.

    With µP, the learning rate of hidden matrices is divided by the width in units of the base width, and the product of
    learning rate and weight decay stays the same (Yang et al. 2022, appendix B.3). A step of Muon already has the size
    that µP requires (Yang et al. 2023).
    """
    is_muon, decay = isinstance(optimizer, MuonAdamW), optimizer.defaults.get("weight_decay", 0.0)
    embeddings = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    blocks = [module for module in network.modules() if isinstance(module, Block)] if is_muon else []
    inner = {id(part.weight) for block in blocks for part in block.modules() if isinstance(part, nn.Linear)}
    ratio = width_multiplier(network)
    hidden = {id(layer.weight) for layer in hidden_layers(network)} if ratio != 1 else set()
    orthogonal: dict[str, Any] = {"params": [], "orthogonal": True}
    matrices: dict[str, Any] = {"params": []}
    rest: dict[str, Any] = {"params": [], "weight_decay": 0.0}
    scaled: dict[str, Any] = {"params": []}
    if ratio != 1:
        _refuse_unknown_rule(optimizer)
        scaled |= {"lr": optimizer.defaults["lr"] / ratio, "weight_decay": decay * ratio}
    for parameter in learning:
        is_decaying = parameter.ndim >= 2 and id(parameter) not in embeddings
        if id(parameter) in inner:
            group = orthogonal
        elif id(parameter) in hidden:
            group = scaled
        else:
            group = matrices if is_decaying or not (decay or is_muon) else rest
        group["params"].append(parameter)
    return [group for group in (orthogonal, matrices, rest, scaled) if group["params"]]


def _refuse_unknown_rule(optimizer: Optimizer) -> None:
    """Raise UserError unless the rules of the maximal update parametrization for Adam apply to an optimizer."""
    options = optimizer.defaults
    if not isinstance(optimizer, Adam) or (options["weight_decay"] and not options["decoupled_weight_decay"]):
        problem = f"model.parametrization=mup does not scale the steps of {type(optimizer).__name__}"
        raise UserError(f"{problem} with weight_decay={options.get('weight_decay')}; set optimizer=adamw or muon")
