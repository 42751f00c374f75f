"""Texts to be continued as batches: characters or subwords of a file, or the words of reviews."""

import logging
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset

from firstlight.data.batches import PassLoader, ResumableLoader, TableLoader
from firstlight.data.corpus import Corpus, encode_text
from firstlight.data.encoding import SPLITS, EncodedTexts, encode
from firstlight.data.options import CharacterOptions, Preparation, ReviewOptions, Split, options_from, takes
from firstlight.data.sources import Source, find_source
from firstlight.data.table_data import TableData, TrainingWords
from firstlight.data.tables import PromptBatch, StreamTable
from firstlight.data.text_sources import TextSource, find_text
from firstlight.data.windows import (
    EveryWindow,
    RandomWindows,
    ShuffledDocuments,
    Stream,
    WindowBatch,
    Windows,
    join,
)
from firstlight.errors import UserError
from firstlight.text.text_tokenizers import TextTokenizer, WordText, decode, first_id
from firstlight.text.tokenizers import PAD_ID

log = logging.getLogger(__name__)


class Prompts(Dataset[PromptBatch]):
    """Each prompt as a batch of its own."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def __getitem__(self, index: int) -> PromptBatch:
        return PromptBatch([self.texts[index]])


class StreamData(TableData):
    """Windows of a text and the tokens that follow: either a stream for each split, or documents in any order.

    corpus: the documents and their splits; tokenizer: what reads and writes them; separator_id: what stands between
    documents, None for a stream.
    """

    index_batch = WindowBatch
    corpus: Corpus | EncodedTexts
    tokenizer: TextTokenizer
    separator_id: int | None = None
    reader: Any = None  # the tokenizer of a trained network that is to read other data
    table: StreamTable

    def open(self) -> None:
        """Set corpus, tokenizer and separator_id."""
        raise NotImplementedError

    def setup(self, stage: str = "fit") -> None:
        """Open the encoded text, all splits in one table."""
        if hasattr(self, "table"):
            return
        self.open()
        self.table = StreamTable(self.corpus.ids.ids, self.separator_id)
        self._documents = {split: self._used_documents(split) for split in SPLITS}
        if stage == "fit":
            self._check_lengths()

    def stream(self, split: str | None = None) -> Stream:
        """Where the tokens of a split, or of all splits one after the other, stand in the table."""
        offsets = self.corpus.ids.offsets
        documents = np.arange(len(offsets) - 1) if split is None else self._documents[split]
        if not len(documents):
            return Stream(range(0))
        if self.separator_id is not None:
            return Stream(join(offsets, documents, self._separator))
        first, end = int(offsets[documents[0]]), int(offsets[documents[-1] + 1])
        return Stream(range(first, end if split is None else first + self._num_tokens(split)))

    def ids(self, stream: Stream, most: int | None = None) -> NDArray[np.int64]:
        """The tokens of a stream, or the first of them: (n,)."""
        return self.table.flat[torch.from_numpy(stream.head(most))].cpu().numpy()

    @property
    def first_id(self) -> int:
        """What a text without a beginning begins after."""
        return first_id(self.tokenizer, self.separator_id)

    def has_split(self, split: str) -> bool:
        return self._num_tokens(split) > 1

    def card(self) -> dict[str, Any]:
        """What a checkpoint says of the data, for those who read it without."""
        return {"separator_id": self.separator_id}

    def describe(self) -> dict[str, Any]:
        """What metrics.json says about the data."""
        return {
            "source": self.source.kind.value,
            "path": self.source.where,
            "fingerprint": self.source.fingerprint,
            "tokens": {split: self._num_tokens(split) for split in SPLITS},
            "vocab_size": self.tokenizer.vocab_size,
        }

    def train_dataloader(self) -> ResumableLoader | PassLoader:
        """Windows drawn from the seed and the step, or consecutive ones of shuffled documents."""
        options, documents = self.options, self._documents["train"]
        offsets = self.corpus.ids.offsets
        sizes = (options.context_length, options.batch_size, options.seed)
        batches: RandomWindows | ShuffledDocuments
        if self.separator_id is None:
            batches = RandomWindows(int(offsets[documents[0]]), self._num_tokens("train"), *sizes, **self.share)
        else:
            batches = ShuffledDocuments(offsets, documents, self._separator, *sizes, **self.share)
        return self.training_loader(Windows(), batches)

    def val_dataloader(self) -> TableLoader:
        """The whole validation split, in windows that do not overlap."""
        return self.evaluation_loader("validation")

    def test_dataloader(self) -> TableLoader:
        """The whole test split, in windows that do not overlap."""
        return self.evaluation_loader("test")

    def predict_dataloader(self) -> TableLoader:
        """One empty prompt: a text from its beginning."""
        return self.text_dataloader([""])

    def text_dataloader(self, texts: Sequence[str]) -> TableLoader:
        """Prompts of your own, in their order, as `Trainer.predict(module, dataloaders=…)` takes them."""
        return TableLoader(Prompts(texts), range(len(texts)))

    def evaluation_loader(self, split: str) -> TableLoader:
        """A whole split, in windows that do not overlap."""
        options = self.options
        batches = EveryWindow(self.stream(split), options.context_length, options.evaluation_batch_size, **self.share)
        return self.table_loader(Windows(), batches)

    @property
    def _separator(self) -> int:
        """Where the table has its separator."""
        return len(self.table.flat) - 1

    def _num_tokens(self, split: str) -> int:
        documents, lengths = self._documents[split], self.corpus.ids.lengths
        separators = len(documents) + 1 if self.separator_id is not None and len(documents) else 0
        most = self.options.max_train_rows
        tokens = int(lengths[documents].sum()) + separators
        if split == "train" and self.separator_id is None and most is not None:
            return min(tokens, most * self.options.context_length + 1)
        return tokens

    def _used_documents(self, split: str) -> NDArray[np.int64]:
        documents = self.corpus.rows_of(split)
        if split == "train" and self.separator_id is not None:
            return documents[: self.options.max_train_rows]
        return documents

    def _check_lengths(self) -> None:
        """Raise UserError unless there is a window to train on and a token to predict in validation."""
        needed = self.options.context_length + 1
        if (tokens := self._num_tokens("train")) < needed:
            raise UserError(
                f"{self.source.where}: its training part has {tokens} tokens, and context_length="
                f"{self.options.context_length} needs {needed}; take more text, or a smaller context_length"
            )
        if not self.has_split("validation"):
            by_passages = isinstance(self.options, CharacterOptions) and self.options.split is Split.passages
            remedy = "take more, or data.split=sequential" if by_passages else "take more"
            raise UserError(f"{self.source.where}: too little text for a validation part; {remedy}")


class CharacterData(StreamData):
    """A text from a local file, the web, or the generated sample."""

    options: CharacterOptions
    corpus: Corpus

    @takes(CharacterOptions)
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options_from(CharacterOptions, options, "CharacterData")

    @cached_property
    def source(self) -> TextSource:
        """Where the text comes from, looked for once."""
        return find_text(self.options)

    def prepare_data(self) -> None:
        """Encode what is not in the cache yet, and say what was counted; in one process for all."""
        if hasattr(self, "corpus"):
            return
        self.corpus = encode_text(self.source, self.options, self.reader)
        counts = (f"{count:,} {name.replace('_', ' ')}" for name, count in self.corpus.statistics.items())
        log.info("%s: %s", self.source.where, ", ".join(counts))

    def open(self) -> None:
        """Open the encoded text."""
        if not hasattr(self, "corpus"):
            self.corpus = encode_text(self.source, self.options, self.reader)
        self.tokenizer = self.corpus.tokenizer
        if self.options.preparation is Preparation.lines:
            (self.separator_id,) = self.tokenizer.encode_batch([self.options.separator])[0].tolist()

    def describe(self) -> dict[str, Any]:
        """What metrics.json says about the data."""
        return super().describe() | {"statistics": self.corpus.statistics}

    def known_documents(self) -> list[str]:
        """The training documents, where the text is made of many: what a generator may have learned by heart."""
        if self.separator_id is None:
            return []
        documents = (self.corpus.ids[document].tolist() for document in self._documents["train"].tolist())
        return [decode(self.tokenizer, ids) for ids in documents]


class ReviewTextData(StreamData):
    """The words of reviews, which are shuffled and joined by [PAD]; encoded as for a classifier."""

    options: ReviewOptions
    corpus: EncodedTexts
    separator_id = PAD_ID

    @takes(ReviewOptions)
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options_from(ReviewOptions, options, "ReviewTextData")

    @cached_property
    def source(self) -> Source:
        """Where the reviews come from, looked for once."""
        return find_source(self.options, sample=self.options.sample.value)

    def prepare_data(self) -> None:
        """Encode what is not in the cache yet."""
        encode(self.source, self.options, self.reader and self.reader.tokenizer)

    def training_words(self) -> dict[str, TrainingWords]:
        documents = self._documents["train"]
        return {"embedding": TrainingWords(self.tokenizer.words, self.corpus.ids.select(documents))}

    def open(self) -> None:
        """Open the encoded reviews."""
        self.corpus = encode(self.source, self.options, self.reader and self.reader.tokenizer)
        self.tokenizer = WordText(self.corpus.tokenizer)
