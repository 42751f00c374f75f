"""Perplexities of baselines that count tokens, as reference lines for the curve of a training."""

import logging
import math
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from firstlight.callbacks.publish import data_of
from firstlight.generator import ngrams

log = logging.getLogger(__name__)


class ReferenceLines(Callback):
    """Log the perplexities of n-gram baselines, which have no network, at the start of a training.

    `reference/uniform_perplexity` is the size of the vocabulary. `reference/unigram_perplexity` and
    `reference/bigram_perplexity` are computed from counts in the training split, and measured on the validation split.
    It requires a `CharacterData` or a `ReviewTextData`.

    Args:
        most_tokens: The largest number of tokens of each split that are read.

    Raises:
        UserError: If the trainer has no data module.

    Example:
        >>> from pathlib import Path
        >>> import lightning as L
        >>> import torch
        >>> from firstlight.callbacks import ReferenceLines
        >>> from firstlight.data import CharacterData
        >>> from firstlight.lit import Generation
        >>> data = CharacterData(path="novel.txt", context_length=16)
        >>> module = Generation.for_data(data, dim=8, num_heads=2)
        >>> logger = L.pytorch.loggers.CSVLogger("counted")
        >>> trainer = L.Trainer(max_steps=1, callbacks=[ReferenceLines()], logger=logger)
        >>> trainer.fit(module, datamodule=data)
        >>> names = (Path(logger.log_dir) / "metrics.csv").read_text().splitlines()[0]
        >>> "reference/bigram_perplexity" in names
        True
    """

    def __init__(self, most_tokens: int = 5_000_000) -> None:
        self.most_tokens = most_tokens

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero or trainer.global_step:  # a resumed run has already logged them
            return
        data: Any = data_of(trainer, self)
        training, validation = (data.ids(data.stream(split), self.most_tokens) for split in ("train", "validation"))
        unigram, bigram = ngrams.losses(training, validation, data.tokenizer.vocab_size, highest_order=2)
        lines = {
            "reference/uniform_perplexity": float(data.tokenizer.vocab_size),
            "reference/unigram_perplexity": math.exp(unigram),
            "reference/bigram_perplexity": math.exp(bigram),
        }
        log.info("%s", "  ".join(f"{name} {value:.2f}" for name, value in lines.items()))
        for logger in trainer.loggers:
            logger.log_metrics(lines, step=0)
