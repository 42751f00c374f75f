"""Trained classifiers: what can be done with a run, and its figures' texts and tensors."""

from collections.abc import Iterable, Iterator
from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.choices import listed, member
from firstlight.classifier.options import ClassifierConfig
from firstlight.classifier.prediction import Prediction, logits_of, target_encoding_of
from firstlight.data.batches import EvaluationBatches, Rows
from firstlight.data.options import Truncation
from firstlight.data.row_options import ChoiceRows, LongTexts, by_row, longest
from firstlight.data.tables import ReviewBatch, TokenTable, count_cuts, fitted, kept_places
from firstlight.errors import UserError
from firstlight.kind.attention import Attention, collect
from firstlight.kind.kind import Measurement
from firstlight.kind.run import SPLIT, TEXTS_AT_ONCE, PredictingRun, chunks, first_drawable
from firstlight.lazy import later
from firstlight.lit.losses import classification_loss, probabilities
from firstlight.lit.metadata import TRAIN_AGAIN, Checks, are_names, one_of, unless_missing
from firstlight.terminal_text import note, write_out
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import CONTINUATION, UNKNOWN_ID, Text, Tokenizer, joined

if TYPE_CHECKING:
    from firstlight.classifier.data import ReviewData

ROWS_AT_ONCE = 256
MOST_SHOWN = 5  # classes in a line of predict
NO_WORD = "the text has no word that the network can read; pass a text with at least one word"


class ReadWords(NamedTuple):
    """The words of a text as the network reads them, cut as in training.

    token_ids: (1, tokens). word_of_token: (tokens,) the index of the word of each token. notes: notes for the user.
    """

    token_ids: Tensor
    word_of_token: NDArray[np.int64]
    notes: list[str]


