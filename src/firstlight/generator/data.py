"""Batches of text for generators: characters, subwords or words of a file, or the words of reviews."""

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from firstlight.data import windows
from firstlight.data.arguments import takes
from firstlight.data.batches import TableLoader
from firstlight.data.encoding import EncodedTexts, encode
from firstlight.data.options import ReviewTextOptions
from firstlight.data.sources import Source
from firstlight.data.store import SPLITS
from firstlight.data.table_data import TableData, TrainingWords
from firstlight.data.tables import StreamTable
from firstlight.errors import UserError
from firstlight.generator.corpus import Corpus, encode_text, find_text, prepared_text
from firstlight.generator.options import CharacterOptions, Preparation
from firstlight.text.statistics import as_texts
from firstlight.text.text_tokenizers import TextTokenizer, decode
from firstlight.text.tokenizers import PAD_ID, Text

log = logging.getLogger(__name__)


class StreamData(TableData):
    """The base class of data for generators: windows of tokens and the tokens that follow.

    Attributes:
        corpus: The encoded documents and their splits.
        tokenizer: The tokenizer that reads and writes the text.
        separator_id: The token between documents. None if the text is one document.
    """

    index_batch = windows.WindowBatch
    corpus: Corpus | EncodedTexts
    tokenizer: TextTokenizer
    separator_id: int | None = None
    stateful_window: int | None = None  # as in `CharacterOptions`
    table: StreamTable

    def open(self) -> None:
        """Set `corpus`, `tokenizer` and `separator_id`."""
        raise NotImplementedError

    def setup(self, stage: str = "fit") -> None:
        """Open the encoded text of all splits. For `fit` the splits must be long enough."""
        if hasattr(self, "table"):
            return
        self.open()
        if self.corpus.overlaps:
            log.warning("%s: %s", self.source.where, self.corpus.overlaps)
        self.table = StreamTable(self.corpus.ids.ids, self.separator_id)
        self._documents = {split: self.corpus.rows_of(split) for split in SPLITS}
        if self.separator_id is not None:
            self._documents["train"] = self._documents["train"][: self.options.max_train_rows]
        if stage == "fit":
            self._check_lengths()
        if self.stateful_window and self.share.get("world_size", 1) > 1:
            raise UserError(f"data.stateful_window={self.stateful_window} requires one process; set trainer.devices=1")

    def stream(self, split: str | None = None) -> windows.Stream:
        """Return the positions of the tokens of a split in the table. None returns those of all splits in order."""
        offsets = self.corpus.ids.offsets
        documents = np.arange(len(offsets) - 1) if split is None else self._documents[split]
        if not len(documents):
            return windows.Stream(range(0))
        if self.separator_id is not None:
            return self._joined(documents)
        first, end = int(offsets[documents[0]]), int(offsets[documents[-1] + 1])
        return windows.Stream(range(first, end if split is None else first + self._num_tokens(split)))

    def ids(self, stream: windows.Stream, most: int | None = None) -> NDArray[np.int64]:
        """Return the tokens of a stream, (n,). most: the largest n, or None."""
        return self.table.flat[torch.from_numpy(stream.head(most))].cpu().numpy()

    def has_split(self, split: str) -> bool:
        return self._num_tokens(split) > 1

    def metadata(self) -> dict[str, Any]:
        """Return the facts about the data that a checkpoint stores, in plain types."""
        return {"separator_id": self.separator_id}

    def describe(self) -> dict[str, Any]:
        """Return the facts about the data that metrics.json stores, in plain types."""
        return super().describe() | {"tokens": {split: self._num_tokens(split) for split in SPLITS}}

    def train_dataloader(self) -> TableLoader:
        """Return the training windows, in batches of the type `TokenBatch`.

        During `Trainer.fit` the batches start at the trainer's step, so a resumed training gets the same batches as an
        uninterrupted one.

        Example:
            >>> from firstlight.data import CharacterData
            >>> data = CharacterData(path="novel.txt", context_length=16, batch_size=4)
            >>> next(iter(data.train_dataloader())).targets.shape
            torch.Size([4, 16])
        """
        self.ensure_setup()
        options, documents = self.options, self._documents["train"]
        sizes = (options.context_length, options.batch_size, options.seed)
        batches: windows.RandomWindows | windows.ShuffledDocuments | windows.ContinuedWindows
        if self.separator_id is None:
            batches = windows.RandomWindows(self.stream("train"), *sizes, **self.share)
        else:
            num_tokens = self._num_tokens("train")
            batches = windows.ShuffledDocuments(documents, self._joined, num_tokens, *sizes, **self.share)
        if self.stateful_window:
            batches = windows.ContinuedWindows(batches.stream, self.stateful_window, options.batch_size)
        return self.training_loader(windows.Windows(), batches)

    def split_loader(self, split: str) -> TableLoader:
        """Return a loader of a split in windows that do not overlap. split: `train`, `validation` or `test`."""
        self.ensure_setup()
        return self.text_loader(self.stream(split))

    def text_loader(self, stream: windows.Stream) -> TableLoader:
        """Return a loader of all windows of a stream, which do not overlap."""
        length, size = self.options.context_length, self.options.evaluation_batch_size
        if self.stateful_window:  # with a state, the length of a window changes the speed and not the results
            return self.table_loader(windows.Windows(), windows.ContinuedText(stream, length * size, batch_size=1))
        return self.table_loader(windows.Windows(), windows.EveryWindow(stream, length, size, **self.share))

    def _joined(self, documents: NDArray[np.int64]) -> windows.Stream:
        """Return documents as one text. The separator is at the end of the table."""
        return windows.join(self.corpus.ids.offsets, documents, len(self.table.flat) - 1)

    def _num_tokens(self, split: str) -> int:
        documents, lengths = self._documents[split], self.corpus.ids.lengths
        separators = len(documents) + 1 if self.separator_id is not None and len(documents) else 0
        most = self.options.max_train_rows
        tokens = int(lengths[documents].sum()) + separators
        if split == "train" and self.separator_id is None and most is not None:
            return min(tokens, most * self.options.context_length + 1)
        return tokens

    def _check_lengths(self) -> None:
        """Raise UserError unless training has a window and validation has a token to predict."""
        options, key, needed = self.options, "context_length", self.options.context_length + 1
        if self.stateful_window:
            key, needed = "data.batch_size", self.stateful_window * options.batch_size + 1
        if (tokens := self._num_tokens("train")) < needed:
            value = options.batch_size if self.stateful_window else options.context_length
            problem = f"the training part has {tokens} tokens, but {key}={value} requires {needed}"
            raise UserError(f"{self.source.where}: {problem}; use more text or a smaller {key}")
        if not self.has_split("validation"):
            raise UserError(f"{self.source.where}: the text is too short for a validation part; use more text")


