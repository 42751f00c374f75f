"""Metrics of generators: bits per character, the loss of each token, and the share of unknown tokens."""

from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer
from numpy.typing import NDArray
from torch import Tensor

from firstlight.callbacks.publish import data_if_any, data_of
from firstlight.callbacks.token_metrics import BITS_PER_NAT, Ratio, TokenMetric
from firstlight.generator.module import Generation
from firstlight.text.text_tokenizers import writer_of


class BitsPerCharacter(TokenMetric):
    """Log `val/bits_per_character` and `test/bits_per_character`, which compare generators with different tokenizers.

    Nothing is logged if the number of characters of a token is not fixed, such as for [UNK] in a vocabulary of words.
    It works with a data module, and with plain loaders if `Generation.for_data` made the module.

    Raises:
        UserError: If the trainer has no data module and the module has no tokenizer.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import BitsPerCharacter
        >>> from firstlight.data import CharacterData
        >>> from firstlight.lit import Generation
        >>> data = CharacterData(path="novel.txt", context_length=16)
        >>> module = Generation.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[BitsPerCharacter()])
        >>> trainer.fit(module, datamodule=data)
        >>> trainer.callback_metrics["val/bits_per_character"].shape
        torch.Size([])
    """

    counts: Tensor | None = None  # the number of characters of each token: (vocab_size,)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        super().setup(trainer, pl_module, stage)
        data = data_if_any(trainer)
        if data is None and isinstance(pl_module, Generation) and pl_module.metadata is not None:
            counts = writer_of(pl_module.tokenizer).characters_per_token()
        else:
            counts = data_of(trainer, self).tokenizer.characters_per_token()
        self.counts = None if counts is None else torch.from_numpy(counts).to(trainer.strategy.root_device)

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:
        if self.counts is not None:
            ratio.update(outputs["token_losses"].sum(), self.counts[outputs["targets"]].sum())

    def named(self, value: Tensor) -> dict[str, Tensor]:
        return {"bits_per_character": value * BITS_PER_NAT}


class EachLoss(TokenMetric):
    """Store the loss of each target in the order of the text. It has no value as a metric."""

    def __init__(self) -> None:
        self.batches: list[Tensor] = []

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:
        self.batches.append(outputs["token_losses"].flatten().float())

    def all(self) -> NDArray[np.float32]:
        """Return all losses in the order of the text, (targets,)."""
        return torch.cat(self.batches).numpy()


class UnknownShare(TokenMetric):
    """Share of the targets that are not in the vocabulary."""

    def __init__(self, unknown_id: int) -> None:
        self.unknown_id = unknown_id

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:
        ratio.update((batch.targets == self.unknown_id).sum(), batch.num_tokens)

    def named(self, value: Tensor) -> dict[str, Tensor]:
        return {"unknown_share": value}
