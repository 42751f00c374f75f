"""Baseline of the classifiers: logistic regression on TF-IDF features of words and word pairs."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from firstlight.classifier.data import ReviewData
from firstlight.classifier.evaluation import (
    SMALLEST_SHARE,
    class_predictions,
    metrics_of,
    read_texts,
    write_confusion_matrix,
)
from firstlight.data.labels import LEFT_OUT
from firstlight.data.options import Balance, ReviewOptions
from firstlight.data.sources import Source, find_source
from firstlight.errors import UserError
from firstlight.kind.baseline import SPLITS, Fitted, OtherData, best_of, say_choice
from firstlight.kind.data_changes import changed_options
from firstlight.lit.losses import classification_loss
from firstlight.runs.predictions import FOLDER, write_predictions
from firstlight.terminal_text import say
from firstlight.text.normalize import words
from firstlight.text.tokenizers import NO_WORDS

REGULARIZATION = (0.3, 1.0, 3.0, 10.0, 30.0)  # scikit-learn's C, the inverse of the regularization strength
MOST_FEATURES = 200_000
MOST_WEIGHTS = 20_000_000  # weights of all classes; the solver stores about twenty copies
MOST_STEPS = 1000


def fit(data: ReviewData, metric: str, folder: Path, max_words: int | None = None) -> Fitted:
    """Fit one regression for each C, choose one by a validation metric, and save its figures in `folder`.

    The texts are not cut to a context. For multiple choice, the regression reads each answer without the context, so it
    measures what the answers alone reveal. Raises UserError for texts without a word.

    max_words: the number of most frequent words that are the features, without pairs of words; None: words and pairs.
    """
    vectorizer = TfidfVectorizer(
        tokenizer=words,
        token_pattern=None,
        lowercase=False,
        ngram_range=(1, 2) if max_words is None else (1, 1),
        sublinear_tf=True,
        max_features=min(max_words or MOST_FEATURES, MOST_WEIGHTS // data.num_classes),
    )
    say(data.label_reading, flush=True)
    texts = _texts(data, "train")
    if not any(map(words, texts)):
        raise UserError(NO_WORDS)
    training = vectorizer.fit_transform(texts)
    validation = vectorizer.transform(_texts(data, "validation"))
    models, shares, tried = {}, {}, {}
    for strength in REGULARIZATION:
        models[strength] = _new_regression(data, strength).fit(training, _fitted_targets(data))
        shares[strength] = _shares(models[strength], validation, data)
        tried[strength] = _metrics(data, "val", shares[strength])
        say_choice("C", strength, tried[strength])
    chosen = best_of(tried, metric)
    _save(data, "val", shares[chosen], folder)

    def test() -> dict[str, float]:
        found = _shares(models[chosen], vectorizer.transform(_texts(data, "test")), data)
        _save(data, "test", found, folder)
        return _metrics(data, "test", found)

    def other(elsewhere: OtherData) -> dict[str, float]:
        texts, rows, targets = _read_other(data, elsewhere)
        found = _shares(models[chosen], vectorizer.transform(texts), data)
        write_predictions(folder / FOLDER / "other.npz", class_predictions(rows, targets, found))
        return _metrics_of(data, "other", targets, found)

    return Fitted(
        parameters=models[chosen].coef_.size + models[chosen].intercept_.size,
        chosen={"C": chosen},
        tried={"C": {f"{strength:g}": metrics for strength, metrics in tried.items()}},
        validation=tried[chosen],
        test=test,
        references=lambda: references(data),
        other=other,
    )


def references(data: ReviewData) -> dict[str, dict[str, float]]:
    """Return the accuracies of guessing, and of always answering the largest class of the training rows."""
    largest = np.bincount(_targets(data, "train"), minlength=data.num_classes).argmax()
    stages = [stage for stage, split in SPLITS.items() if data.has_split(split)]
    return {
        "chance": {f"{stage}/accuracy": 1 / data.num_classes for stage in stages},
        "largest_class": {
            f"{stage}/accuracy": float((_targets(data, SPLITS[stage]) == largest).mean()) for stage in stages
        },
    }


def _read_other(data: ReviewData, elsewhere: OtherData) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return the texts, row numbers and targets of the test split of other data. Raises UserError without targets."""
    options: ReviewOptions = changed_options(elsewhere.data, ReviewOptions, elsewhere.changes, elsewhere.log_dir)
    source = find_source(options, sample=options.sample.value, only_split=elsewhere.changes.only_split)
    trained_with = (data.tokenizer, data.options.labels, data.encoded.label_names, data.class_names)
    other = read_texts(source, options, *trained_with)
    rows = other.encoded.rows_of("test")
    rows = rows[other.targets[rows] != LEFT_OUT]
    if not len(rows):
        raise UserError(f"{source.where}: the test split has no rows for data.labels={other.labels.value}")
    return _texts_of(source, options, rows), rows, other.targets[rows]