@takes(CharacterOptions)
class CharacterData(StreamData):
    """A data module of a text for a generator: windows of tokens and the tokens that follow.

    The tokens are characters, subwords from byte-pair encoding, or words with marks and line breaks. The text comes
    from a local file, the web, or a generated sample. It is encoded once and stored in `cache_dir`. The training
    batches are windows at random places, or consecutive windows of shuffled documents for `preparation="lines"`. Each
    batch is a `TokenBatch`.
    Validation and test use windows that do not overlap.

    Args:
        {options}

    Raises:
        ValueError: If an option has an impossible value. The message lists the choices.
        UserError: In `prepare_data` and `setup`, if the file cannot be read or is too short for `context_length`.

    Source: the posts on a Shakespeare generator in Julia (March 2024), for windows, and on names in PyTorch (November
    2023), for documents.

    Example:
        >>> from firstlight.data import CharacterData
        >>> data = CharacterData(path="novel.txt", context_length=16, batch_size=4)
        >>> batch = next(iter(data.train_dataloader()))
        >>> batch.token_ids.shape
        torch.Size([4, 16])
        >>> bool((batch.token_ids[:, 1:] == batch.targets[:, :-1]).all())
        True
    """

    options: CharacterOptions
    corpus: Corpus

    @cached_property
    def source(self) -> Source:
        """The source of the text, which is searched for once."""
        return find_text(self.options)

    def prepare_data(self) -> None:
        """Encode the text unless the cache has it, and log its statistics."""
        if hasattr(self, "corpus"):
            return
        self.corpus = encode_text(self.source, self.options, self.given_tokenizer)
        rows = (f"{name}: {value}" for name, value in as_texts(self.corpus.statistics).items())
        log.info("%s: %s", self.source.where, "; ".join(rows))

    def open(self) -> None:
        """Open the encoded text and set `corpus`, `tokenizer` and `separator_id`."""
        if not hasattr(self, "corpus"):
            self.corpus = encode_text(self.source, self.options, self.given_tokenizer)
        self.tokenizer, self.stateful_window = self.corpus.tokenizer, self.options.stateful_window
        if self.options.preparation is Preparation.lines:
            (self.separator_id,) = self.tokenizer.encode_batch([self.options.separator])[0].tolist()

    def complete_text(self) -> str:
        """Return the text of all splits as it is encoded. It is read from the source again."""
        return prepared_text(self.source, self.options)

    def texts_of(self, split: str) -> Sequence[Text]:
        if self.separator_id is None:
            return [self.complete_text()] if split == "train" else []
        documents = self.corpus.ids.select(self._documents[split])
        return [decode(self.tokenizer, ids.tolist()) for ids in np.split(documents.ids, documents.offsets[1:-1])]

    def describe(self) -> dict[str, Any]:
        """Return the facts about the data that metrics.json stores, in plain types."""
        return super().describe() | {"statistics": self.corpus.statistics}

    def known_documents(self) -> list[str]:
        """Return the training documents, which a generator may memorize, or [] if the text is one document."""
        return [] if self.separator_id is None else list(map(str, self.texts_of("train")))


@takes(ReviewTextOptions)
class ReviewTextData(StreamData):
    """A data module of separate texts, such as reviews, for a generator, from which a classifier can start.

    The texts are read and encoded as in `ReviewData`, so both have the same vocabulary. They are shuffled in every
    epoch and joined with the token [PAD] between them. The training batches are consecutive windows of the result, of
    the type `TokenBatch`. Labels are not read.

    Args:
        {options}

    Raises:
        ValueError: If an option has an impossible value. The message lists the choices.
        UserError: In `prepare_data` and `setup`, if a row cannot be read. The message names the file and the line.

    Example:
        >>> from firstlight.data import ReviewTextData
        >>> data = ReviewTextData(path="reviews.csv", context_length=16, batch_size=4)
        >>> next(iter(data.train_dataloader())).token_ids.shape
        torch.Size([4, 16])
    """

    options: ReviewTextOptions
    corpus: EncodedTexts
    separator_id = PAD_ID

    def prepare_data(self) -> None:
        """Encode the texts unless the cache has them."""
        encode(self.source, self.options, self.given_tokenizer)

    def texts_of(self, split: str) -> Sequence[Text]:
        return self.source.values(self.options.text_columns, self._documents[split])

    def training_words(self) -> dict[str, TrainingWords]:
        documents = self._documents["train"]
        return {"embedding": TrainingWords(self.tokenizer.words, self.corpus.ids.select(documents))}

    def open(self) -> None:
        """Open the encoded texts and set `corpus` and `tokenizer`."""
        self.corpus = encode(self.source, self.options, self.given_tokenizer)
        self.tokenizer = self.corpus.tokenizer
