"""Trained classifiers as teachers. Each training text is predicted by the runs that were not trained on it."""

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from firstlight.choices import listed
from firstlight.classifier.data import ReviewData
from firstlight.classifier.run import ClassifierRun
from firstlight.errors import UserError
from firstlight.kind.teachers import has_same_data
from firstlight.lit.losses import probabilities

log = logging.getLogger(__name__)

VERSION = 1  # increase it when the predictions change, so that the cache is not reused
ROWS_OF_A_RUN = ("max_train_rows", "split_seed", "folds", "left_out_fold")  # the options of `data` that choose them


def seen_rows(run: ClassifierRun, data: ReviewData) -> NDArray[np.bool_]:
    """Return which training rows a run was trained on, (training rows,).

    Raises UserError if the run has other classes, or has seen rows of the validation split.
    """
    if run.class_names != data.class_names:
        raise UserError(
            f"teacher={run.path}: the run predicts {listed(run.class_names)}, but this data has the classes "
            f"{listed(data.class_names)}; name a run with the same classes"
        )
    rows = data.rows("train")
    if not has_same_data(run, data):
        return np.zeros(len(rows), bool)
    try:
        saved = {name: run.config["data"][name] for name in ROWS_OF_A_RUN}
        theirs = data.training_rows_of(replace(data.options, **saved))
    except (TypeError, ValueError, KeyError) as error:
        raise UserError(f"teacher={run.path}: the options of its data cannot be used: {error}") from error
    return np.isin(rows, theirs)


def predict(
    run: ClassifierRun, texts: list[str], targets: NDArray[np.int64], is_seen: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """Return the probabilities of the classes for some texts, (texts, classes).

    targets: (texts,) their classes; is_seen: (texts,) whether the run was trained on them. If the run has a target
    encoding, the class of such a text is removed from its own features, as in training.
    """
    ids = run.encode(texts)
    found = np.empty((len(texts), len(run.class_names)), np.float32)
    for rows, counted in ((np.flatnonzero(~is_seen), None), (np.flatnonzero(is_seen), targets)):
        if len(rows):
            found[rows] = probabilities(run.logits(ids, rows, counted)).numpy()
    return found


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
