"""BLEU and chrF of a translator in every evaluation, and some of its translations."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.trainer.states import TrainerFn

from firstlight.callbacks.evaluation import EvaluationCallback
from firstlight.callbacks.publish import data_of, publish_table
from firstlight.console import quoted_below
from firstlight.decoding.beam import Search, translate
from firstlight.errors import UserError
from firstlight.text.sentence_tokenizers import BEGIN_ID, END_ID
from firstlight.translator.data import PairData

log = logging.getLogger(__name__)


def score(translations: Sequence[str], references: Sequence[str], beam_size: int = 1) -> tuple[dict[str, float], str]:
    """Return BLEU and chrF of a corpus, from 0 to 100, and the signatures of their computation (Post 2018).

    They are cased BLEU with the tokenizer 13a (Papineni et al. 2002), and the F-score of character n-grams (Popović
    2015), with one reference for each translation. Their names are bleu and chrf for greedy translations, and
    bleu_beam4 and chrf_beam4 for four beams.
    """
    from sacrebleu.metrics import BLEU, CHRF

    assert len(translations) == len(references), f"{len(translations)} translations of {len(references)}"
    bleu, chrf, suffix = BLEU(), CHRF(), "" if beam_size == 1 else f"_beam{beam_size}"
    named = {f"bleu{suffix}": bleu, f"chrf{suffix}": chrf}
    scores = {name: each.corpus_score(list(translations), [list(references)]).score for name, each in named.items()}
    return scores, f"BLEU {bleu.get_signature()}, chrF {chrf.get_signature()}"


class Translations(EvaluationCallback):
    """Translate every validation and test split, and log BLEU and chrF.

    It logs `val/bleu` and `val/chrf`, or `test/bleu` and `test/chrf`, of greedy translations, as computed by sacrebleu.
    `Trainer.validate` and `Trainer.test` also use beam search and log, for 4 beams, `bleu_beam4` and `chrf_beam4`. Some
    translations are logged, written to `<step>.txt` or `test.txt`, and sent to the loggers that can show tables. It
    requires a `PairData`.

    Args:
        folder: The folder of the files.
        num_samples: The number of translations that are shown.
        beam_size: The number of beams in `Trainer.validate` and `Trainer.test`. None: only greedy translations.

    Raises:
        UserError: If a number is out of range, or if the trainer has no data module.

    Example:
        >>> import lightning as L
        >>> from firstlight.callbacks import Translations
        >>> from firstlight.data import PairData
        >>> from firstlight.lit import Translation
        >>> data = PairData(path="pairs.csv")
        >>> module = Translation.for_data(data, dim=8, num_heads=2)
        >>> trainer = L.Trainer(max_epochs=1, callbacks=[Translations("translated", num_samples=1)])
        >>> trainer.fit(module, datamodule=data)
        >>> {"val/bleu", "val/chrf"} <= set(trainer.callback_metrics)
        True
    """

    def __init__(self, folder: str, num_samples: int = 5, beam_size: int | None = 4) -> None:
        if num_samples < 0:
            raise UserError(f"callbacks.translations.num_samples={num_samples} must be at least 0")
        self.folder, self.num_samples, self.beam_size = Path(folder), num_samples, beam_size
        try:
            self.search(1 if beam_size is None else beam_size, ())
        except ValueError as error:
            raise UserError(f"callbacks.translations: {error}") from error
        self.written: dict[int, dict[int, str]] = {}  # beam size -> row -> translation

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        if stage != "predict":
            data_of(trainer, self)

    def search(self, beam_size: int, never: Sequence[int]) -> Search:
        """Return a search with `beam_size` beams. never: the ids that are never generated."""
        return Search(BEGIN_ID, END_ID, beam_size, never=tuple(never))

    def begin_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        self.written = {}

    def add_batch(self, trainer: Trainer, pl_module: Any, stage: str, outputs: Any, batch: Any) -> None:
        """Translate a batch with greedy decoding and, outside of `Trainer.fit`, also with beam search."""
        if trainer.sanity_checking:
            return
        tokenizer = data_of(trainer, self).tokenizer
        sizes = {1} if trainer.state.fn is TrainerFn.FITTING else {1, self.beam_size or 1}
        for size in sizes:
            search = self.search(size, tokenizer.unwritten)
            with torch.compiler.set_stance("force_eager"):  # a cache grows, so each step would be compiled again
                found = translate(pl_module.network, batch.source_ids, batch.source_mask, search)
            texts = (tokenizer.decode(translations[0].token_ids) for translations in found)
            self.written.setdefault(size, {}).update(zip(batch.rows.tolist(), texts, strict=True))

    def end_evaluation(self, trainer: Trainer, pl_module: Any, stage: str) -> None:
        """Score the translations of all processes. Those of the widest beam are shown afterwards."""
        data: PairData = data_of(trainer, self)
        for size, written in sorted(self.written.items()):
            together = gathered(written, trainer.world_size)
            rows = sorted(together)
            sources, references = data.texts(np.array(rows))
            translations = [together[row] for row in rows]
            scores, self.signatures = score(translations, references, size)
            for name, value in scores.items():
                pl_module.log(f"{stage}/{name}", value, prog_bar=name.startswith("bleu"), sync_dist=True)
            chosen = range(0, len(rows), max(len(rows) // max(self.num_samples, 1), 1))[: self.num_samples]
            self.shown = [
                {"source": sources[i], "reference": references[i], "translation": translations[i]} for i in chosen
            ]

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._show(trainer, "val")  # below the line of the validation

    def on_test_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._show(trainer, "test")

    def _show(self, trainer: Trainer, stage: str) -> None:
        """Show some translations and, outside of `Trainer.fit`, the signatures of the scores."""
        if not trainer.is_global_zero or not self.written:
            return
        is_fitting = trainer.state.fn is TrainerFn.FITTING
        if not is_fitting:
            log.info("%s", self.signatures, extra={"on_terminal": ""})
        texts = ["{source}\n  {reference}\n  {translation}".format(**row) for row in self.shown]
        if texts and (is_fitting or stage == "test"):
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / (f"{trainer.global_step:08d}.txt" if is_fitting else "test.txt")
            path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
        if texts and is_fitting:
            named = "\n".join(f"{name + ':':<13}{text}" for name, text in self.shown[0].items())
            log.info("Source, reference and translation:\n%s", texts[0], extra={"on_terminal": quoted_below(named)})
        publish_table(trainer, f"{stage}/translations", self.shown)


def gathered(written: dict[int, str], world_size: int) -> dict[int, str]:
    """Return the translations of all processes. Each process must call this function."""
    if world_size == 1:
        return written
    parts: list[Any] = [None] * world_size
    torch.distributed.all_gather_object(parts, written)
    return {row: text for part in parts for row, text in part.items()}
