"""A trained translator as an object: without its data set, and without Lightning."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from firstlight.data.batches import EvaluationBatches
from firstlight.data.pairs import look_up
from firstlight.data.sentence_pairs import PairTokenizers
from firstlight.decoding.beam import Search, Translation, translate
from firstlight.errors import UserError
from firstlight.networks.encoder_decoder import EncoderDecoder
from firstlight.networks.weights import attention_weights
from firstlight.runs.chunks import TEXTS_AT_ONCE, chunks
from firstlight.runs.folder import RunFolder
from firstlight.text.ragged import RaggedIds
from firstlight.text.sentence_tokenizers import BEGIN_ID, END, END_ID

SENTENCES_AT_ONCE = 64


class CrossAttention(NamedTuple):
    """What the decoder looked at while it wrote.

    weights: (layers, heads, written, sources), each row summing to 1; source, written: the tokens, for people; the last
    one written is the end.
    """

    weights: Tensor
    source: list[str]
    written: list[str]


@dataclass(frozen=True, repr=False)
class LoadedTranslator:
    """A trained translator with its vocabularies."""

    folder: RunFolder
    network: EncoderDecoder
    config: dict[str, Any]
    data_source: str
    data_fingerprint: str
    tokenizers: PairTokenizers

    def __repr__(self) -> str:
        return f"LoadedTranslator({str(self.folder.path)!r})"

    def translate(self, text: str, *, beam_size: int = 4, length_penalty: float = 1.0) -> str:
        """Translate one sentence; of nothing, nothing. Raises UserError for one that exceeds the context."""
        if not isinstance(text, str):
            raise TypeError(f"translate takes one sentence, not a {type(text).__name__}; translate_many takes many")
        return next(self.translate_many([text], beam_size=beam_size, length_penalty=length_penalty))

    def translate_many(
        self,
        texts: Iterable[str],
        *,
        beam_size: int = 4,
        length_penalty: float = 1.0,
        place: Callable[[int], str] = "sentence {}".format,
    ) -> Iterator[str]:
        """Translate many sentences, in their order, a few thousand at a time.

        place: what an error calls sentence 1, 2, … Raises UserError for one that exceeds the context.
        """
        search, first = self.search(beam_size, length_penalty), 1
        for chunk in chunks(texts, TEXTS_AT_ONCE):
            yield from self._translate(self.read(chunk, [place(first + i) for i in range(len(chunk))]), search)
            first += len(chunk)

    @property
    def length_penalty(self) -> float:
        """That of the run's own evaluations."""
        callbacks = self.config.get("callbacks") or {}
        return float((callbacks.get("translations") or {}).get("length_penalty", 1.0))

    def write(self, text: str, *, beam_size: int = 4, length_penalty: float = 1.0) -> list[int]:
        """The ids of the translation of one sentence, without marks. Raises UserError for one that cannot be read."""
        ids = self.read([text], ["the sentence"])
        if not ids.lengths[0]:
            raise UserError("the sentence is empty; write one")
        return self._search(ids, np.array([0]), self.search(beam_size, length_penalty))[0][0].token_ids

    def search(self, beam_size: int, length_penalty: float) -> Search:
        """How a translation is looked for. Raises UserError."""
        try:
            return Search(BEGIN_ID, END_ID, beam_size, length_penalty, tuple(self.tokenizers.target.unwritten))
        except ValueError as error:
            raise UserError(str(error)) from error

    def read(self, texts: list[str], places: list[str]) -> RaggedIds:
        """The ids of some sentences. Raises UserError, by its place, for one that is too long."""
        ids = self.tokenizers.source.encode_batch(texts)
        is_too_long = ids.lengths > self.network.context_length
        if is_too_long.any():
            row = int(is_too_long.argmax())
            raise UserError(
                f"{places[row]} has {ids.lengths[row]} tokens, and the run was trained with "
                f"context_length={self.network.context_length}; cut it in two"
            )
        return ids

    def cross_attention(self, text: str, written: list[int] | None = None) -> CrossAttention:
        """What the decoder looks at for each token of a translation: the ids that `write` gives, greedy by default."""
        written = self.write(text, beam_size=1) if written is None else written
        source = torch.from_numpy(self.read([text], ["the sentence"])[0].astype(np.int64))[None]  # (1, sources)
        with torch.inference_mode(), attention_weights(self.network) as weights:
            self.network(source, torch.tensor([[BEGIN_ID, *written]]))
        layers = [weight[0] for name, weight in weights.items() if ".cross_attention." in name]
        return CrossAttention(
            torch.stack(layers),
            self.tokenizers.source.readable(source[0].tolist()),
            [*self.tokenizers.target.readable(written), END],
        )

    def _translate(self, ids: RaggedIds, search: Search) -> list[str]:
        """The translations of some sentences, those of like length together; of an empty one, nothing."""
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
