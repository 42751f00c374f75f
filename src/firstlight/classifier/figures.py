"""Figures of the predictions of a classifier on the validation split, and of their explanations."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from firstlight.classifier import insight
from firstlight.classifier.confusion_matrix import confusion_counts
from firstlight.classifier.evaluation import Judged, draw_probability_per_star, encode_for, judge, read_labels
from firstlight.classifier.insight import NO_WORD, read_review, readable_tokens, words_of
from firstlight.classifier.run import LoadedClassifier
from firstlight.data.choice_rows import longest
from firstlight.data.labels import LEFT_OUT, STARS, targets_of
from firstlight.errors import UserError
from firstlight.figures import (
    Mistake,
    calibration_bins,
    plot_calibration_curve,
    plot_colored_words,
    plot_confusion_matrix,
    plot_mistakes,
    plot_predicted_per_star,
)
from firstlight.kind.attention import Attention, collect
from firstlight.kind.drawn import Drawn, NothingToDrawError
from firstlight.kind.evaluation import refuse_other_data
from firstlight.kind.exploration import MOST_ROWS, SPLIT, Exploration, Vectors, first_drawable
from firstlight.kind.subject import Reviews, Subject, find_reviews
from firstlight.kind.tokens import DrawnTokens, drawn_words
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


MOST_MISTAKES = 10
MOST_WORDS = 300  # words in the figure of a text


def confusion_matrix(subject: Subject) -> Drawn:
    """Return the figure of the confusion matrix."""
    names = subject.run.class_names
    predicted, targets = _used(subject)
    counts = confusion_counts(targets, predicted, len(names))
    return Drawn(plot_confusion_matrix(counts, names, title=f"Confusion matrix, {SPLIT}"))


def probability_per_star(subject: Subject) -> Drawn:
    """Return the figure of the probability of positive for each number of stars, including those without a target."""
    judged = judged_of(subject)
    if tuple(subject.data.encoded.label_names) != STARS:
        raise NothingToDrawError("the labels of the data are not stars")
    return Drawn(draw_probability_per_star(judged, subject.run.labels))


def predicted_per_class(subject: Subject) -> Drawn:
    """Return the figure of the predicted classes for each true class."""
    predicted, targets = _used(subject)
    return Drawn(plot_predicted_per_star(predicted, targets, subject.run.class_names))


def calibration(subject: Subject) -> Drawn:
    """Return the figure of accuracy against confidence."""
    judged = judged_of(subject)
    used = judged.targets != LEFT_OUT
    found = calibration_bins(judged.probabilities[used], judged.targets[used])
    return Drawn(plot_calibration_curve(found, title=f"Calibration, {SPLIT}"))


def mistakes(subject: Subject) -> Drawn:
    """Return the figure of the most confident wrong predictions."""
    judged, names = judged_of(subject), subject.run.class_names
    predicted = judged.probabilities.argmax(axis=1)
    wrong = np.flatnonzero((judged.targets != LEFT_OUT) & (predicted != judged.targets))
    if not len(wrong):
        raise NothingToDrawError(f"the run makes no mistake on the {SPLIT} split")
    surest = wrong[np.argsort(-judged.probabilities[wrong].max(axis=1), kind="stable")][:MOST_MISTAKES]
    texts = subject.data.texts(judged.rows[surest])
    rows = [
        Mistake(text, names[judged.targets[i]], names[predicted[i]], float(judged.probabilities[i].max()))
        for i, text in zip(surest, texts, strict=True)
    ]
    title = f"The {len(rows)} most confident of {len(wrong):,} mistakes, {SPLIT}"
    return Drawn(plot_mistakes(rows, title=title))


def attributions(subject: Subject) -> Drawn:
    """Return the figure of a text in which each word is coloured by its attribution."""
    text, notes = subject.chosen_text()
    found = subject.of_text(text, lambda chosen: insight.attributions(subject.run, chosen))
    if found.method == insight.GRADIENT_TIMES_INPUT:
        notes = [*notes, f"computed by {found.method}; integrated gradients require the extra captum"]
    words, scores = found.words, found.scores
    if len(words) > MOST_WORDS:
        notes = [*notes, f"the figure shows the first {MOST_WORDS} of {len(words)} words"]
        words, scores = words[:MOST_WORDS], scores[:MOST_WORDS]
    figure = plot_colored_words(
        words,
        scores,
        title=f"Why “{found.label}” ({found.probability:.1%}), by {found.method}",
        label=f"contribution to the log-odds of “{found.label}” (nats)",
    )
    return Drawn(figure, [*notes, *found.notes])


def judged_of(subject: Subject) -> Judged:
    """Return the predictions of the run for the validation split."""
    reviews: Reviews = subject.data
    return subject.part("judged", lambda: judge(subject.run, reviews.encoded, SPLIT, reviews.labels))


def _used(subject: Subject) -> tuple[np.ndarray, np.ndarray]:
    """Return the predicted classes and the targets of the rows with a target, both (n,)."""
    judged = judged_of(subject)
    used = judged.targets != LEFT_OUT
    return judged.probabilities[used].argmax(axis=1), judged.targets[used]
