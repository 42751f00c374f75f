"""A recurrent generator, with which post 4 (names, 2023) compares its transformer."""

from torch import Tensor, nn

from firstlight.generator.first_steps import UncachedGenerator
from firstlight.generator.options import GeneratorConfig


class LSTM(UncachedGenerator):
    """A generator with a long short-term memory (Hochreiter & Schmidhuber 1997) in place of attention.

    `model._target_=firstlight.generator.lstm.LSTM` chooses it, as in `experiment=post/names_lstm`. It has the arguments
    and the result of a `Generator`. Of the options it reads `dim`, `num_layers`, `context_length`, `dropout`,
    `embedding_std` and `head_bias`.

    Args:
        config: options of the network.
        vocab_size: number of token ids.

    Shape:
        - token_ids: (batch, length) int
        - output: (batch, length, vocab_size) logits

    Example:
        >>> import torch
        >>> from firstlight.networks import LSTM, GeneratorConfig, num_parameters
        >>> network = LSTM(GeneratorConfig(dim=90, num_heads=1, context_length=5), vocab_size=27)
        >>> num_parameters(network)
        70407
        >>> network(torch.randint(27, (2, 5))).shape
        torch.Size([2, 5, 27])
    """

    def __init__(self, config: GeneratorConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size, config.dim)
        self.dropout = nn.Dropout(config.dropout)
        self.lstm = nn.LSTM(config.dim, config.dim, config.num_layers, batch_first=True)
        self.head = nn.Linear(config.dim, vocab_size, bias=config.head_bias)

    def forward(self, token_ids: Tensor, cache: None = None) -> Tensor:  # noqa: ARG002
        """Return the logits, (batch, length, vocab_size). token_ids: (batch, length) int."""
        hidden, _ = self.lstm(self.dropout(self.embedding(token_ids)))
        return self.head(self.dropout(hidden))
