"""The files of predictions that a validation or a test writes, for each kind of batch."""

from pathlib import Path

import numpy as np
import pytest
import torch

from firstlight.callbacks.write_predictions import PIECE, WritePredictions, _of_tokens, predictions_of
from firstlight.data.tables import IGNORED, TokenBatch
from firstlight.masked.network import MaskedBatch
from firstlight.runs.predictions import Predictions, read_predictions
from firstlight.translator.data import PairBatch


def read(path: Path) -> Predictions:
    found = read_predictions(path)
    assert found is not None
    return found


def test_a_classifiers_file_has_the_loss_and_the_class_of_each_text(bench, judged, tmp_path: Path) -> None:
    data = bench.data()
    trainer = bench.fit(WritePredictions(tmp_path / "predictions"), data=data)
    assert not (tmp_path / "predictions").exists()  # the validations of a training write nothing
    trainer.callbacks.append(judged)
    (metrics,) = trainer.validate(trainer.lightning_module, datamodule=data, verbose=False)
    found = read(tmp_path / "predictions" / "validation.npz")
    assert found.rows.tolist() == sorted(data.rows("validation").tolist())
    assert sorted(found.predicted.tolist()) == sorted(judged.predictions["val"])
    assert (found.correct == (found.predicted == found.targets)).all()
    assert found.values("val/accuracy").mean() == pytest.approx(
        np.equal(*map(np.array, (judged.targets["val"], judged.predictions["val"]))).mean()
    )
    assert found.values("val/loss").mean() == pytest.approx(metrics["val/loss"], rel=1e-3)
    assert (found.values("val/mean_absolute_error") == abs(found.predicted - found.targets)).all()
    assert found.values("val/macro_f1") is None
    assert not (tmp_path / "predictions" / "test.npz").exists()


def test_a_text_is_divided_into_pieces_whatever_the_context_is() -> None:
    generator = torch.Generator().manual_seed(1)
    targets = torch.randint(0, 7, (1, 1200), generator=generator)
    losses = torch.rand(1, 1200, generator=generator)
    outputs = {"token_losses": losses, "predicted": targets.clone()}
    outputs["predicted"][0, 300] = 9

    def cut(length: int) -> Predictions:
        parts = [
            _of_tokens({name: each[:, i : i + length] for name, each in outputs.items()},
                       TokenBatch(targets[:, i : i + length], targets[:, i : i + length]))
            for i in range(0, 1200, length)
        ]  # fmt: skip
        return predictions_of({name: torch.cat([part[name] for part in parts]).numpy() for name in parts[0]})

    long, short = cut(400), cut(16)
    assert long.key == short.key
    assert long.tokens.tolist() == [PIECE] * 4 + [1200 - 4 * PIECE]
    assert np.allclose(long.losses, short.losses)
    assert long.losses[0] == pytest.approx(float(losses[0, :PIECE].sum()), rel=1e-5)
    assert (long.tokens - long.correct).tolist() == [0, 1, 0, 0, 0]
    assert long.predicted is None
    outputs["token_losses"] = losses + 1
    targets[0, 7] += 1
    assert cut(400).key != long.key  # other targets cannot be paired


def pairs() -> tuple[PairBatch, dict[str, torch.Tensor]]:
    """Return a batch of two sentence pairs with padding, and outputs for it."""
    targets = torch.tensor([[3, 4, IGNORED], [5, IGNORED, IGNORED]])
    nothing = torch.zeros(2, 1, dtype=torch.long)
    losses = torch.tensor([[0.5, 0.25, 0.0], [2.0, 0.0, 0.0]])
    batch = PairBatch(nothing, nothing > 0, nothing, targets, targets != IGNORED, torch.tensor([13, 11]), 3)
    return batch, {"token_losses": losses, "predicted": torch.tensor([[3, 9, IGNORED], [5, 1, 1]])}


def masked_words() -> tuple[MaskedBatch, dict[str, torch.Tensor]]:
    """Return a batch with two masked words in the first row, none in the second and one in the third, and outputs."""
    ids, losses = torch.zeros(3, 5, dtype=torch.long), torch.tensor([0.5, 1.0, 2.0])
    places, targets = torch.tensor([1, 4, 12]), torch.tensor([6, 7, 8])
    batch = MaskedBatch(ids, ids == 0, places, targets, torch.tensor([2, 3, 5]), 15)
    return batch, {"token_losses": losses, "predicted": torch.tensor([6, 1, 8])}


@pytest.mark.parametrize(
    ("made", "rows", "tokens", "losses"),
    [(pairs(), [11, 13], [1, 2], [2.0, 0.75]), (masked_words(), [2, 5], [2, 1], [1.5, 2.0])],
    ids=["pairs", "masked words"],
)
def test_the_targets_of_a_text_are_summed_without_padding(made, rows, tokens, losses) -> None:
    batch, outputs = made
    found = predictions_of({name: each.numpy() for name, each in _of_tokens(outputs, batch).items()})
    assert (found.rows.tolist(), found.tokens.tolist(), found.losses.tolist()) == (rows, tokens, losses)
    assert found.correct.tolist() == [1, 1]
