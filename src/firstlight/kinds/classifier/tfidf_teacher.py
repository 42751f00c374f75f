"""The teacher `tfidf`: logistic regression on TF-IDF features, fitted on other rows than those that it predicts."""

import logging

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from threadpoolctl import threadpool_limits

from firstlight.data.options import Balance
from firstlight.data.reviews import ReviewData
from firstlight.errors import UserError
from firstlight.text.normalize import words_and_marks

log = logging.getLogger(__name__)

VERSION = 1  # increase it when the predictions change, so that the cache is not reused
REGULARIZATION = (1.0, 3.0, 10.0)  # scikit-learn's C, the inverse of the regularization strength
LEAST_TEXTS = 2  # training texts that a word or a pair must occur in
MOST_STEPS = 1000


def probabilities(data: ReviewData, folds: int) -> NDArray[np.float64]:
    """Return the probabilities of the classes for every training row, (training rows, classes).

    The rows are divided into `folds` parts with the same shares of the classes. A model that was fitted on the other
    parts predicts each part. Only the vocabulary and its document frequencies, which do not depend on the labels, are
    counted on all rows. The regularization with the smallest log loss of the first part is used for all parts.

    Raises UserError for texts without common words, or a class with too few rows.
    """
    rows = data.rows("train")
    targets = data.targets[rows]
    present, counts = np.unique(targets, return_counts=True)
    if counts.min() < folds:
        name = data.class_names[present[counts.argmin()]]
        raise UserError(
            f"distillation.folds={folds}: the class {name} has only {counts.min()} training rows; use at most as many "
            "folds, or add rows"
        )
    features = _features(data.source.texts(data.options.text_columns, rows.tolist()))
    parts = list(StratifiedKFold(folds, shuffle=True, random_state=data.options.split_seed).split(rows, targets))
    shares = np.zeros((len(rows), data.num_classes))
    with threadpool_limits(1):  # the products are sparse, and other threads of BLAS would only wait
        regression = _regression(data, _strength(data, features, targets, *parts[0]))
        shares[:, present] = cross_val_predict(regression, features, targets, cv=parts, method="predict_proba")
    log.info("teacher=tfidf: %d features, C=%g", features.shape[1], regression.C)
    return shares


def _features(texts: list[str]) -> csr_matrix:
    """Return the TF-IDF weights of the words, marks and pairs of each text, (texts, features)."""
    vectorizer = TfidfVectorizer(
        tokenizer=words_and_marks,
        token_pattern=None,
        lowercase=False,
        ngram_range=(1, 2),
        sublinear_tf=True,
        min_df=LEAST_TEXTS,
    )
    try:
        return vectorizer.fit_transform(texts)
    except ValueError as error:  # no feature is left
        raise UserError(f"teacher=tfidf: no word occurs in {LEAST_TEXTS} training texts; add rows") from error


def _strength(
    data: ReviewData,
    features: csr_matrix,
    targets: NDArray[np.int64],
    others: NDArray[np.int64],
    part: NDArray[np.int64],
) -> float:
    """Return the C with the smallest log loss of one part of the rows. others: the rows on which to fit."""

    def loss(strength: float) -> float:
        model = _regression(data, strength).fit(features[others], targets[others])
        return float(log_loss(targets[part], model.predict_proba(features[part]), labels=model.classes_))

    return min(REGULARIZATION, key=loss)


def _regression(data: ReviewData, strength: float) -> LogisticRegression:
    is_balanced = data.options.balance is not Balance.none
    return LogisticRegression(C=strength, max_iter=MOST_STEPS, class_weight="balanced" if is_balanced else None)
