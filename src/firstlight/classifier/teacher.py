"""Teachers of a classifier, which predict every training row once, before the training.

A row is predicted by models that were not trained on it: by `tfidf`, which is fitted in folds, and by the runs of a
sweep that left it out.

`tfidf` is logistic regression on TF-IDF features. For two classes, each feature is multiplied by its log-count ratio of
naive Bayes (NBSVM, Wang & Manning 2012). For five stars, one such model for each class has a larger loss than one
regression of all classes without these ratios.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits
from torch import Tensor

from firstlight.choices import listed
from firstlight.classifier.data import ReviewData
from firstlight.classifier.module import logits_of
from firstlight.classifier.run import ROWS_AT_ONCE, ClassifierRun
from firstlight.data import cache
from firstlight.data.options import Balance
from firstlight.data.store import key_of
from firstlight.errors import UserError
from firstlight.kind.teachers import DistillationTarget, Named, digest_of, has_same_data
from firstlight.lit.distillation import RowTeacher
from firstlight.lit.distillation_options import DistillationOptions
from firstlight.lit.losses import probabilities
from firstlight.text.normalize import words_and_marks

log = logging.getLogger(__name__)

VERSION = 1  # of the predictions of runs; increase it when they change, so that the cache is not reused
ROWS_OF_A_RUN = ("max_train_rows", "split_seed", "folds", "left_out_fold")  # the options of `data` that choose them
SMALLEST_SHARE = 1e-6  # the logarithm of 0 is infinite
FILE = "probabilities.npy"

TFIDF_VERSION = 2  # of the predictions of `tfidf`, as VERSION
STRENGTH = "logisticregression__C"  # the inverse of the regularization strength, by its name in the pipeline
REGULARIZATION = (3.0, 10.0)
LONGEST, LONGEST_OF_MANY = 3, 2  # words and marks of an n-gram, for two classes and for more
LEAST_TEXTS = 2  # training texts that an n-gram must occur in
MOST_STEPS = 1000


def distillation_target(named: Named, data: ReviewData, options: DistillationOptions) -> DistillationTarget:
    """Return the teacher of a classifier: the mean of the probabilities of all that are named.

    named: the teachers. Raises UserError.
    """
    shares, keys = [], []
    for name, runs in named.items():
        found, own_keys = _of_runs(name, runs, data) if runs else _of_tfidf(name, data, options.folds)
        shares.append(found)
        keys += own_keys
    mean = torch.from_numpy(np.mean(shares, axis=0)).float()  # (training rows, classes)
    rows = torch.from_numpy(data.rows("train"))
    table = torch.full((len(data.targets), data.num_classes), torch.nan)
    table[rows] = mean.clamp(min=SMALLEST_SHARE).log()
    return DistillationTarget(RowTeacher(table), key_of({"teachers": sorted(keys)}), _quality(mean, data))


def _of_tfidf(name: str, data: ReviewData, folds: int) -> tuple[NDArray[np.floating], list[str]]:
    """Return the probabilities for all training rows, (training rows, classes), and their key in the cache."""
    key = key_of({"teacher": name, "version": TFIDF_VERSION, "folds": folds, **_facts_of(data)})
    return _cached(data, key, lambda: tfidf_probabilities(data, folds), name), [key]


def _of_runs(name: str, runs: Sequence[Any], data: ReviewData) -> tuple[NDArray[np.floating], list[str]]:
    """Return the same for runs, with a key for each. A row gets the mean of the runs that were not trained on it."""
    rows = data.rows("train")
    shares, are_seen, keys = [], [], []
    for run in runs:
        read = read_by(run, data)
        is_seen = np.isin(rows, read.rows("train")) & has_same_data(run, data)
        facts = {"teacher": digest_of(run), "version": VERSION, "seen": _digest(is_seen), **_facts_of(data)}
        keys.append(key_of(facts))
        shares.append(_cached(data, keys[-1], partial(_predicted, run, read, rows), str(run.path)))
        are_seen.append(is_seen)
    return mean_of_unseen(name, np.stack(shares), np.stack(are_seen)), keys


def read_by(run: ClassifierRun, data: ReviewData) -> ReviewData:
    """Return this data as a run reads it, whose training rows are those that the run was trained on.

    Raises UserError if the run has other classes, or has seen rows of the validation split.
    """
    if run.class_names != data.class_names:
        raise UserError(
            f"teacher={run.path}: the run predicts {listed(run.class_names)}, but this data has the classes "
            f"{listed(data.class_names)}; name a run with the same classes"
        )
    names = ROWS_OF_A_RUN if has_same_data(run, data) else ()
    length = {"context_length": run.config["context_length"], "evaluation_batch_size": ROWS_AT_ONCE}
    try:
        saved = {name: run.config["data"][name] for name in (*names, "truncation")}
        read = ReviewData(**vars(replace(data.options, **length)) | saved)
    except (TypeError, ValueError, KeyError) as error:
        raise UserError(f"teacher={run.path}: the options of its data cannot be used: {error}") from error
    read.read_as(run.metadata | {"label_names": data.encoded.label_names})
    read.setup("test")
    return read


def _predicted(run: ClassifierRun, read: ReviewData, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    shares: NDArray[np.float32] = probabilities(logits_of(run.network, read.batches_of(rows))).numpy()
    return shares


def mean_of_unseen(name: str, shares: NDArray[np.floating], is_seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return for each row the mean of the runs that were not trained on it, (rows, classes).

    The log reports rows on which all runs were trained. They get the mean of all runs.

    shares: (runs, rows, classes); is_seen: (runs, rows).
    """
    are_all = np.logical_and.reduce(is_seen)
    if are_all.any():
        log.warning(
            "teacher=%s was trained on %s of the %s training texts, so its predictions repeat their labels. To avoid "
            "that, train it as a sweep: -m data.left_out_fold=0,1,2,3,4, and name the folder of the sweep",
            *(name, f"{are_all.sum():,}", f"{len(are_all):,}"),
        )
    weights = (~is_seen | are_all).astype(np.float64)
    return (shares * (weights / weights.sum(axis=0))[..., None]).sum(axis=0)