class ClassifierRun(PredictingRun):
    """Trained classifier, which predicts the class of a text.

    It has the attributes of every run (`path`, `network`, `config`, `record`, `metrics`, `history`).
    `network(token_ids, padding_mask)` accepts two (batch, length) tensors and returns logits (batch, outputs).
    `network(*run.inputs(token_ids))` works for every classifier, including those that read features of the tokens.

    Attributes:
        tokenizer: the tokenizer; `tokenizer.words` is the vocabulary.
        class_names: the names of the classes, in the order of the probabilities.
        label_names: the labels of the training data, as text.
        target_encoding: the module that computes features of tokens, for a run with `data.target_encoding=true`;
            otherwise None.
        long_texts: how texts longer than the context are read, as in training: cut, or in windows.

    >>> run = firstlight.load("latest")
    >>> run.predict("It broke after a week.").label
    """

    kind = "classifier"
    config_type = ClassifierConfig
    metadata_checks: ClassVar[Checks] = {
        "class_names": are_names,
        "label_names": are_names,
        "config.data.truncation": one_of(Truncation.__members__),
        "config.data.long_texts": unless_missing(one_of(LongTexts.__members__)),
        "config.data.choice_columns": unless_missing(lambda each: each is None or (are_names(each) and len(each) > 1)),
    }
    metric_callbacks = later("firstlight.classifier.metrics.Accuracy")

    tokenizer: Tokenizer

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.class_names: list[str] = self.metadata["class_names"]
        self.label_names: list[str] = self.metadata["label_names"]
        self.target_encoding = target_encoding_of(self.metadata, self.tokenizer.vocab_size, self.checkpoint)
        self.long_texts = LongTexts[self.config["data"].get("long_texts", "cut")]
        num_choices = self.choices.num_choices if self.choices is not None else 0
        if bool(self.metadata.get("choices")) != bool(num_choices) or num_choices not in (0, len(self.class_names)):
            problem = f"{self.checkpoint}: data.choice_columns does not fit the network of the metadata"
            raise UserError(f"{problem}; {TRAIN_AGAIN}")

    def _facts(self) -> dict[str, str]:
        return {"classes": listed(self.class_names)}

    def predict(self, text: Text | list[Text], long_texts: LongTexts | str | None = None) -> Any:
        """Return the predicted class of one text, and the probability of every class; for a list of texts, a list.

        A run of pairs accepts a tuple of two texts, or one string with ||| between them. A run of multiple choice
        accepts the same with a context and its answers; the label is the column of an answer. Raises TypeError for
        anything else.

        long_texts: "cut" cuts texts that are longer than the context, as in `data.truncation`, with a warning;
        "windows" averages the outputs for windows of the whole text; None does what the training did.

        >>> prediction = run.predict("It broke after a week.")
        >>> prediction.label, prediction.probabilities[prediction.label]
        """
        if isinstance(text, list):
            return list(self.predict_many(text, long_texts))
        is_pair = self.tokenizer.reads_pairs and isinstance(text, tuple)  # or a context with answers
        if not isinstance(text, str) and not is_pair:
            raise TypeError(f"predict accepts one text or a list of texts, not a {type(text).__name__}")
        (prediction,) = self.predict_many([text], long_texts)
        return prediction

    def predict_many(self, texts: Iterable[Text], long_texts: LongTexts | str | None = None) -> Iterator[Prediction]:
        """Yield the prediction for each text or pair, in order. A few thousand texts are read at a time.

        A warning at the end reports the number of texts that were cut. long_texts: as in `predict`.

        >>> [prediction.label for prediction in run.predict_many(["It works.", "It broke."])]
        """
        lengths: list[int] = []
        reading = self.reading(long_texts)
        for chunk in chunks(texts, TEXTS_AT_ONCE):
            ids = self.encode(chunk)
            lengths += longest(by_row(ids.lengths, self.choices)).tolist()
            for shares in probabilities(self.logits(ids, reading)).tolist():
                named = dict(zip(self.class_names, shares, strict=True))
                yield Prediction(max(named, key=named.__getitem__), named)
        if reading is LongTexts.cut:
            count_cuts(np.array(lengths), self.config["context_length"])

    def reading(self, long_texts: LongTexts | str | None) -> LongTexts:
        """Return how texts longer than the context are read. None is that of the training. Raises UserError for pairs.

        >>> run.reading(None).name
        """
        chosen = self.long_texts if long_texts is None else member(LongTexts, long_texts, "long_texts")
        if chosen is LongTexts.windows and self.tokenizer.marks:
            raise UserError("--long-texts windows requires a run of single texts without marks; leave it out")
        return chosen

    def probabilities(self, texts: list[Text]) -> NDArray[np.float32]:
        """Return the probabilities of the classes for some texts: (texts, classes), float32. Each row sums to 1.

        >>> run.probabilities(["It works.", "It broke."]).shape
        """
        return probabilities(self.logits(self.encode(texts))).numpy()

    def encode(self, texts: Iterable[Text]) -> RaggedIds:
        """Return the token ids of some texts. For multiple choice, each answer is a text of its own, with the context.

        >>> len(run.encode(["It works.", "It broke."]))
        """
        return self.tokenizer.encode_batch(texts if self.choices is None else self.choices.pairs(texts))

    def logits(self, ids: RaggedIds, long_texts: LongTexts | str | None = None) -> Tensor:
        """Return the outputs of the network for some encoded texts: (texts, outputs). ids: as returned by `encode`.

        long_texts: as in `predict`.

        >>> run.logits(run.encode(["It works.", "It broke."])).shape
        """
        table, lookup = self._table(ids, self.reading(long_texts))
        lengths = longest(lookup.lengths)
        rows = EvaluationBatches(np.arange(len(lengths)), batch_size=ROWS_AT_ONCE, lengths=lengths)
        return logits_of(self.network, (table(lookup[chosen]) for chosen in rows))

    def batch(self, ids: RaggedIds) -> ReviewBatch:
        """Return a batch of encoded texts, cut as in training and padded to the longest.

        The batch has `token_ids` and `padding_mask`, (texts, length) each, and `inputs`, the arguments of the network.
        Its targets are all 0.

        >>> batch = run.batch(run.encode(["It works.", "It broke."]))
        >>> run.network(*batch.inputs).shape
        """
        table, lookup = self._table(ids)
        return table(lookup[np.arange(len(lookup.lengths))])

    def inputs(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> tuple[Tensor | None, ...]:
        """Return the arguments of the network for some token ids: the ids, the padding mask, and features if any.

        token_ids, padding_mask: (batch, length). Without a mask, no token is padding.

        >>> import torch
        >>> run.network(*run.inputs(torch.tensor([[5, 2, 7]]))).shape
        """
        if self.target_encoding is None:
            return token_ids, padding_mask
        return token_ids, padding_mask, self.target_encoding(token_ids)

    @property
    def num_counted(self) -> int:
        return 0 if self.target_encoding is None else self.target_encoding.num_numbers

    def _table(self, ids: RaggedIds, long_texts: LongTexts = LongTexts.cut) -> tuple[TokenTable, Rows]:
        """Return the table that cuts and pads encoded texts, and the data set of its rows."""
        length = self.config["context_length"]
        ids = fitted(ids, self.tokenizer, length, self.truncation)
        rows = Rows(by_row(ids.lengths, self.choices), length, long_texts)
        classes = np.zeros(len(rows.lengths), np.int64)  # unknown
        return TokenTable(ids, classes, length, self.truncation, self.target_encoding, self.choices), rows

    def places(self, ids: RaggedIds) -> NDArray[np.int64]:
        """Return the places of the tokens of one encoded text that the network reads: (kept,).

        >>> run.places(run.tokenizer.encode_batch(["It works."]))
        """
        length = self.config["context_length"]
        if self.tokenizer.marks:
            return kept_places(ids, self.tokenizer, length, self.truncation).ids.astype(np.int64)
        every_place = RaggedIds(np.arange(len(ids.ids), dtype=np.int32), ids.offsets)
        return self.batch(every_place).token_ids[0].numpy()

    @property
    def choices(self) -> ChoiceRows | None:
        """The layout of a text of multiple choice: a context and the answers. None for other runs.

        >>> run.choices
        """
        data = self.config["data"]
        answers, context = data.get("choice_columns"), data.get("text_column")
        return None if answers is None else ChoiceRows(len(context) if isinstance(context, list) else 1, len(answers))

    @property
    def truncation(self) -> Truncation:
        """Which part of a longer text fits the context: its head, its tail, or its first and last half.

        >>> run.truncation.name
        """
        return Truncation[self.config["data"]["truncation"]]

    def words(self, text: str) -> list[str]:
        """Return the words of a text after normalization, for a pair with the marks between them; [] without a word.

        >>> run.words("It's great!")
        """
        found = self.tokenizer.words_of(text)
        return [] if set(found) <= set(self.tokenizer.marks) else found

    def read(self, words: list[str]) -> ReadWords:
        """Return the words of a text as the network reads them. words: as returned by `words`.

        >>> run.read(run.words("It works.")).token_ids.shape
        """
        ids = self.tokenizer.encode_words(words)
        word_of_token = np.repeat(np.arange(len(words)), ids.lengths)
        context_length = self.config["context_length"]
        places = self.places(RaggedIds(ids.ids, np.array([0, len(ids.ids)])))  # (kept,)
        notes = []
        if len(word_of_token) > context_length:
            reads = "the prediction is the mean over windows of all of them, and this explains"
            reads = "the network reads" if self.long_texts is LongTexts.cut else reads
            notes.append(f"the text has {len(word_of_token)} tokens; {reads} {context_length} of them")
        chosen = ids.ids[places].astype(np.int64)
        if unknown := int((chosen == UNKNOWN_ID).sum()):
            notes.append(f"not in the vocabulary and read as [UNK]: {unknown} of {len(chosen)}")
        return ReadWords(torch.from_numpy(chosen)[None], word_of_token[places], notes)

    # --- predict ---

    @property
    def text_columns(self) -> list[str]:
        return [*super().text_columns, *(self.config["data"].get("choice_columns") or ())]

    @property
    def columns(self) -> list[str]:
        return ["label", *(f"probability_{name}" for name in self.class_names)]

    def rows(self, texts: Iterable[Text], long_texts: str | None = None) -> Iterator[list[Any]]:
        return ([each.label, *each.probabilities.values()] for each in self.predict_many(texts, long_texts))

    def show(self, texts: list[str], long_texts: str | None = None) -> None:
        for text, prediction in zip(texts, self.predict_many(texts, long_texts), strict=True):
            if not self.words(text):
                note("the text has no word; this is the prediction for an empty text")
            shown, rest = list(prediction.probabilities.items()), ""
            if len(shown) > MOST_SHOWN:
                shown, rest = nlargest(MOST_SHOWN, shown, key=itemgetter(1)), "  …"
            shares = "  ".join(f"{name} {share:.3f}" for name, share in shown)
            write_out(f"{prediction.label}  ({shares}{rest})")

    # --- evaluate ---

    def measure(self, data: "ReviewData", split: str, long_texts: str | None = None) -> Measurement:
        from firstlight.classifier import evaluation  # imports matplotlib

        data.options.long_texts = self.reading(long_texts)
        return evaluation.measure(self, data, split)

    # --- explore ---

    def some_text(self, data: "ReviewData") -> str:
        rows = data.rows(SPLIT)
        row = rows[[first_drawable(longest(data.encoded.lengths[rows]))]]
        return data.source.texts(data.options.text_columns, row.tolist())[0]

    def made_up_text(self) -> str:
        if self.tokenizer.reads_pairs:
            return joined(("A dog runs over the grass.", "An animal moves."))
        return "It looks great, but it broke after a week and nobody answered. I would not buy it again."

    def _attention(self, text: str) -> Attention:
        words = self.words(text)
        if not words:
            raise UserError(NO_WORD)
        read = self.read(words)
        ids = read.token_ids[0].tolist()
        if self.tokenizer.kind == "word":  # an unknown word is in brackets
            named = zip(ids, (words[i] for i in read.word_of_token), strict=True)
            tokens = [f"[{word}]" if i == UNKNOWN_ID else word for i, word in named]
        else:
            tokens = [self.tokenizer.words[i].replace(CONTINUATION, "·") for i in ids]
        return Attention(collect(self.network, self.inputs(read.token_ids), tokens, tokens), read.notes)

    def _loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        return classification_loss(logits, targets)
