"""What counting alone achieves, logged before the training: the lines that a curve has to fall below."""

import logging
import math
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from firstlight.callbacks.publish import data_of
from firstlight.text import ngrams

log = logging.getLogger(__name__)


class ReferenceLines(Callback):
    """Logs `reference/uniform_perplexity`, which is the size of the vocabulary, `unigram` and `bigram`.

    The last two are counted on the training split, at most `most_tokens` of it, and measured on the validation split.
    """

    def __init__(self, most_tokens: int = 5_000_000) -> None:
        self.most_tokens = most_tokens

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if not trainer.is_global_zero or trainer.global_step:  # a resumed run has them already
            return
        data: Any = data_of(trainer)
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
