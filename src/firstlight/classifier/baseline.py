"""Baselines of the classifiers: logistic regression on TF-IDF features, and NB-SVM."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from scipy.special import expit
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion

from firstlight.callbacks.evaluation import SPLITS
from firstlight.classifier.data import ReviewData
from firstlight.classifier.evaluation import Judged
from firstlight.data.options import Balance, ReviewOptions
from firstlight.data.row_options import by_row
from firstlight.errors import UserError
from firstlight.kind.data_changes import DataChanges, changed_options
from firstlight.kind.kind import Fitted, best_of, say_choice
from firstlight.lit.losses import group_terms
from firstlight.runs.predictions import FOLDER
from firstlight.terminal_text import say
from firstlight.text.normalize import simplify, words
from firstlight.text.tokenizers import NO_WORDS

REGULARIZATION = (0.3, 1.0, 3.0, 10.0, 30.0)  # scikit-learn's C, the inverse of the regularization strength
MOST_OF_NB_SVM = 10.0  # its largest C: more are slower, and were not better in validation
MOST_STEPS = 1000
MOST_FEATURES = 200_000
MOST_WEIGHTS = 20_000_000  # weights of all classes; the solver stores about twenty copies
SMALLEST_SHARE = 1e-12  # the probability of a class that a model excludes, in its loss


class NaiveBayesRegression(LogisticRegression):
    """Logistic regressions of each class against the others, on features weighted by naive Bayes (NB-SVM).

    The weight of a feature is log(p / q), where p and q are its shares, smoothed by one text, in the texts of the class
    and in the others (Wang and Manning 2012). `coef_` includes the weights, so it applies to the features themselves.
    Two classes have one regression. The probabilities of more classes are scaled to a sum of 1.
    """

    classes_: Any
    coef_: Any
    intercept_: Any

    def fit(
        self, features: csr_matrix, targets: NDArray[np.int64], sample_weight: NDArray[np.float64] | None = None
    ) -> "NaiveBayesRegression":
        """Fit the regressions. features: (texts, features); targets, sample_weight: (texts,)."""
        classes, occurs = np.unique(targets), (features > 0).astype(np.float64)
        of_texts = np.ones(len(targets)) if sample_weight is None else sample_weight
        coefficients, intercepts = [], []
        for each in classes[1:] if len(classes) == 2 else classes:
            is_class = targets == each
            of_class, others = (occurs.T @ (of_texts * chosen) + 1 for chosen in (is_class, ~is_class))
            ratios = np.log(of_class / of_class.sum()) - np.log(others / others.sum())
            super().fit(features @ diags(ratios.astype(features.dtype)), is_class, sample_weight)
            coefficients.append(self.coef_[0] * ratios)
            intercepts.append(self.intercept_[0])
        self.classes_, self.coef_, self.intercept_ = classes, np.stack(coefficients), np.array(intercepts)
        return self

    def predict_proba(self, features: csr_matrix) -> NDArray[np.float64]:
        """Return the probability of each class, (texts, classes)."""
        shares = expit(self.decision_function(features))
        shares = np.stack((1 - shares, shares), axis=1) if shares.ndim == 1 else shares
        return shares / shares.sum(axis=1, keepdims=True)


REGRESSIONS = {"tfidf": LogisticRegression, "nb-svm": NaiveBayesRegression}


def fit(
    data: ReviewData,
    metric: str,
    folder: Path,
    max_words: int | None = None,
    group_prior: bool = False,
    method: str = "tfidf",
) -> Fitted:
    """Fit one regression for each C, choose one by a validation metric, and save its figures in `folder`.

    The texts are not cut to a context. For multiple choice, the regression reads each answer without the context, so it
    measures what the answers alone reveal. Raises UserError for texts without a word.

    max_words: the number of most frequent words that are the features, without pairs of words; None: words and pairs.
    group_prior: whether rows are weighted by 1 / P(class | group), as in `row_weights`.
    method: tfidf, or nb-svm for a `NaiveBayesRegression` on words, pairs, triples and 2 to 5 characters.
    """
    sizes = {"sublinear_tf": True, "max_features": min(max_words or MOST_FEATURES, MOST_WEIGHTS // data.num_classes)}
    of_words = {"tokenizer": words, "token_pattern": None, "lowercase": False} | sizes
    vectorizer = TfidfVectorizer(ngram_range=(1, 2 if max_words is None else 1), **of_words)
    if method == "nb-svm":
        triples = TfidfVectorizer(ngram_range=(1, 3), **of_words, dtype=np.float32)
        parts = {"analyzer": "char_wb", "ngram_range": (2, 5), "preprocessor": simplify, "dtype": np.float32}
        vectorizer = FeatureUnion([("words", triples), ("characters", TfidfVectorizer(**parts, **sizes))])
    say(data.label_reading, flush=True)
    texts = _texts(data, "train")
    if not any(map(words, texts)):
        raise UserError(NO_WORDS)
    training, targets = vectorizer.fit_transform(texts), _fitted_targets(data)
    validation = vectorizer.transform(_texts(data, "validation"))
    weights = None if data.options.balance is Balance.none else "balanced"
    of_rows = row_weights(data, group_prior)
    models, judged, tried = {}, {}, {}
    for strength in (each for each in REGULARIZATION if method == "tfidf" or each <= MOST_OF_NB_SVM):
        regression = REGRESSIONS[method](C=strength, max_iter=MOST_STEPS, class_weight=weights)
        models[strength] = regression.fit(training, targets, sample_weight=of_rows)
        judged[strength] = _judged(models[strength], validation, data, "validation")
        tried[strength] = _metrics(judged[strength], "val")
        say_choice("C", strength, tried[strength])
    chosen = best_of(tried, metric)
    _save(judged[chosen], folder, "validation")

    def measured(read: ReviewData, name: str) -> dict[str, float]:
        found = _judged(models[chosen], vectorizer.transform(_texts(read, "test")), read, "test")
        _save(found, folder, name)
        return _metrics(found, name)

    def other(saved: dict[str, Any], changes: DataChanges, log_dir: Path) -> dict[str, float]:
        options = changed_options(saved, ReviewOptions, changes, log_dir)
        return measured(_opened(data, options, changes.only_split), "other")

    num_weights = models[chosen].coef_.size + models[chosen].intercept_.size
    return Fitted(num_weights, "C", chosen, tried, lambda: measured(data, "test"), lambda: references(data), other)


def row_weights(data: ReviewData, group_prior: bool) -> NDArray[np.float64] | None:
    """Return the weight of each fitted row, with a mean of 1, or None if all are equal.

    It is the product of `data.group_weights` and, with `group_prior`, of 1 / P(class | group) with add-one smoothing.
    Raises UserError for `group_prior` without `data.group_column`.
    """
    if not group_prior and data.options.group_weights is None:
        return None
    if data.options.group_column is None:
        raise UserError("--group-prior requires --data.group-column; set it to the column of the groups")
    terms, rows = group_terms(data), data.rows("train")
    groups = terms.numbers[rows]
    weights = np.ones(len(rows)) if terms.weights is None else terms.weights[groups].double().numpy()
    if group_prior:
        weights = weights * (-terms.log_priors[groups, data.targets[rows]]).exp().double().numpy()
    weights = weights / weights.mean()
    return weights if data.options.choices is None else weights.repeat(data.num_classes)


def references(data: ReviewData) -> dict[str, dict[str, float]]:
    """Return the accuracies of guessing, and of always answering the largest class of the training rows."""
    largest = np.bincount(data.targets[data.rows("train")], minlength=data.num_classes).argmax()
    targets = {stage: data.targets[data.rows(split)] for stage, split in SPLITS.items() if data.has_split(split)}
    return {
        "chance": {f"{stage}/accuracy": 1 / data.num_classes for stage in targets},
        "largest_class": {f"{stage}/accuracy": float((found == largest).mean()) for stage, found in targets.items()},
    }


def _opened(data: ReviewData, options: ReviewOptions, only_split: str) -> ReviewData:
    """Return other data with the classes of this data. Raises UserError if its test split has no targets."""
    other = ReviewData(**vars(options))
    other.only_split = only_split
    other.read_as(data.reading())
    other.setup("test")
    if not other.has_split("test"):
        raise UserError(f"{other.source.where}: the test split has no rows for data.labels={other.labels.value}")
    return other


def _texts(data: ReviewData, split: str) -> list[str]:
    """Return the texts of a split, or all answers of rows of multiple choice, row by row."""
    options, rows = data.options, data.rows(split).tolist()
    if options.choice_columns is None:
        return data.source.texts(options.text_columns, rows)
    return [answer for answers in data.source.values(options.choice_columns, rows) for answer in answers]


def _fitted_targets(data: ReviewData) -> NDArray[np.int64]:
    """Return the target of each training text; for multiple choice, 1 for each correct answer and 0 for the others."""
    targets = data.targets[data.rows("train")]
    if data.options.choices is None:
        return targets
    return (targets[:, None] == np.arange(data.num_classes)).ravel().astype(np.int64)


def _judged(model: LogisticRegression, features: csr_matrix, data: ReviewData, split: str) -> Judged:
    """Return the predictions for a split. For multiple choice, they are the softmax of the answers' log-odds."""
    if data.options.choices is not None:
        logits = by_row(model.decision_function(features), data.options.choices)
    else:
        shares = np.full((features.shape[0], data.num_classes), SMALLEST_SHARE)
        shares[:, model.classes_] = model.predict_proba(features).clip(min=SMALLEST_SHARE)
        logits = np.log(shares)
    return Judged(data, split, data.rows(split), torch.from_numpy(logits))


def _metrics(judged: Judged, stage: str) -> dict[str, float]:
    """Return the loss and metrics with the names that a training uses."""
    return {f"{stage}/{name}": value for name, value in judged.metrics().items()}


def _save(judged: Judged, folder: Path, name: str) -> None:
    """Write confusion_matrix/<name>.png and .csv and predictions/<name>.npz, as a training does."""
    (folder / "confusion_matrix").mkdir(exist_ok=True)
    judged.write_confusion_matrix(folder / "confusion_matrix" / name)
    judged.write_predictions(folder / FOLDER / f"{name}.npz")
