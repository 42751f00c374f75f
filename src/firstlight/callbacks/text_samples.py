"""What a generator writes after each validation."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from firstlight.callbacks.publish import data_of, publish_table
from firstlight.decoding.generate import generate
from firstlight.decoding.sampling import Sampling
from firstlight.errors import UserError
from firstlight.text.text_tokenizers import decode

log = logging.getLogger(__name__)


class TextSamples(Callback):
    """Writes some samples after each validation of a training: to the log, to `<folder>/<step>.txt`, to the loggers.

    Every sample begins where a new line, or a new document, does. The same seed at every validation, so that what
    changes is the network.
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
            raise UserError("num_samples and num_tokens must be at least 1; callbacks.text_samples=null writes none")
        self.folder, self.num_samples, self.num_tokens, self.seed = Path(folder), num_samples, num_tokens, seed
        self.sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero or trainer.state.fn is not TrainerFn.FITTING or trainer.sanity_checking:
            return
        samples = self.write(data_of(trainer), pl_module)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{trainer.global_step:08d}.txt"
        path.write_text("\n\n".join(samples) + "\n", encoding="utf-8")
        is_documents = data_of(trainer).separator_id is not None
        log.info("It writes:\n%s", "  ".join(samples) if is_documents else samples[0].strip("\n"))
        rows = [{"step": trainer.global_step, "sample": sample} for sample in samples]
        publish_table(trainer, "val/samples", rows)

    def write(self, data: Any, pl_module: Any) -> list[str]:
        """Some texts; documents end where the network ends them."""
        tokenizer, separator = data.tokenizer, data.separator_id
        sampling = replace(self.sampling, never=tokenizer.unwritten)
        random = torch.Generator(pl_module.device).manual_seed(self.seed)
        prompt = torch.full((self.num_samples, 1), data.first_id, device=pl_module.device)
        was_training = pl_module.training
        pl_module.eval()
        try:
            steps = generate(pl_module.network, prompt, self.num_tokens, lambda logits: sampling.choose(logits, random))
            with torch.compiler.set_stance("force_eager"):  # a cache grows: each step would be compiled anew
                rows = torch.stack(list(steps), dim=1).tolist()
        finally:
            pl_module.train(was_training)
        ends = (row.index(separator) if separator in row else len(row) for row in rows)
        return [decode(tokenizer, row[:end]) for row, end in zip(rows, ends, strict=True)]
