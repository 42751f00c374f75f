"""Teachers of a classifier, which predict every training row once, before the training."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from functools import cache as cache_of
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.classifier import run_teacher, tfidf_teacher
from firstlight.classifier.data import ReviewData
from firstlight.classifier.run import ClassifierRun
from firstlight.data import cache
from firstlight.data.store import key_of
from firstlight.kind.teachers import DistillationTarget, Named, digest_of
from firstlight.lit.distillation import RowTeacher
from firstlight.lit.distillation_options import DistillationOptions

log = logging.getLogger(__name__)

SMALLEST_SHARE = 1e-6  # the logarithm of 0 is infinite
FILE = "probabilities.npy"


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
    key = key_of({"teacher": name, "version": tfidf_teacher.VERSION, "folds": folds, **_facts_of(data)})
    return _cached(data, key, lambda: tfidf_teacher.probabilities(data, folds), name), [key]


def _of_runs(name: str, runs: Sequence[Any], data: ReviewData) -> tuple[NDArray[np.floating], list[str]]:
    """Return the same for runs, with a key for each."""
    rows = data.rows("train")
    is_seen = np.stack([run_teacher.seen_rows(run, data) for run in runs])  # (runs, training rows)
    shares, keys = [], []
    texts = cache_of(lambda: data.source.texts(data.options.text_columns, rows.tolist()))
    for run, seen in zip(runs, is_seen, strict=True):
        facts = {"teacher": digest_of(run), "version": run_teacher.VERSION, "seen": _digest(seen), **_facts_of(data)}
        keys.append(key_of(facts))
        predict = partial(_predicted, run, texts, data.targets[rows], seen)
        shares.append(_cached(data, keys[-1], predict, str(run.path)))
    return run_teacher.mean_of_unseen(name, np.stack(shares), is_seen), keys


def _predicted(
    run: ClassifierRun, texts: Callable[[], list[str]], targets: NDArray[np.int64], is_seen: NDArray[np.bool_]
) -> NDArray[np.float32]:
    return run_teacher.predict(run, texts(), targets, is_seen)


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
