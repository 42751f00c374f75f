"""Training of a translator with the cross entropy of each target token, given the true tokens before it."""

import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.data.tables import IGNORED
from firstlight.lit.losses import LossFunction, mean_loss, token_losses
from firstlight.lit.optimizers import OptimizerFactory
from firstlight.lit.schedules import ScheduleFactory
from firstlight.lit.training import Measured, Training
from firstlight.networks.config import check_share
from firstlight.translator.data import PairBatch, PairData
from firstlight.translator.run import TranslatorRun


class Translation(Training):
    """A LightningModule that trains a translator, an encoder-decoder.

    The loss is the cross entropy of each target token given the true tokens before it, in nats per token. A batch is a
    `firstlight.data.PairBatch`. `Translation.for_data(data)` builds the module for a data module.

    Args:
        network: Maps source_ids, token_ids, source_mask and target_mask, as in `PairBatch`, to logits (batch, target
            length, vocab_size).
        optimizer: A function from the parameters to an optimizer. None uses AdamW with a learning rate of 1e-3.
        schedule: A function from the optimizer and the number of steps to a scheduler that is stepped after every
            step, such as `firstlight.lit.cosine`. None uses a short warm-up and a cosine.
        loss: A function that the training minimizes in place of the cross entropy, as in `Training`.
        label_smoothing: The share of every target that is spread evenly over the vocabulary (Szegedy et al. 2016), at
            least 0 and below 1.

    Raises:
        ValueError: If `label_smoothing` is out of range.

    Source: Vaswani et al. 2017, and the post on an encoder-decoder in Julia (June 2022).

    Example:
        >>> import lightning as L
        >>> from firstlight.data import PairData
        >>> from firstlight.lit import Translation
        >>> data = PairData(path="pairs.csv", batch_tokens=200)
        >>> module = Translation.for_data(data, dim=8, num_heads=2, num_layers=1)
        >>> L.Trainer(max_steps=2).fit(module, datamodule=data)
        >>> batch = next(iter(data.val_dataloader()))
        >>> module(batch).shape == (*batch.targets.shape, data.tokenizer.vocab_size)
        True
    """

    kind = "translator"
    config_type = TranslatorRun.config_type
    data_type = PairData
    metadata_checks = TranslatorRun.metadata_checks

    def __init__(
        self,
        network: nn.Module,
        optimizer: OptimizerFactory | None = None,
        schedule: ScheduleFactory | None = None,
        *,
        loss: LossFunction | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        check_share("label_smoothing", label_smoothing)
        super().__init__(network, optimizer, schedule, loss=loss)
        self.label_smoothing = label_smoothing

    def forward(self, batch: PairBatch) -> Tensor:
        """Return the logits of a `PairBatch`, (batch, target length, vocab_size)."""
        return self.network(*batch.inputs)

    def training_step(self, batch: PairBatch) -> dict[str, Tensor]:
        """Return the `loss`, the cross entropy without smoothing as `token_loss`, and the `logits`.

        The logits are (batch, target length, vocab_size).
        """
        logits = self.network(*batch.inputs)
        log_probabilities = logits.log_softmax(dim=2)
        token_loss = F.nll_loss(log_probabilities.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED)
        loss = token_loss
        if self.loss is not None:
            loss = mean_loss(self.loss, logits[batch.target_mask], batch.targets[batch.target_mask])
        if self.label_smoothing:
            uniform_loss = -(log_probabilities.mean(dim=2) * batch.target_mask).sum() / batch.num_tokens
            loss = (1 - self.label_smoothing) * loss + self.label_smoothing * uniform_loss
        if self.distillation is not None:
            loss = self.distilled(loss, logits[batch.target_mask], batch)
        return {"loss": loss, "token_loss": token_loss.detach(), "logits": logits.detach()}

    @staticmethod
    def target_logits(network: nn.Module, batch: PairBatch) -> Tensor:
        return network(*batch.inputs)[batch.target_mask]

    def measure(self, batch: PairBatch) -> Measured:
        """Return the mean `loss` without smoothing, and the `token_losses` and `predicted` tokens of every position.

        The last two are (batch, target length); the loss of padding is 0.
        """
        logits = self.network(*batch.inputs)
        losses = token_losses(logits, batch.targets)
        loss = losses.sum() / batch.num_tokens
        return Measured({"loss": loss, "token_losses": losses, "predicted": logits.argmax(dim=2)}, batch.num_tokens)
