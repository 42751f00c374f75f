"""Baseline of the classifiers: logistic regression on TF-IDF features of words and word pairs."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from firstlight.data.options import Balance
from firstlight.data.reviews import ReviewData
from firstlight.errors import UserError
from firstlight.kinds.baseline import SPLITS, Fitted, best_of, say_choice
from firstlight.kinds.classifier.evaluation import metrics_of, write_confusion_matrix
from firstlight.lit.losses import classification_loss
from firstlight.terminal_text import say
from firstlight.text.normalize import words
from firstlight.text.tokenizers import NO_WORDS

REGULARIZATION = (0.3, 1.0, 3.0, 10.0, 30.0)  # scikit-learn's C, the inverse of the regularization strength
MOST_FEATURES = 200_000
MOST_WEIGHTS = 20_000_000  # weights of all classes; the solver stores about twenty copies
MOST_STEPS = 1000
SMALLEST_SHARE = 1e-12  # probability of a class without training rows


def fit(data: ReviewData, metric: str, folder: Path, max_words: int | None = None) -> Fitted:
    """Fit one regression for each C, choose one by a validation metric, and save its figures in `folder`.

    The texts are not cut to a context. Raises UserError for texts without a word.

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
        models[strength] = _new_regression(data, strength).fit(training, _targets(data, "train"))
        shares[strength] = _shares(models[strength], validation, data.num_classes)
        tried[strength] = _metrics(data, "val", shares[strength])
        say_choice("C", strength, tried[strength])
    chosen = best_of(tried, metric)
    _draw(data, "val", shares[chosen], folder)

    def test() -> dict[str, float]:
        found = _shares(models[chosen], vectorizer.transform(_texts(data, "test")), data.num_classes)
        _draw(data, "test", found, folder)
        return _metrics(data, "test", found)

    return Fitted(
        parameters=models[chosen].coef_.size + models[chosen].intercept_.size,
        chosen={"C": chosen},
        tried={"C": {f"{strength:g}": metrics for strength, metrics in tried.items()}},
        validation=tried[chosen],
        test=test,
    )


def _new_regression(data: ReviewData, strength: float) -> LogisticRegression:
    is_balanced = data.options.balance is not Balance.none
    return LogisticRegression(C=strength, max_iter=MOST_STEPS, class_weight="balanced" if is_balanced else None)


def _texts(data: ReviewData, split: str) -> list[str]:
    return data.source.texts(data.options.text_column, data.rows(split).tolist())


def _targets(data: ReviewData, split: str) -> NDArray[np.int64]:
    return data.targets[data.rows(split)]


def _shares(model: LogisticRegression, features: csr_matrix, num_classes: int) -> NDArray[np.float64]:
    """Return the probabilities, (rows, classes)."""
    shares = np.zeros((features.shape[0], num_classes))
    shares[:, model.classes_] = model.predict_proba(features)
    return shares


def _metrics(data: ReviewData, stage: str, shares: NDArray[np.float64]) -> dict[str, float]:
    """Return the loss and metrics of `val` or `test`, with the names that a training uses."""
    targets = torch.from_numpy(_targets(data, SPLITS[stage]))
    found = torch.from_numpy(shares)
    metrics = {"loss": float(classification_loss(found.clamp(min=SMALLEST_SHARE).log(), targets))}
    metrics |= metrics_of(found, targets, ordered=data.has_ordered_classes)
    return {f"{stage}/{name}": value for name, value in metrics.items()}


def _draw(data: ReviewData, stage: str, shares: NDArray[np.float64], folder: Path) -> None:
    """Write confusion_matrix/<split>.png and .csv, as a training does."""
    split = SPLITS[stage]
    path = folder / "confusion_matrix" / split
    path.parent.mkdir(exist_ok=True)
    write_confusion_matrix(path, _targets(data, split), shares.argmax(axis=1), data.class_names, split)
