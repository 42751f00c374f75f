from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstlight.data import ReviewData
from firstlight.data.store import SPLITS, folds_of, folds_of_groups
from firstlight.errors import UserError
from firstlight.generator.data import CharacterData
from firstlight.kind.data_changes import DataChanges, changed_options
from firstlight.translator.data import PairData
from tests_support import write_lines

SIZES = {"train": 103, "validation": 20, "test": 30}


@pytest.fixture
def labeled(write, folder) -> Path:
    """Return a folder of labeled texts with three splits, whose first rows have class 2."""
    for split, count in SIZES.items():
        write(**{split: [{"text": f"{split} text {n}", "label": 2 if n < 20 else n % 2} for n in range(count)]})
    return folder


def reviews(folder: Path, **options: Any) -> ReviewData:
    data = ReviewData(path=str(folder), labels="classes", cache_dir=str(folder.parent / "cache"), **options)
    data.ensure_setup()
    return data


def splits(data: Any) -> dict[str, list[int]]:
    return {split: data.rows(split).tolist() for split in SPLITS}


def test_every_training_row_is_in_the_test_split_of_one_fold_and_not_in_its_training(labeled):
    found = [splits(reviews(labeled, folds=5, fold=fold)) for fold in range(5)]
    assert sorted(row for each in found for row in each["test"]) == list(range(103))
    for each in found:
        assert sorted(each["train"] + each["test"]) == list(range(103))
        assert each["validation"] == list(range(103, 123))


def test_all_rows_are_divided_if_asked_and_validation_is_a_part_of_the_others(labeled):
    found = [splits(reviews(labeled, folds=10, fold=fold, fold_rows="all")) for fold in range(10)]
    assert sorted(row for each in found for row in each["test"]) == list(range(153))
    for each in found:
        assert sorted(chain.from_iterable(each.values())) == list(range(153))
        assert 12 <= len(each["validation"]) <= 15


def test_words_of_the_test_fold_are_not_in_the_vocabulary(labeled):
    data = reviews(labeled, folds=5, fold=2, tokenizer={"kind": "word", "min_document_frequency": 1})
    numbers = {str(row) for row in range(23, 103)} & set(data.tokenizer.words)
    assert numbers == {str(row) for row in data.rows("train") if row >= 23}


def test_each_fold_has_the_same_share_of_every_class():
    labels = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [700, 203, 11]))
    folds = folds_of(labels, 5, seed=0)
    for label in range(3):
        counts = np.bincount(folds[labels == label], minlength=5)
        assert counts.max() - counts.min() <= 1
    counts = np.bincount(folds)
    assert counts.max() - counts.min() <= 1


def test_only_the_seed_of_the_folds_changes_them(labeled):
    usual = splits(reviews(labeled, folds=5, fold=1))
    assert splits(reviews(labeled, folds=5, fold=1, seed=7, split_seed=8)) == usual
    assert splits(reviews(labeled, folds=5, fold=1, fold_seed=1)) != usual


def test_the_numbers_of_the_classes_do_not_change_the_folds(labeled):
    usual = splits(reviews(labeled, folds=5, fold=1))
    assert splits(reviews(labeled, folds=5, fold=1, class_names=["2", "0", "1"])) == usual


def test_no_group_is_in_two_folds_and_every_row_is_tested_once(tmp_path, caplog):
    random = np.random.default_rng(5)
    lines = [{"text": f"text {n}", "label": n % 2, "by": f"{random.integers(23)}_{n}"} for n in range(211)]
    write_lines(tmp_path / "texts.jsonl", lines)
    options = {"group_column": "by:^(.+)_", "tokenizer": {"kind": "word", "min_document_frequency": 1}}
    found = [reviews(tmp_path / "texts.jsonl", folds=5, fold=fold, **options) for fold in range(5)]
    assert sorted(row for each in found for row in each.rows("test").tolist()) == list(range(211))
    for each in found:
        others = np.concatenate([each.rows("train"), each.rows("validation")])
        assert set(each.groups(each.rows("test"))).isdisjoint(each.groups(others))
        assert 30 <= len(each.rows("test")) <= 60
        assert each.targets[each.rows("test")].mean() == pytest.approx(0.5, abs=0.1)
    assert "no group is divided" not in caplog.text
    of_one = [reviews(tmp_path / "texts.jsonl", folds=5, fold=fold, fold_group="7", **options) for fold in range(5)]
    divided = [row for row in range(211) if lines[row]["by"].startswith("7_")]
    assert sorted(row for each in of_one for row in each.rows("test").tolist()) == divided
    with pytest.raises(UserError, match=r"data.fold_group: 23 is not a group of the training rows"):
        reviews(tmp_path / "texts.jsonl", folds=5, fold_group="23", **options)
    undivided = reviews(tmp_path / "texts.jsonl", folds=5, **options | {"group_column": None})
    assert splits(undivided) != splits(found[0])
    with pytest.raises(UserError, match=r"data.folds=24 must be at most the number of groups of data.group_column, 23"):
        reviews(tmp_path / "texts.jsonl", folds=24, **options)


def test_folds_of_unequal_groups_are_told(caplog):
    groups = np.repeat(["a", "b", "c"], [70, 20, 10])
    folds = folds_of_groups(np.arange(100) % 2, groups, 3, seed=0)
    assert sorted(np.bincount(folds).tolist()) == [10, 20, 70]
    assert "The folds have 10 to 70 rows, because no group is divided" in caplog.text


def test_names_and_pairs_are_divided_too(tmp_path):
    names = ["".join(letters) for letters in product("abcde", repeat=2)]
    (tmp_path / "names.txt").write_text("\n".join(names))
    lines = {"preparation": "lines", "context_length": 8, "cache_dir": str(tmp_path / "cache")}
    texts = []
    for fold in range(3):
        data = CharacterData(path=str(tmp_path / "names.txt"), **lines, folds=3, fold=fold)
        data.ensure_setup()
        texts += data.texts_of("test")
        assert not set(data.texts_of("test")) & {*data.texts_of("train"), *data.texts_of("validation")}
    assert sorted(texts) == names
    pairs = [{"source": f"a {n}", "target": f"b {n}"} for n in range(40)]
    write_lines(tmp_path / "pairs.jsonl", pairs)
    found = []
    for fold in range(4):
        data = PairData(
            path=str(tmp_path / "pairs.jsonl"), source_column="source", target_column="target", folds=4, fold=fold,
            cache_dir=str(tmp_path / "cache"), tokenizer={"kind": "word", "min_document_frequency": 1},
        )  # fmt: skip
        data.ensure_setup()
        found += data.rows("test").tolist()
        assert not set(data.rows("test")) & {*data.rows("train"), *data.rows("validation")}
    assert sorted(found) == list(range(40))


def test_other_data_is_not_divided(labeled, tmp_path):
    saved = {"path": str(labeled), "labels": "classes", "folds": 5, "fold": 3}
    kind = ReviewData.options_type
    assert kind is not None
    own = changed_options(saved, kind, DataChanges(), tmp_path)
    other = changed_options(saved, kind, DataChanges(path=str(labeled)), tmp_path)
    assert (own.folds, own.fold) == (5, 3)
    assert (other.folds, other.fold) == (None, 0)


def test_more_folds_than_rows_are_refused(labeled):
    with pytest.raises(UserError, match=r"data.folds=104 must be at most the number of rows, 103"):
        reviews(labeled, folds=104)
