"""Training of a generator with the cross entropy of the next token at every position."""

from functools import cached_property
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.data.tables import TokenBatch, token_batch
from firstlight.generator.data import StreamData
from firstlight.generator.lstm import CarriedState
from firstlight.generator.run import GeneratorRun
from firstlight.lit.losses import mean_loss, token_losses
from firstlight.lit.training import Measured, Training

CARRIED = "carried_state"  # the key in a checkpoint


class Generation(Training):
    """A LightningModule that trains a generator.

    The loss is the cross entropy of the next token at every position, in nats per token. A batch is a
    `firstlight.data.TokenBatch`, or a pair of tensors: token ids and the token that follows each, both (batch, length).
    `Generation.for_data(data)` builds the module for a data module.

    Args:
        network: Maps token ids (batch, length) to logits (batch, length, vocab_size).
        optimizer: A function from the parameters to an optimizer. None uses AdamW with a learning rate of 1e-3.
        schedule: A function from the optimizer and the number of steps to a scheduler that is stepped after every
            step, such as `firstlight.lit.cosine`. None uses a short warm-up and a cosine.
        loss: A function that the training minimizes in place of the cross entropy, as in `Training`.

    Source: the posts on a Shakespeare generator in Julia (March 2024) and on names in PyTorch (November 2023).

    Example:
        >>> import lightning as L
        >>> import torch
        >>> from firstlight.data import CharacterData
        >>> from firstlight.lit import Generation
        >>> data = CharacterData(path="novel.txt", context_length=16)
        >>> module = Generation.for_data(data, dim=8, num_heads=2, num_layers=1)
        >>> L.Trainer(max_steps=2).fit(module, datamodule=data)
        >>> module(torch.tensor([[5, 2, 7]])).shape == (1, 3, data.tokenizer.vocab_size)
        True
    """

    kind = "generator"
    config_type = GeneratorRun.config_type
    data_type = StreamData
    metadata_checks = GeneratorRun.metadata_checks

    @cached_property
    def carried(self) -> dict[bool, CarriedState]:
        """The states of `data.stateful_window`, in training and in evaluation."""
        return {is_training: CarriedState() for is_training in (True, False)}

    def forward(self, token_ids: Tensor) -> Tensor:
        """Return the logits, (batch, length, vocab_size). token_ids: (batch, length), int."""
        return self.network(token_ids)

    def training_step(self, batch: TokenBatch) -> dict[str, Tensor]:
        """Return the `loss`, the cross entropy without a teacher as `token_loss`, and the `logits` of one batch.

        The losses are in nats per token. The logits are (batch, length, vocab_size).
        """
        batch = token_batch(batch)
        logits = self.carried[True].logits(self.network, batch)
        of_targets, targets = logits.flatten(0, 1), batch.targets.flatten()
        token_loss = F.cross_entropy(of_targets, targets)
        loss = token_loss if self.loss is None else mean_loss(self.loss, of_targets, targets)
        loss = self.distilled(loss, of_targets, batch)
        return {"loss": loss, "token_loss": token_loss.detach(), "logits": logits.detach()}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Put the metadata into the checkpoint, and the state that the next windows of the training continue."""
        super().on_save_checkpoint(checkpoint)
        if self.carried[True].tensors is not None:
            checkpoint[CARRIED] = self.carried[True].tensors

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Read the state that the next windows continue."""
        state = checkpoint.get(CARRIED)
        is_state = isinstance(state, tuple) and all(isinstance(each, Tensor) for each in state)
        self.carried[True].tensors = state if is_state else None

    @staticmethod
    def target_logits(network: nn.Module, batch: TokenBatch) -> Tensor:
        return network(batch.token_ids).flatten(0, 1)

    def measure(self, batch: TokenBatch) -> Measured:
        """Return the mean `loss`, and the `token_losses` and `predicted` tokens, both (batch, length)."""
        batch = token_batch(batch)
        logits = self.carried[False].logits(self.network, batch)
        losses = token_losses(logits, batch.targets)
        outputs = {"loss": losses.mean(), "token_losses": losses, "predicted": logits.argmax(dim=2)}
        return Measured(outputs, batch.num_tokens)
