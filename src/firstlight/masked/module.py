"""Training of a masked language model with the cross entropy of the masked words."""

import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.lit.losses import mean_loss, token_losses
from firstlight.lit.training import Measured, Training
from firstlight.masked.data import MaskedReviewData
from firstlight.masked.network import MaskedBatch
from firstlight.masked.run import MaskedRun


class MaskedLanguageModeling(Training):
    """A LightningModule that trains a masked language model.

    The loss is the cross entropy of the words to predict, most of which are masked in the text, in nats per word. A
    batch is a `MaskedBatch`. `MaskedLanguageModeling.for_data(data)` builds the module for a data module.

    Args:
        network: Maps token ids (batch, length), a padding mask, True where a token is real, and places (places,),
            counted through all rows, to the logits at these places, (places, vocab_size).
        optimizer: A function from the parameters to an optimizer. None uses AdamW with a learning rate of 1e-3.
        schedule: A function from the optimizer and the number of steps to a scheduler that is stepped after every
            step, such as `firstlight.lit.cosine`. None uses a short warm-up and a cosine.
        loss: A function that the training minimizes in place of the cross entropy, as in `Training`.

    Source: BERT (Devlin et al. 2018).

    Example:
        >>> import lightning as L
        >>> import torch
        >>> from firstlight.masked.data import MaskedReviewData
        >>> from firstlight.masked.module import MaskedLanguageModeling
        >>> data = MaskedReviewData(path="reviews.csv", context_length=20)
        >>> module = MaskedLanguageModeling.for_data(data, dim=8, num_heads=2, num_layers=1)
        >>> L.Trainer(max_steps=2).fit(module, datamodule=data)
        >>> module(torch.tensor([[5, 2, 7]])).shape == (1, 3, data.tokenizer.vocab_size)
        True
    """

    kind = "masked"
    config_type = MaskedRun.config_type
    data_type = MaskedReviewData
    metadata_checks = MaskedRun.metadata_checks

    def forward(self, token_ids: Tensor, padding_mask: Tensor | None = None, places: Tensor | None = None) -> Tensor:
        """Return the logits, (batch, length, vocab_size), or (places, vocab_size) if `places` is given.

        Args:
            token_ids: (batch, length), int.
            padding_mask: (batch, length), bool, True where a token is real. None means that all are real.
            places: (places,), int, counted through all rows: row · length + column. None means all places.
        """
        return self.network(token_ids, padding_mask, places)

    def training_step(self, batch: MaskedBatch) -> dict[str, Tensor]:
        """Return the `loss`, the cross entropy without a teacher as `token_loss`, and the `logits` of one batch.

        The losses are in nats per word. The logits are (targets, vocab_size).
        """
        logits = self.network(batch.token_ids, batch.padding_mask, batch.places)
        token_loss = F.cross_entropy(logits, batch.targets, reduction="sum") / max(batch.num_targets, 1)
        loss = token_loss if self.loss is None else mean_loss(self.loss, logits, batch.targets)
        loss = self.distilled(loss, logits, batch)
        return {"loss": loss, "token_loss": token_loss.detach(), "logits": logits.detach()}

    @staticmethod
    def target_logits(network: nn.Module, batch: MaskedBatch) -> Tensor:
        return network(*batch.inputs)

    def measure(self, batch: MaskedBatch) -> Measured:
        """Return the mean `loss`, and the `token_losses` and `predicted` tokens, both (targets,)."""
        logits = self.network(batch.token_ids, batch.padding_mask, batch.places)
        losses = token_losses(logits, batch.targets)  # (targets,)
        loss = losses.sum() / max(batch.num_targets, 1)
        return Measured({"loss": loss, "token_losses": losses, "predicted": logits.argmax(dim=1)}, batch.num_targets)