def _cached(data: ReviewData, key: str, predict: Callable[[], NDArray[np.floating]], name: str) -> NDArray[np.float32]:
    """Return the probabilities for all training rows, (training rows, classes), from the cache if it has them."""
    folder = Path(data.options.cache_dir) / "teachers" / key
    doing = f"teacher={name} predicts {len(data.rows('train')):,} training texts"
    cache.provide(folder, lambda new: cache.save_array(new / FILE, predict().astype(np.float32)), doing)
    return np.load(folder / FILE, mmap_mode="r")


def _facts_of(data: ReviewData) -> dict[str, Any]:
    """Return everything about the data that the predictions of its training rows depend on."""
    return {
        "source": data.source.fingerprint,
        "text_column": data.options.text_column,
        "rows": _digest(data.rows("train")),
        "targets": _digest(data.targets[data.rows("train")]),
        "classes": data.num_classes,
        "balance": data.options.balance.value,
        "split_seed": data.options.split_seed,
    }


def _digest(array: NDArray[Any]) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def _quality(shares: Tensor, data: ReviewData) -> dict[str, float]:
    """Return the accuracy and the loss of a teacher on the training rows. shares: (training rows, classes)."""
    targets = torch.from_numpy(data.targets[data.rows("train")])
    chosen = shares.clamp(min=SMALLEST_SHARE).gather(1, targets[:, None])
    accuracy, loss = float((shares.argmax(dim=1) == targets).float().mean()), float(-chosen.log().mean())
    log.info("The teacher has an accuracy of %.1f%% and a loss of %.4f on the training texts", 100 * accuracy, loss)
    return {"train_accuracy": round(accuracy, 6), "train_loss": round(loss, 6)}


def tfidf_probabilities(data: ReviewData, folds: int) -> NDArray[np.float64]:
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


def tfidf_vectorizer(tokenizer: Callable[[str], list[str]], longest: int, **options: Any) -> TfidfVectorizer:
    """Return scikit-learn's vectorizer of n-grams of up to `longest` tokens. tokenizer: function that splits a text."""
    n_grams = {"tokenizer": tokenizer, "token_pattern": None, "lowercase": False, "ngram_range": (1, longest)}
    return TfidfVectorizer(**n_grams, sublinear_tf=True, **options)


def _features(texts: list[str], longest: int) -> csr_matrix:
    """Return the TF-IDF weights of the n-grams of words and marks of each text, (texts, features)."""
    try:
        return tfidf_vectorizer(words_and_marks, longest, min_df=LEAST_TEXTS).fit_transform(texts)
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
