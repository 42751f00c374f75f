"""Figures of the predictions of a classifier on the validation split, and of their explanations."""

import numpy as np

from firstlight.classifier import insight
from firstlight.classifier.confusion_matrix import confusion_counts
from firstlight.classifier.evaluation import Judged, draw_probability_per_star, judge
from firstlight.data.labels import LEFT_OUT, STARS
from firstlight.figures import (
    Mistake,
    calibration_bins,
    plot_calibration_curve,
    plot_colored_words,
    plot_confusion_matrix,
    plot_mistakes,
    plot_predicted_per_star,
)
from firstlight.kind.results import Drawn, NothingToDrawError
from firstlight.kind.run import SPLIT
from firstlight.kind.subject import Subject

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
    data = subject.data
    return subject.part("judged", lambda: judge(subject.run, data, SPLIT))


def _used(subject: Subject) -> tuple[np.ndarray, np.ndarray]:
    """Return the predicted classes and the targets of the rows with a target, both (n,)."""
    judged = judged_of(subject)
    used = judged.targets != LEFT_OUT
    return judged.probabilities[used].argmax(axis=1), judged.targets[used]
