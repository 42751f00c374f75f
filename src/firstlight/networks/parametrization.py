"""Initial weights, and the maximal update parametrization (µP) of networks.

With µP, networks of all widths have the same best learning rate (Yang et al. 2022). Everything follows Table 8 of
"Tensor Programs V", relative to a base width at which nothing differs from the standard parametrization. With
m = dim / base_dim:

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
from firstlight.networks.layers import ShortConvolution
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
def _scale(network: nn.Module, config: TransformerConfig) -> None:
    """Scale initial weights of the standard parametrization to those of µP.

    torch's default distribution is scaled by the number of inputs, which is right for the weights of hidden layers. A
    normal distribution of `config.initialization` is not scaled, which is right for output layers and biases of 0.
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
    for layer in output_layers(network.head) if is_default else ():  # type: ignore[arg-type]  # a Module
        for parameter in layer.parameters():
            parameter.mul_(root)


@torch.no_grad()
def initialize(network: nn.Module, config: TransformerConfig, num_loops: int = 1) -> None:
    """Draw the weights of all linear layers of a network, and set their biases to 0.

    With "depth_scaled", the last layer of each sublayer is divided by the square root of the number of sublayers in its
    stack of blocks, so that the sum of all sublayers does not grow with the depth (GPT-2, Radford et al. 2019). With
    "default", the network is unchanged.

    Last, the weights are scaled to the width, if `config.parametrization` is µP.

    network: its stacks of blocks are `nn.ModuleList`s, and `head` is or contains its output layer; num_loops: number of
    times that a stack is applied.
    """
    if config.initialization is not Initialization.default:
        _draw(network, config, num_loops)
    _scale(network, config)


def _draw(network: nn.Module, config: TransformerConfig, num_loops: int) -> None:
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=config.embedding_std)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    for stack in network.children():
        blocks = [part for part in stack.modules() if isinstance(part, Block)]
        last_layers = [layer for block in blocks for layer in block.last_layers]
        for layer in filter(None, last_layers):
            if config.zero_init:
                nn.init.zeros_(layer.weight)
            elif config.initialization is Initialization.depth_scaled:
                layer.weight /= math.sqrt(num_loops * len(last_layers))
