"""Initial weights of the linear layers."""

import math

import torch
from torch import nn

from firstlight.networks.block import Block
from firstlight.networks.config import TransformerConfig
from firstlight.networks.parametrization import scale_initial_weights
from firstlight.networks.variants import Initialization


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
    scale_initial_weights(network, network.head, config)  # type: ignore[arg-type]  # a Module


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
