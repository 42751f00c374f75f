"""The teacher `tfidf`: logistic regression on TF-IDF features, fitted on other rows than those that it predicts.

For two classes, each feature is multiplied by its log-count ratio of naive Bayes (NBSVM, Wang & Manning 2012). For five
stars, one such model for each class has a larger loss than one regression of all classes without these ratios.
"""

import logging
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from firstlight.classifier.data import ReviewData
from firstlight.data.options import Balance
from firstlight.errors import UserError
from firstlight.text.normalize import words_and_marks

log = logging.getLogger(__name__)

VERSION = 2  # increase it when the predictions change, so that the cache is not reused
STRENGTH = "logisticregression__C"  # the inverse of the regularization strength, by its name in the pipeline
REGULARIZATION = (3.0, 10.0)
LONGEST, LONGEST_OF_MANY = 3, 2  # words and marks of an n-gram, for two classes and for more
LEAST_TEXTS = 2  # training texts that an n-gram must occur in
MOST_STEPS = 1000


def probabilities(data: ReviewData, folds: int) -> NDArray[np.float64]:
    """Return the probabilities of the classes for every training row, (training rows, classes).

    The rows are divided into `folds` parts with the same shares of the classes. A model that was fitted on the other
    parts predicts each part. Only the vocabulary and its document frequencies, which do not depend on the labels, are
    counted on all rows. The regularization with the smallest log loss of the first part is used for all parts.

    Raises UserError for texts without common words, or a class with too few rows.
    """
    if data.options.choices is not None:
        raise UserError("teacher=tfidf does not compare the answers of data.choice_columns; name a run as the teacher")
    rows = data.rows("train")
    targets = data.targets[rows]
    present, counts = np.unique(targets, return_counts=True)
    if counts.min() < folds:
        name = data.class_names[present[counts.argmin()]]
        raise UserError(
            f"distillation.folds={folds}: the class {name} has only {counts.min()} training rows; use at most as many "
            "folds, or add rows"
        )
    longest = LONGEST if len(present) == 2 else LONGEST_OF_MANY
    features = _features(data.source.texts(data.options.text_columns, rows.tolist()), longest)
    parts = list(StratifiedKFold(folds, shuffle=True, random_state=data.options.split_seed).split(rows, targets))
    weights = None if data.options.balance is Balance.none else "balanced"
    model = make_pipeline(NaiveBayesScaling(), LogisticRegression(max_iter=MOST_STEPS, class_weight=weights))
    shares = np.zeros((len(rows), data.num_classes))
    with threadpool_limits(1):  # the products are sparse, and other threads of BLAS would only wait
        search = GridSearchCV(model, {STRENGTH: REGULARIZATION}, scoring="neg_log_loss", cv=parts[:1], refit=False)
        model.set_params(**search.fit(features, targets).best_params_)
        shares[:, present] = cross_val_predict(model, features, targets, cv=parts, method="predict_proba")
    log.info("teacher=tfidf: %d features, C=%g", features.shape[1], model.get_params()[STRENGTH])
    return shares


def _features(texts: list[str], longest: int) -> csr_matrix:
    """Return the TF-IDF weights of the n-grams of words and marks of each text, (texts, features)."""
    vectorizer = TfidfVectorizer(
        tokenizer=words_and_marks,
        token_pattern=None,
        lowercase=False,
        ngram_range=(1, longest),
        sublinear_tf=True,
        min_df=LEAST_TEXTS,
    )
    try:
        return vectorizer.fit_transform(texts)
    except ValueError as error:  # no feature is left
        raise UserError(f"teacher=tfidf: no word occurs in {LEAST_TEXTS} training texts; add rows") from error


class NaiveBayesScaling(TransformerMixin, BaseEstimator):
    """Multiplication of each feature by the log ratio of its shares in two classes; none for more classes."""

    def fit(self, features: csr_matrix, targets: NDArray[np.integer]) -> Self:
        """Count the texts of each class with each feature. features: (texts, features); targets: (texts,)."""
        occurs, labels = features > 0, np.unique(targets)
        self.ratios_ = np.ones(features.shape[1])
        if len(labels) == 2:
            counts = [1 + np.asarray(occurs[targets == label].sum(axis=0)).ravel() for label in labels]
            self.ratios_ = np.log(counts[1] / counts[1].sum()) - np.log(counts[0] / counts[0].sum())
        return self

    def transform(self, features: csr_matrix) -> Any:
        """Return the multiplied features, (texts, features)."""
        return features @ diags(self.ratios_)
