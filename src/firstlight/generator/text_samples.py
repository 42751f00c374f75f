"""Texts that a generator writes after each validation."""

import logging
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from firstlight.callbacks.publish import data_of, publish_table
from firstlight.console import quoted_below
from firstlight.errors import UserError
from firstlight.generator.writing import Writer, Writing

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
        top_k: Draw only from the k most likely tokens.
        top_p: Draw only from the most likely tokens that together reach this probability (Holtzman et al. 2020).
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
        self,
        folder: str,
        num_samples: int = 4,
        num_tokens: int = 300,
        temperature: float = 0.8,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 1,
    ) -> None:
        if num_samples < 1 or num_tokens < 1:
            raise UserError("num_samples and num_tokens must be at least 1; callbacks.text_samples=null turns them off")
        self.folder, self.num_samples = Path(folder), num_samples
        self.writing = Writing(temperature, top_k, top_p, tokens=num_tokens, seed=seed)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage == "fit":
            data_of(trainer, self)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero or trainer.state.fn is not TrainerFn.FITTING or trainer.sanity_checking:
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
