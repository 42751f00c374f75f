"""The layer before the output layer of a masked language model."""

from torch import Tensor, nn

from firstlight.networks.block import ACTIVATIONS
from firstlight.networks.masked_config import MaskedConfig
from firstlight.networks.norms import build_norm


class HeadLayer(nn.Module):
    """The layer before the output layer of BERT: a linear layer, the activation function and a norm."""

    def __init__(self, config: MaskedConfig) -> None:
        super().__init__()
        self.linear = nn.Linear(config.dim, config.dim)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = build_norm(config)

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the transformed vectors. The input and the output have the shape (…, dim)."""
        return self.norm(self.activation(self.linear(hidden)))
