"""Files of predictions, complete and damaged."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstlight.runs import predictions as module
from firstlight.runs.predictions import Predictions, UnreadablePredictions, key_of, read_predictions, write_predictions
from stand_ins import Calls


def some(count: int = 5, **changes: Any) -> Predictions:
    rows = np.arange(count) * 3
    losses = np.linspace(0.1, 7, count, dtype=np.float32)
    given = {"tokens": np.full(count, 400), "correct": np.arange(count) * 70, "key": key_of(rows, rows, rows)}
    return Predictions(rows=rows, losses=losses, **(given | changes))


def test_a_file_has_what_was_written_and_is_small(tmp_path: Path) -> None:
    path = tmp_path / "predictions" / "validation.npz"
    written = some(2500, tokens=np.ones(2500, int), correct=np.arange(2500) % 2, predicted=np.arange(2500) % 5)
    write_predictions(path, written)
    found = read_predictions(path)
    for name in ("rows", "tokens", "correct", "predicted"):
        assert getattr(found, name).tolist() == getattr(written, name).tolist()
    assert np.allclose(found.losses, written.losses, rtol=0.0005)
    assert (found.key, found.targets) == (written.key, None)
    assert path.stat().st_size < 10 * 2500
    assert read_predictions(tmp_path / "missing.npz") is None


def test_other_units_have_another_key() -> None:
    rows, tokens = np.arange(5), np.ones(5, int)
    assert key_of(rows, tokens, rows) == key_of(rows.astype(np.int32), tokens, rows)
    assert len({key_of(rows, tokens, rows), key_of(rows, tokens, rows + 1), key_of(rows + 1, tokens, rows)}) == 3


def arrays(**changes: Any) -> dict[str, Any]:
    given = {"rows": [1, 2], "losses": [0.5, 1.5], "tokens": [1, 1], "correct": [0, 1], "key": "k"} | changes
    return {name: np.array(value) for name, value in given.items() if value is not None}


DAMAGES = {
    "no array": arrays(losses=None),
    "another length": arrays(correct=[1]),
    "texts": arrays(rows=["a", "b"]),
    "empty": arrays(rows=np.zeros(0, int), losses=np.zeros(0), tokens=np.zeros(0, int), correct=np.zeros(0, int)),
    "not finite": arrays(losses=[0.5, np.nan]),
    "more hits than predictions": arrays(correct=[0, 2]),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_is_named(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "validation.npz"
    np.savez(path, **DAMAGES[kind])
    with pytest.raises(UnreadablePredictions, match=r"validation\.npz cannot be read"):
        read_predictions(path)


def test_a_file_that_is_cut_short_or_too_large_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "validation.npz"
    np.savez(path, **arrays())
    monkeypatch.setattr(module, "MOST_BYTES", 100)
    with pytest.raises(UnreadablePredictions, match="is larger than 100 bytes"):
        read_predictions(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UnreadablePredictions, match="cannot be read"):
        read_predictions(path)


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = io.BytesIO()
    np.savez(content, **arrays(), targets=np.array([Calls(Path("trapped").touch)], dtype=object), allow_pickle=True)
    Path("validation.npz").write_bytes(content.getvalue())
    with pytest.raises(UnreadablePredictions, match="cannot be read"):
        read_predictions(Path("validation.npz"))
    assert not Path("trapped").exists()
