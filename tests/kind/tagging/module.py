"""Training of the tagger with the cross entropy of the tags."""

from typing import Any, ClassVar

from torch import Tensor, nn

from firstlight.data.tables import IGNORED
from firstlight.lit import Training
from firstlight.lit.losses import token_losses
from firstlight.lit.metadata import Checks, are_names
from firstlight.lit.training import Measured
from tagging.data import TagBatch, TagData
from tagging.options import TaggerConfig


class Tagging(Training):
    """A LightningModule that trains a tagger."""

    kind = "tagger"
    config_type = TaggerConfig
    data_type = TagData
    metadata_checks: ClassVar[Checks] = {"class_names": are_names}

    def training_step(self, batch: TagBatch) -> dict[str, Tensor]:
        logits = self.network(*batch.inputs)
        loss = token_losses(logits, batch.targets).sum() / batch.num_targets
        is_real = batch.targets != IGNORED
        return {"loss": self.distilled(loss, logits[is_real], batch), "logits": logits.detach()}

    def measure(self, batch: TagBatch) -> Measured:
        logits = self.network(*batch.inputs)
        losses = token_losses(logits, batch.targets)  # (batch, length), 0 for padding
        outputs = {"loss": losses.sum() / batch.num_targets, "token_losses": losses, "predicted": logits.argmax(dim=-1)}
        return Measured(outputs, batch.num_targets)

    @staticmethod
    def target_logits(network: nn.Module, batch: Any) -> Tensor:
        return network(*batch.inputs)[batch.targets != IGNORED]
