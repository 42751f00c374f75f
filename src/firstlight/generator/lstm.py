"""A recurrent generator, with which post 4 (names, 2023) compares its transformer."""

from typing import Any

from torch import Tensor, nn

from firstlight.data.tables import FirstWindows, NextWindows, TokenBatch
from firstlight.errors import UserError
from firstlight.generator.first_steps import UncachedGenerator
from firstlight.generator.options import GeneratorConfig
from firstlight.networks.layers import Dropout

State = tuple[Tensor, ...]


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
        self.dropout = Dropout(config.dropout)
        self.lstm = nn.LSTM(config.dim, config.dim, config.num_layers, batch_first=True)
        self.head = nn.Linear(config.dim, vocab_size, bias=config.head_bias)

    def forward(self, token_ids: Tensor, cache: None = None) -> Tensor:  # noqa: ARG002
        """Return the logits, (batch, length, vocab_size). token_ids: (batch, length) int."""
        return self.with_state(token_ids)[0]

    def with_state(self, token_ids: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Return the logits and the state after the last token, with which the next tokens of the rows are read.

        token_ids: (batch, length) int; state: the hidden and cell vectors, (num_layers, batch, dim) each, or None at
        the beginning of a text.
        """
        hidden, state = self.lstm(self.dropout(self.embedding(token_ids)), state)
        return self.head(self.dropout(hidden)), state


class CarriedState:
    """The state of a network from one batch of windows to the next one, without gradients.

    tensors: the state after the last batch; None before the first one.
    """

    tensors: State | None = None

    def logits(self, network: Any, batch: TokenBatch) -> Tensor:
        """Return the logits of a batch, (batch, length, vocab_size). `NextWindows` are read with the state.

        Raises UserError for a network without `with_state`, and if the state is missing.
        """
        continues = isinstance(batch, NextWindows)
        if not continues and not isinstance(batch, FirstWindows):
            return network(batch.token_ids)
        if not hasattr(network, "with_state"):
            remedy = "set it to null, or model._target_=firstlight.generator.lstm.LSTM"
            raise UserError(f"data.stateful_window requires a network with the method with_state; {remedy}")
        if continues and self.tensors is None:
            raise UserError("the checkpoint has no state of the network for data.stateful_window; train again")
        before = tuple(each.to(batch.token_ids.device) for each in self.tensors or ()) if continues else None
        logits, after = network.with_state(batch.token_ids, before)
        self.tensors = tuple(each.detach() for each in after)
        return logits
