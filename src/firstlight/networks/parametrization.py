"""The maximal update parametrization (µP): networks of all widths have the same best learning rate (Yang et al. 2022).

Everything follows Table 8 of "Tensor Programs V", relative to a base width at which nothing differs from the standard
parametrization. With m = dim / base_dim:

- hidden layers, from vectors of size dim to vectors of size dim: variance of the initial weights 1/m, and Adam's
  learning rate divided by m (`firstlight.lit.optimizers`)
- output layers: the initial weights do not depend on m, and their inputs are divided by m (`OutputMultiplier`)
- attention: the scores are divided by head_dim in place of its root (`firstlight.networks.attention`)
- embeddings, positions, biases and norms do not depend on m
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from firstlight.networks.block import Block, HeadLayer
from firstlight.networks.config import TransformerConfig
from firstlight.networks.convolution import ShortConvolution
from firstlight.networks.pooling import PerToken
from firstlight.networks.variants import Initialization


class OutputMultiplier(nn.Module):
    """The division of the input of the output layer by the width, in units of the base width."""

    def __init__(self, width_multiplier: float) -> None:
        super().__init__()
        self.width_multiplier = width_multiplier

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the divided vectors. The input and the output have the shape (…, dim)."""
        return hidden / self.width_multiplier

    def extra_repr(self) -> str:
        return f"width_multiplier={self.width_multiplier:g}"


def build_output_multiplier(config: TransformerConfig) -> nn.Module:
    """Return the module between the last norm and the output layer. At the base width it is the identity."""
    return nn.Identity() if config.width_multiplier == 1 else OutputMultiplier(config.width_multiplier)


def width_multiplier(network: nn.Module) -> float:
    """Return the width of a network in units of its base width; 1 with the standard parametrization."""
    found = (part.width_multiplier for part in network.modules() if isinstance(part, OutputMultiplier))
    return next(found, 1.0)


def hidden_layers(network: nn.Module) -> Iterator[nn.Linear | nn.Conv1d]:
    """Yield the layers whose inputs and outputs both grow with the width."""
    for part in network.modules():
        if isinstance(part, Block | ShortConvolution | HeadLayer):
            yield from (layer for layer in part.modules() if isinstance(layer, nn.Linear | nn.Conv1d))


def output_layers(head: nn.Module) -> Iterator[nn.Linear]:
    """Yield the layers of a head whose inputs grow with the width, but whose outputs do not."""
    if isinstance(head, PerToken):  # its other layer reads one score of each token
        yield head.score
    else:
        yield from (layer for layer in head.modules() if isinstance(layer, nn.Linear))


@torch.no_grad()
def scale_initial_weights(network: nn.Module, head: nn.Module, config: TransformerConfig) -> None:
    """Scale initial weights of the standard parametrization to those of µP.

    torch's default distribution is scaled by the number of inputs, which is right for the weights of hidden layers. A
    normal distribution of `config.initialization` is not scaled, which is right for output layers and biases of 0.

    head: the output layer of the network, or the module that contains it.
    """
    if config.width_multiplier == 1:
        return
    root = math.sqrt(config.width_multiplier)
    is_default = config.initialization is Initialization.default
    for layer in hidden_layers(network):
        if not is_default and isinstance(layer, nn.Linear):  # `initialize` draws no convolution
            layer.weight /= root
        elif layer.bias is not None:
            layer.bias *= root
    for layer in output_layers(head) if is_default else ():
        for parameter in layer.parameters():
            parameter.mul_(root)
