"""Trained translators: what can be done with a run, and its figures' texts and tensors."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from firstlight.data.batches import EvaluationBatches
from firstlight.data.tables import count_cuts, look_up
from firstlight.decoding.beam import Search, Translation, translate
from firstlight.errors import UserError
from firstlight.files.rows import write_rows
from firstlight.kind.attention import Attention, AttentionMap, collect
from firstlight.kind.kind import Measurement
from firstlight.kind.run import SPLIT, TEXTS_AT_ONCE, PredictingRun, chunks, first_drawable
from firstlight.kind.tokens import DrawnTokens, drawn_words
from firstlight.lit.metadata import TRAIN_AGAIN, Checks, of_type
from firstlight.terminal_text import write_out
from firstlight.text.ragged import RaggedIds
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.sentence_tokenizers import BEGIN, BEGIN_ID, END, END_ID, SentenceTokenizer
from firstlight.translator.corpus import PairTokenizers
from firstlight.translator.network import EncoderDecoder
from firstlight.translator.options import EncoderDecoderConfig

if TYPE_CHECKING:
    from firstlight.translator.data import PairData

SENTENCES_AT_ONCE = 64
COLUMNS = ("source_column", "target_column")


class TranslatorRun(PredictingRun):
    """Trained translator, which translates sentences.

    It has the attributes of every run (`path`, `network`, `config`, `record`, `metrics`, `history`).
    `network(source_ids, token_ids)` accepts (batch, sources) and (batch, targets) ids and returns logits (batch,
    targets, vocabulary).

    Attributes:
        tokenizers: the tokenizers `tokenizers.source` and `tokenizers.target`.

    >>> run = firstlight.load("latest")
    >>> run.translate("A man rides a bike.")
    """

    kind = "translator"
    config_type = EncoderDecoderConfig
    metadata_checks: ClassVar[Checks] = {
        "source_tokenizer": of_type(str, NoneType),
        **{f"config.data.{name}": of_type(str) for name in COLUMNS},
    }
    tokenizer_types = (SentenceTokenizer,)
    attention_title = "Attention of each block during the translation"
    choice_note = "the sentence is from the validation split"

    network: EncoderDecoder

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        source = self.metadata.get("source_tokenizer")
        reader: Any = tokenizer_of_json(source) if source else self.tokenizer
        if not isinstance(reader, SentenceTokenizer):
            problem = f"{self.checkpoint}: a translator does not support a {type(reader).__name__}"
            raise UserError(f"{problem}; {TRAIN_AGAIN}")
        self.tokenizers = PairTokenizers(reader, self.tokenizer)

    def _facts(self) -> dict[str, str]:
        source, target = self.config["data"]["source_column"], self.config["data"]["target_column"]
        return {"languages": f"{source} to {target}, context length {self.network.context_length}"}

    def translate(self, text: str, *, beam_size: int = 4, length_penalty: float = 1.0) -> str:
        """Return the translation of one sentence. The translation of an empty sentence is empty.

        beam_size: the number of candidate translations of the beam search; 1 is greedy. length_penalty: the alpha of Wu
        et al. (2016); 0 prefers short translations. A sentence that is longer than the context is cut, with a warning.
        Raises TypeError if `text` is not a string.

        >>> run.translate("A man rides a bike.", beam_size=4)
        """
        if not isinstance(text, str):
            raise TypeError(f"translate accepts one sentence, not a {type(text).__name__}; use translate_many for many")
        (translation,) = self.translate_many([text], beam_size=beam_size, length_penalty=length_penalty)
        return translation

    def translate_many(self, texts: Iterable[str], *, beam_size: int = 4, length_penalty: float = 1.0) -> Iterator[str]:
        """Yield the translation of each sentence, in order. A few thousand sentences are read at a time.

        beam_size, length_penalty: as in `translate`. Sentences that are longer than the context are cut. A warning at
        the end reports their number.

        >>> list(run.translate_many(["A man rides a bike.", "A dog runs."]))
        """
        search, context_length = self.search(beam_size, length_penalty), self.network.context_length
        lengths: list[int] = []
        for chunk in chunks(texts, TEXTS_AT_ONCE):
            ids = self.tokenizers.source.encode_batch(chunk)
            lengths += ids.lengths.tolist()
            yield from self._translate(ids.cut(context_length), search)
        count_cuts(np.array(lengths), context_length)

    def write(self, text: str, *, beam_size: int = 4, length_penalty: float = 1.0) -> list[int]:
        """Return the token ids of the translation of one sentence, without begin and end marks.

        A sentence that is longer than the context is cut. Raises UserError for an empty sentence.

        >>> run.write("A man rides a bike.")
        """
        ids = self.read([text])
        if not ids.lengths[0]:
            raise UserError("the sentence is empty; pass a sentence with at least one word")
        return self._search(ids, np.array([0]), self.search(beam_size, length_penalty))[0][0].token_ids

    def search(self, beam_size: int, length_penalty: float) -> Search:
        """Return the settings of the beam search. Raises UserError for a value that is out of range.

        >>> run.search(beam_size=4, length_penalty=1.0).beam_size
        """
        try:
            return Search(BEGIN_ID, END_ID, beam_size, length_penalty, tuple(self.tokenizers.target.unwritten))
        except ValueError as error:
            raise UserError(str(error)) from error

    def read(self, texts: list[str]) -> RaggedIds:
        """Return the token ids of some sentences, cut to the context.

        >>> run.read(["A man rides a bike."])[0]
        """
        return self.tokenizers.source.encode_batch(texts).cut(self.network.context_length)

    def cross_maps(self, text: str, written: list[int] | None = None) -> list[AttentionMap]:
        """Return the attention of each decoder block to the source sentence, for each token of a translation.

        written: the token ids of the translation, as returned by `write`; by default the greedy translation. The last
        query is the end mark. A longer sentence is cut to the context. Raises UserError for an empty sentence.

        >>> run.cross_maps("A man rides a bike.")[-1].weights.shape
        """
        ids = self.write(text, beam_size=1) if written is None else written
        return [each for each in self._maps(text, ids) if "cross" in each.name]

    def _maps(self, text: str, written: list[int]) -> list[AttentionMap]:
        """Return the attention weights of all layers for a sentence and a translation of it."""
        source = torch.from_numpy(self.read([text])[0].astype(np.int64))[None]  # (1, sources)
        target = torch.tensor([[BEGIN_ID, *written]])
        sources = self.tokenizers.source.readable(source[0].tolist())
        targets = [BEGIN, *self.tokenizers.target.readable(written)]
        return collect(self.network, (source, target), sources, targets, [*targets[1:], END])

    def _translate(self, ids: RaggedIds, search: Search) -> list[str]:
        """Return the translations of some sentences, which are batched by length. Empty sentences give empty texts."""
        texts = [""] * len(ids)
        rows = np.flatnonzero(ids.lengths)
        for batch in EvaluationBatches(rows, SENTENCES_AT_ONCE, lengths=ids.lengths[rows]):
            for row, translations in zip(batch.tolist(), self._search(ids, batch, search), strict=True):
                texts[row] = self.tokenizers.target.decode(translations[0].token_ids)
        return texts

    def _search(self, ids: RaggedIds, rows: np.ndarray, search: Search) -> list[list[Translation]]:
        flat, starts, lengths = (torch.from_numpy(array) for array in (ids.ids, ids.offsets[:-1], ids.lengths))
        source_ids, mask = look_up(flat, starts, lengths, torch.from_numpy(rows), int(ids.lengths[rows].max()))
        try:
            return translate(self.network, source_ids, mask, search)
        except ValueError as error:
            raise UserError(f"{self.folder.path}: {error}; train it again") from error

    # --- predict ---

    columns = ("translation",)

    @property
    def text_columns(self) -> list[str]:
        return [self.config["data"]["source_column"]]

    def rows(self, texts: Iterable[str], *, beam_size: int = 4, length_penalty: float = 1.0) -> Iterator[list[Any]]:
        return ([text] for text in self.translate_many(texts, beam_size=beam_size, length_penalty=length_penalty))

    def show(self, texts: list[str], *, beam_size: int = 4, length_penalty: float = 1.0) -> None:
        for number, text in enumerate(texts, start=1):
            if not text.strip():
                raise UserError(f"--text: sentence {number} is empty; write a sentence or leave it out")
        write_out("\n".join(self.translate_many(texts, beam_size=beam_size, length_penalty=length_penalty)))

    # --- evaluate ---

    def measure(self, data: "PairData", split: str, *, beam_size: int = 4, length_penalty: float = 1.0) -> Measurement:
        from firstlight.callbacks.token_metrics import measure_tokens  # and Lightning
        from firstlight.translator.translations import score

        searches = {beams: self.search(beams, length_penalty) for beams in sorted({1, beam_size})}  # checks both
        rows = data.rows(split)
        if not len(rows):
            raise UserError(f"{data.source.where} has no {split} pairs; choose another --split")
        metrics = measure_tokens(self, data.evaluation_loader(rows))
        sources, references = data.texts(rows)
        columns = {"source": sources, "reference": references}
        for beams, search in searches.items():
            translations = self._translate(self.read(sources), search)
            scores, signatures = score(translations, references, beams)
            metrics |= scores
            columns["translation" if beams == 1 else f"translation_beam{beams}"] = translations
        size = {"rows": len(rows), "cut": data.num_cut(split), "beam_size": beam_size, "length_penalty": length_penalty}

        def write(folder: Path) -> None:
            table = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
            write_rows(folder / "translations.csv", table)

        return Measurement(metrics, size, (signatures,), write, "All translations")

    # --- explore ---

    def some_text(self, data: "PairData") -> str:
        rows = data.rows(SPLIT)
        return data.texts(rows[[first_drawable(data.encoded.source.lengths[rows])]])[0][0]

    def made_up_text(self) -> str:
        return "A man rides a bike."

    def cut_notes(self, text: str) -> list[str]:
        """Return a note if a sentence is longer than the context, to which it is cut.

        >>> run.cut_notes("A man rides a bike.")
        """
        limit = self.network.context_length
        is_cut = self.tokenizers.source.encode_batch([text]).lengths[0] > limit
        return [f"the text has more than {limit} tokens, the most that the run reads; the rest is cut"] * bool(is_cut)

    def _attention(self, text: str) -> Attention:
        return Attention(self._maps(text, self.write(text, beam_size=1)), self.cut_notes(text))

    def tokens(self) -> DrawnTokens:
        target = self.tokenizers.target
        words = target.words[: self.network.embedding.num_embeddings]
        return drawn_words(words, lambda token_id: target.readable([token_id])[0] or words[token_id])