def _new_regression(data: ReviewData, strength: float) -> LogisticRegression:
    is_balanced = data.options.balance is not Balance.none
    return LogisticRegression(C=strength, max_iter=MOST_STEPS, class_weight="balanced" if is_balanced else None)


def _texts(data: ReviewData, split: str) -> list[str]:
    return _texts_of(data.source, data.options, data.rows(split))


def _texts_of(source: Source, options: ReviewOptions, rows: NDArray[np.int64]) -> list[str]:
    """Return the texts of some rows, or all answers of rows of multiple choice, row by row."""
    if options.choice_columns is None:
        return source.texts(options.text_columns, rows.tolist())
    return [answer for answers in source.values(options.choice_columns, rows.tolist()) for answer in answers]


def _targets(data: ReviewData, split: str) -> NDArray[np.int64]:
    return data.targets[data.rows(split)]


def _fitted_targets(data: ReviewData) -> NDArray[np.int64]:
    """Return the target of each training text; for multiple choice, 1 for each correct answer and 0 for the others."""
    targets = _targets(data, "train")
    if data.options.choices is None:
        return targets
    return (targets[:, None] == np.arange(data.num_classes)).ravel().astype(np.int64)


def _shares(model: LogisticRegression, features: csr_matrix, data: ReviewData) -> NDArray[np.float64]:
    """Return the probabilities, (rows, classes). For multiple choice, they are the softmax of the answers' log-odds."""
    if data.options.choices is not None:
        return softmax(data.options.choices.by_row(model.decision_function(features)), axis=1)
    shares = np.zeros((features.shape[0], data.num_classes))
    shares[:, model.classes_] = model.predict_proba(features)
    return shares


def _metrics(data: ReviewData, stage: str, shares: NDArray[np.float64]) -> dict[str, float]:
    """Return the loss and metrics of `val` or `test`, with the names that a training uses."""
    return _metrics_of(data, stage, _targets(data, SPLITS[stage]), shares)


def _metrics_of(
    data: ReviewData, stage: str, targets: NDArray[np.int64], shares: NDArray[np.float64]
) -> dict[str, float]:
    true, found = torch.from_numpy(targets), torch.from_numpy(shares)
    metrics = {"loss": float(classification_loss(found.clamp(min=SMALLEST_SHARE).log(), true))}
    metrics |= metrics_of(found, true, ordered=data.has_ordered_classes)
    return {f"{stage}/{name}": value for name, value in metrics.items()}


def _save(data: ReviewData, stage: str, shares: NDArray[np.float64], folder: Path) -> None:
    """Write confusion_matrix/<split>.png and .csv and predictions/<split>.npz, as a training does."""
    split = SPLITS[stage]
    path = folder / "confusion_matrix" / split
    path.parent.mkdir(exist_ok=True)
    targets = _targets(data, split)
    write_confusion_matrix(path, targets, shares.argmax(axis=1), data.class_names, data.source, split)
    write_predictions(folder / FOLDER / f"{split}.npz", class_predictions(data.rows(split), targets, shares))
