"""Figures of the predictions of a classifier on the validation split, and of their explanations."""

from firstlight.classifier import evaluation, insight
from firstlight.classifier.evaluation import Judged
from firstlight.data.labels import STARS
from firstlight.figures import calibration_bins, plot_calibration_curve, plot_colored_words
from firstlight.kind.kind import Drawn, NothingToDrawError
from firstlight.kind.run import SPLIT
from firstlight.kind.subject import Subject

MOST_WORDS = 300  # words in the figure of a text


def confusion_matrix(subject: Subject) -> Drawn:
    """Return the figure of the confusion matrix."""
    return Drawn(evaluation.draw_confusion_matrix(judged_of(subject).with_targets()))


def probability_per_star(subject: Subject) -> Drawn:
    """Return the figure of the probability of positive for each number of stars, including those without a target."""
    if tuple(subject.data.encoded.label_names) != STARS:
        raise NothingToDrawError("the labels of the data are not stars")
    return Drawn(evaluation.draw_probability_per_star(judged_of(subject)))


def predicted_per_class(subject: Subject) -> Drawn:
    """Return the figure of the predicted classes for each true class."""
    return Drawn(evaluation.draw_predicted_per_class(judged_of(subject).with_targets()))


def calibration(subject: Subject) -> Drawn:
    """Return the figure of accuracy against confidence."""
    judged = judged_of(subject).with_targets()
    bins = calibration_bins(judged.probabilities, judged.targets)
    return Drawn(plot_calibration_curve(bins, title=f"Calibration, {SPLIT}"))


def attributions(subject: Subject) -> Drawn:
    """Return the figure of a text in which each word is colored by its attribution."""
    text, notes = subject.chosen_text()
    found = subject.of_text(text, lambda chosen: insight.attributions(subject.run, chosen))
    words, scores = found.words, found.scores
    if len(words) > MOST_WORDS:
        notes = [*notes, f"the figure shows the first {MOST_WORDS} of {len(words)} words"]
        words, scores = words[:MOST_WORDS], scores[:MOST_WORDS]
    title = f"Why “{found.label}” ({found.probability:.1%}), by integrated gradients"
    label = f"contribution to the log-odds of “{found.label}” (nats)"
    return Drawn(plot_colored_words(words, scores, title=title, label=label), [*notes, *found.notes])


def judged_of(subject: Subject) -> Judged:
    """Return the predictions of the run for the validation split."""
    data = subject.data
    return subject.part("judged", lambda: evaluation.judge(subject.run, data, SPLIT))
