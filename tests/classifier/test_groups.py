"""Groups of rows: their names, the accuracy of each, and what is refused."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from firstlight.classifier.data import ReviewData
from firstlight.classifier.evaluation import Judged
from firstlight.errors import UserError


def mixture(folder: Path, **options: Any) -> ReviewData:
    rows = [
        {"text": f"text {i}", "label": 4 * (i % 2), "shop": "ab"[i % 2], "id": f"{'xy'[i // 30]}_2_{i}"}
        for i in range(60)
    ]
    (folder / "mixture.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ReviewData(path=str(folder / "mixture.jsonl"), cache_dir=str(folder / "cache"), **options)


@pytest.mark.parametrize(
    ("named", "expected"),
    [("shop", ["a", "b", "a", "b"]), ("id:^(.+)_", ["x_2", "x_2", "y_2", "y_2"]), (None, [])],
)
def test_a_column_or_a_part_of_it_names_the_group_of_each_row(tmp_path: Path, named, expected) -> None:
    data = mixture(tmp_path, group_column=named)
    data.ensure_setup()
    assert data.groups(np.array([2, 5, 40, 31])) == expected


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("store", r"^data.group_column=store: .*mixture.jsonl:1: the column 'store' does not exist; the columns are "),
        (
            "id:^(z)_",
            r"^data.group_column=id:\^\(z\)_: 'x_2_\d+' of .* names no group; change the column or the pattern$",
        ),
    ],
)
def test_a_missing_column_and_a_value_without_a_group_are_refused_before_the_training(tmp_path, named, message) -> None:
    with pytest.raises(UserError, match=message):
        mixture(tmp_path, group_column=named).ensure_setup()


@pytest.mark.parametrize("named", ["id:^x_", "id:(", ":(.)"])
def test_a_pattern_must_be_a_regular_expression_with_a_group(tmp_path: Path, named: str) -> None:
    with pytest.raises(ValueError, match=r"^data\.group_column="):
        mixture(tmp_path, group_column=named)


def test_each_group_has_its_accuracy_with_the_interval_of_wilson() -> None:
    data: Any = SimpleNamespace(targets=np.array([0, 0, 1, 1, 1]), groups=lambda rows: ["b", "a", "b", "b", "b"])
    judged = Judged(data, "test", np.arange(5), torch.tensor([[-1.0], [1.0], [1.0], [1.0], [-1.0]]))
    first, second = judged.per_group()
    z2 = 1.959964**2
    assert first == {
        "group": "a",
        "texts": 1,
        "accuracy": 0,
        "low": pytest.approx(0),
        "high": pytest.approx(z2 / (1 + z2)),
    }
    middle, half = (3 + z2 / 2) / (4 + z2), (z2 * (3 / 4 + z2 / 4)) ** 0.5 / (4 + z2)
    bounds = {"low": pytest.approx(middle - half), "high": pytest.approx(middle + half)}
    assert second == {"group": "b", "texts": 4, "accuracy": 0.75, **bounds}
