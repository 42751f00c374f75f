"""Metrics of generators, such as bits per character, and the texts that one writes after each validation."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from numpy.typing import NDArray
from torch import Tensor

from firstlight.callbacks.checkpoint import is_validation_of_fit
from firstlight.callbacks.publish import data_if_any, data_of, publish_table
from firstlight.callbacks.token_metrics import BITS_PER_NAT, Ratio, TokenMetric
from firstlight.console import quoted_below
from firstlight.errors import UserError
from firstlight.generator.writing import Writer, Writing
from firstlight.lit.training import Training


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
        module = pl_module if isinstance(pl_module, Training) and pl_module.kind == "generator" else None
        if data is None and module is not None and module.metadata is not None:
            counts = module.tokenizer.characters_per_token()
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


log = logging.getLogger(__name__)


class TextSamples(Callback):
    """Write texts with the generator after each validation of a training.

    The texts are logged, written to `<step>.txt` and sent to the loggers that can show tables. Each text begins like a
    new line of the training text, or like a new document. Every validation uses the same seed, so that only the network
    changes. It requires a `CharacterData` or a `ReviewTextData`.

    Args:
        folder: The folder of the files.
        num_samples: The number of texts.
        num_tokens: The largest number of tokens in each text.
        temperature: The number that divides the logits. Below 1, likely tokens become more likely.
        seed: The seed of the draws.

    Raises:
        UserError: If a number is out of range, or if the trainer has no data module.

    Example:
        >>> from pathlib import Path
        >>> import lightning as L
        >>> from firstlight.callbacks import TextSamples
        >>> from firstlight.data import CharacterData
        >>> from firstlight.lit import Generation
        >>> data = CharacterData(path="novel.txt", context_length=16)
        >>> module = Generation.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[TextSamples("written", num_samples=2, num_tokens=5)])
        >>> trainer.fit(module, datamodule=data)
        >>> [path.suffix for path in Path("written").iterdir()]
        ['.txt']
    """

    def __init__(
        self, folder: str, num_samples: int = 4, num_tokens: int = 300, temperature: float = 0.8, seed: int = 1
    ) -> None:
        if num_samples < 1 or num_tokens < 1:
            raise UserError("num_samples and num_tokens must be at least 1; callbacks.text_samples=null turns them off")
        self.folder, self.num_samples = Path(folder), num_samples
        self.writing = Writing(temperature, tokens=num_tokens, seed=seed)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage == "fit":
            data_of(trainer, self)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero or not is_validation_of_fit(trainer):
            return
        data = data_of(trainer, self)
        samples = self.write(data, pl_module)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{trainer.global_step:08d}.txt"
        path.write_text("\n\n".join(samples) + "\n", encoding="utf-8")
        text = samples[0].strip("\n") if data.separator_id is None else "  ".join(filter(str.strip, samples))
        log.info("It writes:\n%s", text, extra={"on_terminal": quoted_below(text)})
        rows = [{"step": trainer.global_step, "sample": sample} for sample in samples]
        publish_table(trainer, "val/samples", rows)

    def write(self, data: Any, pl_module: Any) -> list[str]:
        """Return `num_samples` texts. A document ends where the network writes the separator."""
        writer = Writer(pl_module.network, data.tokenizer, data.separator_id)
        was_training = pl_module.training
        pl_module.eval()
        try:
            with torch.compiler.set_stance("force_eager"):  # a cache grows, so each step would be compiled again
                return writer.write(writer.read("", self.writing), self.num_samples, self.writing)
        finally:
            pl_module.train(was_training)
