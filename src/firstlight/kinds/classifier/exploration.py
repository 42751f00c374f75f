"""Exploration of a classifier."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from firstlight.data.choice_rows import longest
from firstlight.data.labels import LEFT_OUT, targets_of
from firstlight.errors import UserError
from firstlight.kinds.attention import Attention, collect
from firstlight.kinds.classifier.evaluation import encode_for, read_labels
from firstlight.kinds.classifier.insight import NO_WORD, read_review, readable_tokens, words_of
from firstlight.kinds.classifier.loaded import LoadedClassifier
from firstlight.kinds.drawn import NothingToDrawError
from firstlight.kinds.evaluation import refuse_other_data
from firstlight.kinds.exploration import MOST_ROWS, SPLIT, Exploration, Vectors, first_drawable
from firstlight.kinds.reviews import Reviews, find_reviews
from firstlight.kinds.tokens import DrawnTokens, drawn_words
from firstlight.lit.losses import classification_loss
from firstlight.text.tokenizers import CONTINUATION, joined


class ClassifierExploration(Exploration):
    """Exploration of a classifier and its labelled texts."""

    run: LoadedClassifier
    data_type = Reviews
    choice_note = "the text is from the validation split"

    def open_data(self) -> Reviews:
        source, options = find_reviews(self.run.config["data"], self.changes, self.log_dir)
        refuse_other_data(self.run, source, self.changes)
        encoded = encode_for(self.run, source, options)
        labels, _ = read_labels(encoded, self.run.labels, self.run.class_names, source, options)
        return Reviews(source, options, encoded, labels)

    def some_text(self, data: Reviews) -> str:
        rows = data.encoded.rows_of(SPLIT)
        return data.texts(rows[[first_drawable(longest(data.encoded.lengths[rows]))]])[0]

    def made_up_text(self) -> tuple[str, str]:
        text = "It looks great, but it broke after a week and nobody answered. I would not buy it again."
        if self.run.tokenizer.reads_pairs:
            text = joined(("A dog runs over the grass.", "An animal moves."))
        return text, "the text is made up"

    @staticmethod
    def attention(run: LoadedClassifier, text: str) -> Attention:  # type: ignore[override]
        found = words_of(run, text)
        if not found:
            raise UserError(NO_WORD)
        ids, kept, notes = read_review(run, found)
        tokens = readable_tokens(run, ids, found, kept)
        return Attention(collect(run.network, run.inputs(ids), tokens, tokens), notes)

    def loss(self, data: Reviews) -> Tensor:
        rows = data.encoded.rows_of(SPLIT)
        targets = targets_of(data.encoded.labels[rows], data.labels or self.run.labels, data.encoded.label_names)
        rows, targets = rows[targets != LEFT_OUT][:MOST_ROWS], targets[targets != LEFT_OUT][:MOST_ROWS]
        if not len(rows):
            raise NothingToDrawError(f"{data.source.where} has no {SPLIT} rows")
        batch = self.run.batch(data.encoded.ids, np.asarray(rows))
        return classification_loss(self.run.network(*batch.inputs), torch.from_numpy(targets))

    def tokens(self) -> DrawnTokens:
        embedding: Any = self.run.network.embedding
        words = self.run.tokenizer.words[: embedding.num_embeddings]  # the rarest words may have no vector
        return drawn_words(words, lambda token_id: words[token_id].replace(CONTINUATION, "·"))

    def vectors(self) -> Vectors:
        embedding: Any = self.run.network.embedding
        return Vectors({"embedding": embedding.weight}, [])
