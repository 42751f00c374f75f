"""Training a generator: the cross entropy of the next token at every position."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from firstlight.data.tables import PromptBatch, TokenBatch
from firstlight.lit.optimizers import OptimizerFactory
from firstlight.lit.schedules import ScheduleFactory
from firstlight.lit.training import Training
from firstlight.lit.writing import Writer
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.text_tokenizers import writer_of


class Generation(Training):
    """A generator and how it learns. The batch is a `TokenBatch`, or a pair of token ids and targets."""

    kind = "generator"

    def __init__(
        self,
        network: nn.Module,
        optimizer: OptimizerFactory | None = None,
        schedule: ScheduleFactory | None = None,
        *,
        writing: dict[str, Any] | None = None,
    ) -> None:
        """writing: how `Trainer.predict` continues a prompt, as the options of `firstlight.load(run).generate`."""
        super().__init__(network, optimizer, schedule)
        self.writing = {} if writing is None else dict(writing)

    def forward(self, token_ids: Tensor) -> Tensor:
        """Logits (batch, length, vocab_size) of token_ids (batch, length)."""
        return self.network(token_ids)

    def training_step(self, batch: TokenBatch) -> dict[str, Tensor]:
        """The loss, in nats for each token, and the logits (batch, length, vocab_size) of one batch."""
        batch = token_batch(batch)
        logits = self(batch.token_ids)
        return {"loss": F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten()), "logits": logits.detach()}

    def validation_step(self, batch: TokenBatch) -> dict[str, Tensor]:
        """The mean loss, the loss of every token (batch, length) and what was predicted for it."""
        return self._evaluate(batch, "val")

    def test_step(self, batch: TokenBatch) -> dict[str, Tensor]:
        """The mean loss, the loss of every token (batch, length) and what was predicted for it."""
        return self._evaluate(batch, "test")

    def predict_step(self, batch: PromptBatch) -> list[str]:
        """Each prompt and what the network writes after it, as `firstlight.load(run).generate` gives it."""
        writer = self.writer()
        return [writer.generate_many(text, 1, **self.writing)[0] for text in batch.texts]

    def writer(self) -> Writer:
        """The network with what it reads and writes text with.

        Raises ValueError for a module that knows no tokenizer.
        """
        if self.card is None:
            raise ValueError("the module knows no tokenizer; build it by Generation.for_data(data)")
        tokenizer: Any = tokenizer_of_json(self.card["tokenizer"])
        is_of_plays = self.card["config"]["data"].get("preparation") == "plays"
        network: Any = self.network
        return Writer(network, writer_of(tokenizer), self.card["separator_id"], is_of_plays)

    def _evaluate(self, batch: TokenBatch, stage: str) -> dict[str, Tensor]:
        batch = token_batch(batch)
        logits = self(batch.token_ids)
        losses = F.cross_entropy(logits.transpose(1, 2), batch.targets, reduction="none")  # (batch, length)
        loss = losses.mean()
        self.log_loss(stage, loss, batch.num_tokens)
        return {"loss": loss, "token_losses": losses, "predicted": logits.argmax(dim=2)}


def token_batch(batch: Any) -> TokenBatch:
    """A batch as a `TokenBatch`, also given as a pair: token ids and the token after each, both (batch, length).

    Raises TypeError for anything else.
    """
    if isinstance(batch, TokenBatch):
        return batch
    if isinstance(batch, tuple | list) and len(batch) == 2 and all(isinstance(part, Tensor) for part in batch):
        return TokenBatch(*batch)
    raise TypeError(
        f"a batch must be a TokenBatch or a pair of tensors, token ids and targets, not {type(batch).__name__}"
    )
