"""Training a translator: the cross entropy of each target token, given what really stands before it."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.data.pairs import IGNORED, PairBatch
from firstlight.decoding.beam import Search, translate
from firstlight.lit.optimizers import OptimizerFactory
from firstlight.lit.schedules import ScheduleFactory
from firstlight.lit.training import Training
from firstlight.networks.config import check_share
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.sentence_tokenizers import BEGIN_ID, END_ID


class Translation(Training):
    """An encoder-decoder and how it learns. The batch is a `PairBatch`."""

    kind = "encoder_decoder"

    def __init__(
        self,
        network: nn.Module,
        optimizer: OptimizerFactory | None = None,
        schedule: ScheduleFactory | None = None,
        *,
        label_smoothing: float = 0.0,
        beam_size: int = 4,
        length_penalty: float = 1.0,
    ) -> None:
        """label_smoothing: the share of each target that all tokens have in common (Szegedy et al. 2016).

        beam_size, length_penalty: of the search of `Trainer.predict`, as in `firstlight.load(run).translate`.
        """
        check_share("label_smoothing", label_smoothing)
        super().__init__(network, optimizer, schedule)
        self.label_smoothing = label_smoothing
        self.beam_size, self.length_penalty = beam_size, length_penalty

    def forward(self, batch: PairBatch) -> Tensor:
        """Logits (batch, targets, vocab_size)."""
        return self.network(batch.source_ids, batch.token_ids, batch.source_mask, batch.target_mask)

    def training_step(self, batch: PairBatch) -> dict[str, Tensor]:
        """The loss that is trained, the same without smoothing, and the logits (batch, targets, vocab_size)."""
        logits = self(batch)
        log_probabilities = logits.log_softmax(dim=2)
        token_loss = F.nll_loss(log_probabilities.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED)
        loss = token_loss
        if self.label_smoothing:
            uniform_loss = -(log_probabilities.mean(dim=2) * batch.target_mask).sum() / batch.num_tokens
            loss = (1 - self.label_smoothing) * token_loss + self.label_smoothing * uniform_loss
        return {"loss": loss, "token_loss": token_loss.detach(), "logits": logits.detach()}

    def validation_step(self, batch: PairBatch) -> dict[str, Tensor]:
        """The mean loss, without smoothing, the loss of every token, 0 for padding, and what was predicted for it."""
        return self._evaluate(batch, "val")

    def test_step(self, batch: PairBatch) -> dict[str, Tensor]:
        """The mean loss, without smoothing, the loss of every token, 0 for padding, and what was predicted for it."""
        return self._evaluate(batch, "test")

    def predict_step(self, batch: PairBatch) -> list[str]:
        """The translation of each sentence of a batch, as `firstlight.load(run).translate` gives it."""
        if self.card is None:
            raise ValueError("the module knows no tokenizer; build it by Translation.for_data(data)")
        tokenizer: Any = tokenizer_of_json(self.card["tokenizer"])
        search = Search(BEGIN_ID, END_ID, self.beam_size, self.length_penalty, tuple(tokenizer.unwritten))
        texts = [""] * len(batch.source_ids)  # of an empty sentence, an empty translation
        rows = batch.source_mask.any(dim=1).nonzero().flatten()
        network: Any = self.network
        if len(rows):
            found = translate(network, batch.source_ids[rows], batch.source_mask[rows], search)
            for row, translations in zip(rows.tolist(), found, strict=True):
                texts[row] = tokenizer.decode(translations[0].token_ids)
        return texts

    def _evaluate(self, batch: PairBatch, stage: str) -> dict[str, Tensor]:
        logits = self(batch)
        losses = F.cross_entropy(logits.transpose(1, 2), batch.targets, ignore_index=IGNORED, reduction="none")
        loss = losses.sum() / batch.num_tokens
        self.log_loss(stage, loss, batch.num_tokens)
        return {"loss": loss, "token_losses": losses, "predicted": logits.argmax(dim=2)}
