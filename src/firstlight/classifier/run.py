"""Trained classifiers that predict the classes of texts without their data set."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.choices import listed
from firstlight.classifier.module import Prediction, predictions
from firstlight.classifier.pair_rows import fitted, kept_places
from firstlight.data.batches import EvaluationBatches, Rows
from firstlight.data.choice_rows import ChoiceRows, by_row, longest
from firstlight.data.encoding import encode_texts
from firstlight.data.evidence import NgramEvidence
from firstlight.data.options import Labels, Truncation
from firstlight.data.tables import Cuts, ReviewBatch, TokenTable
from firstlight.errors import UserError
from firstlight.kind.chunks import TEXTS_AT_ONCE, chunks
from firstlight.kind.loaded import LoadedRun, OfAllRuns
from firstlight.lit.cards import TRAIN_AGAIN
from firstlight.lit.losses import probabilities
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import Text, Tokenizer

ROWS_AT_ONCE = 256


@dataclass(frozen=True, repr=False, eq=False)
class LoadedClassifier(LoadedRun):
    """Trained classifier, which predicts the class of a text.

    It has the attributes of every loaded run (`path`, `network`, `config`, `record`, `metrics`, `history`).
    `network(token_ids, padding_mask)` accepts two (batch, length) tensors and returns logits (batch, outputs).
    `network(*run.inputs(token_ids))` works for every classifier, including those that read features of the tokens.

    Attributes:
        tokenizer: the tokenizer; `tokenizer.words` is the vocabulary.
        class_names: the names of the classes, in the order of the probabilities.
        label_names: the labels of the training data, as text.
        evidence: the module that computes features of tokens, for a run with `data.evidence=true`; otherwise None.

    >>> run = firstlight.load("latest")
    >>> run.predict("It broke after a week.").label
    """

    kind: ClassVar[str] = "classifier"

    tokenizer: Tokenizer
    class_names: list[str]
    label_names: list[str]
    evidence: NgramEvidence | None = None

    def _facts(self) -> dict[str, str]:
        return {"classes": listed(self.class_names)}

    def predict(self, text: Text) -> Prediction:
        """Return the predicted class of one text, and the probability of every class.

        A run of pairs accepts a tuple of two texts, or one string with ||| between them. A run of multiple choice
        accepts the same with a context and its answers; the label is the column of an answer. A text that is longer
        than the context is cut as in training, with a warning. Raises TypeError for anything else.

        >>> prediction = run.predict("It broke after a week.")
        >>> prediction.label, prediction.probabilities[prediction.label]
        """
        is_pair = self.tokenizer.reads_pairs and isinstance(text, tuple)  # or a context with answers
        if not isinstance(text, str) and not is_pair:
            raise TypeError(f"predict accepts one text, not a {type(text).__name__}; use predict_many for many texts")
        (prediction,) = self.predict_many([text])
        return prediction

    def predict_many(self, texts: Iterable[Text]) -> Iterator[Prediction]:
        """Yield the prediction for each text or pair, in order. A few thousand texts are read at a time.

        Texts that are longer than the context are cut as in training. A warning at the end reports their number.

        >>> [prediction.label for prediction in run.predict_many(["It works.", "It broke."])]
        """
        cuts = Cuts(self.config["context_length"])
        for chunk in chunks(texts, TEXTS_AT_ONCE):
            ids = self.encode(chunk)
            lengths = longest(by_row(ids.lengths, self.choices))
            cuts.count(lengths)
            yield from predictions(probabilities(self.logits(ids, np.arange(len(lengths)))), self.class_names)
        cuts.warn()

    def probabilities(self, texts: list[Text]) -> NDArray[np.float32]:
        """Return the probabilities of the classes for some texts: (texts, classes), float32. Each row sums to 1.

        >>> run.probabilities(["It works.", "It broke."]).shape
        """
        return probabilities(self.logits(self.encode(texts), np.arange(len(texts)))).numpy()

    def encode(self, texts: Iterable[Text]) -> RaggedIds:
        """Return the token ids of some texts. For multiple choice, each answer is a text of its own, with the context.

        >>> len(run.encode(["It works.", "It broke."]))
        """
        return encode_texts(self.tokenizer, texts, self.choices)

    def logits(self, ids: RaggedIds, rows: NDArray[np.int64], counted: NDArray[np.int64] | None = None) -> Tensor:
        """Return the outputs of the network for some rows of encoded texts: (rows, outputs).

        ids: the texts as returned by `encode`. rows: (rows,) indices of the texts. counted: (texts,)
        the classes of the texts, if the evidence was counted on them. The class of each text is then removed from its
        features, as in training. None for other texts.

        >>> import numpy as np
        >>> ids = run.encode(["It works.", "It broke."])
        >>> run.logits(ids, np.arange(2)).shape
        """
        table, lookup = self._reader(ids, counted)
        batches = list(EvaluationBatches(rows, batch_size=ROWS_AT_ONCE, lengths=longest(lookup.lengths[rows])))
        with torch.inference_mode():
            tables = (table(lookup[chosen]) for chosen in batches)
            logits = torch.cat([self.network(*batch.inputs) for batch in tables])
        read = np.concatenate(batches)  # the rows in the order in which they are read, by length
        sorter = np.argsort(read)
        return logits[torch.from_numpy(sorter[np.searchsorted(read, rows, sorter=sorter)])]

    def batch(self, ids: RaggedIds, rows: NDArray[np.int64]) -> ReviewBatch:
        """Return a batch of some rows of encoded texts, cut as in training and padded to the longest.

        The batch has `token_ids` and `padding_mask`, (rows, length) each, and `inputs`, the arguments of the network.
        Its targets are all 0.

        >>> import numpy as np
        >>> batch = run.batch(run.encode(["It works.", "It broke."]), np.arange(2))
        >>> run.network(*batch.inputs).shape
        """
        table, lookup = self._reader(ids)
        return table(lookup[rows])

    def inputs(self, token_ids: Tensor, padding_mask: Tensor | None = None) -> tuple[Tensor | None, ...]:
        """Return the arguments of the network for some token ids: the ids, the padding mask, and features if any.

        token_ids, padding_mask: (batch, length). Without a mask, no token is padding.

        >>> import torch
        >>> run.network(*run.inputs(torch.tensor([[5, 2, 7]]))).shape
        """
        if self.evidence is None:
            return token_ids, padding_mask
        return token_ids, padding_mask, self.evidence(token_ids)

    @property
    def num_counted(self) -> int:
        return 0 if self.evidence is None else self.evidence.num_numbers

    def _reader(self, ids: RaggedIds, counted: NDArray[np.int64] | None = None) -> tuple[TokenTable, Rows]:
        """Return the table that cuts and pads encoded texts, and the rows that are sampled for batches."""
        context_length = self.config["context_length"]
        ids = fitted(ids, self.tokenizer, context_length, self.truncation)
        lengths = by_row(ids.lengths, self.choices).clip(max=context_length)
        targets = np.zeros(len(lengths), np.int64) if counted is None else counted
        table = TokenTable(ids, targets, context_length, self.truncation, self.evidence, self.choices)
        return table, Rows(lengths, are_counted=counted is not None)

    def places(self, ids: RaggedIds) -> NDArray[np.int64]:
        """Return the places of the tokens of one encoded text that the network reads: (kept,).

        >>> run.places(run.tokenizer.encode_batch(["It works."]))
        """
        length = self.config["context_length"]
        if self.tokenizer.reads_pairs:
            return kept_places(ids, length, self.truncation).ids.astype(np.int64)
        every_place = RaggedIds(np.arange(len(ids.ids), dtype=np.int32), ids.offsets)
        return self.batch(every_place, np.array([0])).token_ids[0].numpy()

    @property
    def choices(self) -> ChoiceRows | None:
        """The layout of a text of multiple choice: a context and the answers. None for other runs.

        >>> run.choices
        """
        data = self.config["data"]
        answers, context = data.get("choice_columns"), data.get("text_column")
        return None if answers is None else ChoiceRows(len(context) if isinstance(context, list) else 1, len(answers))

    @property
    def labels(self) -> Labels:
        """How the run predicts labels: `binary` (negative or positive), `stars` or `classes`.

        >>> run.labels.name
        """
        return Labels[self.config["data"]["labels"]]

    @property
    def truncation(self) -> Truncation:
        """Which part of a longer text fits the context: its head, its tail, or its first and last half.

        >>> run.truncation.name
        """
        return Truncation[self.config["data"]["truncation"]]


def evidence_of(card: dict[str, Any], vocab_size: int, path: Path | str) -> NgramEvidence | None:
    """Return the module that computes the features of the tokens, or None if the card has no evidence.

    card: the card of a checkpoint; path: the file. Raises UserError if the table does not fit the vocabulary.
    """
    if "evidence" not in card:
        return None
    try:
        return NgramEvidence.from_table(card["evidence"], vocab_size, len(card["class_names"]))
    except ValueError as error:
        problem = f"the evidence in the checkpoint's metadata is broken ({error})"
        raise UserError(f"{path}: {problem}; {TRAIN_AGAIN}") from error


def from_card(of_all: OfAllRuns, card: dict[str, Any], tokenizer: Any, reader: Any) -> LoadedClassifier:  # noqa: ARG001
    """Return the run of a checkpoint. card: the card of the checkpoint; reader: the tokenizer of the inputs."""
    evidence = evidence_of(card, tokenizer.vocab_size, of_all.checkpoint)
    run = LoadedClassifier(*of_all, tokenizer, card["class_names"], card["label_names"], evidence)
    num_choices = run.choices.num_choices if run.choices is not None else 0
    if bool(card.get("choices")) != bool(num_choices) or num_choices not in (0, len(run.class_names)):
        raise UserError(f"{of_all.checkpoint}: data.choice_columns does not fit the network of the card; {TRAIN_AGAIN}")
    return run
