"""The target encoding in a data module, in the metadata of a checkpoint, and in another data module."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from firstlight.classifier.prediction import target_encoding_of
from firstlight.data import ReviewData
from firstlight.errors import UserError
from firstlight.kind.load import open_checkpoint
from firstlight.lit import Classification
from firstlight.lit.checkpoint import METADATA
from firstlight.lit.metadata import refuse_other_readings
from firstlight.lit.networks import build_network
from firstlight.networks import ClassifierConfig

Change = Callable[[dict[str, Any]], object]
WORDS = ["awful", "weak", "fine", "good", "great"]


def write(path: Path, shift: int = 0) -> Path:
    rows = [f"a {WORDS[(i + shift) % 5]} thing and a {WORDS[i % 5]} one number {i % 3},{i % 5}" for i in range(60)]
    path.write_text("\n".join(["text,label", *rows]))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("target_encoding")


def reviews(path: Path, **options: Any) -> ReviewData:
    cache = str(path.parent / "cache")
    return ReviewData(path=str(path), labels="stars", context_length=13, cache_dir=cache, **options)


@pytest.fixture(scope="module")
def data(folder: Path) -> ReviewData:
    return reviews(write(folder / "rows.csv"), target_encoding=True, target_encoding_pairs=11)


@pytest.fixture(scope="module")
def module(data: ReviewData) -> Classification:
    return Classification.for_data(data, dim=8, num_heads=2)


def test_the_metadata_has_the_table_and_the_network_nothing_but_weights(module, data) -> None:
    assert set(module.metadata["target_encoding"]) == set(data.target_encoding.table())
    assert {name for name, _ in module.network.named_buffers()} <= {"positions.table"}
    for batch in data.train_dataloader():
        assert not torch.equal(batch.features, data.target_encoding(batch.token_ids))


@pytest.mark.parametrize(("shift", "are_counted"), [(0, True), (1, False)], ids=["the same", "other"])
def test_a_module_is_trained_further_on_data_with_its_own_target_encoding(shift, are_counted, module, data, folder):
    further = reviews(write(folder / f"further_{shift}.csv", shift))
    further.use_vocabulary_of(module)
    further.ensure_setup()
    for name, expected in module.metadata["target_encoding"].items():
        assert torch.equal(further.target_encoding.table()[name], expected)
    batch = next(iter(further.train_dataloader()))
    own = batch.targets if are_counted else None
    assert torch.equal(batch.features, further.target_encoding(batch.token_ids, own))
    batch = next(iter(further.val_dataloader()))
    assert torch.equal(batch.features, further.target_encoding(batch.token_ids))


def test_data_with_other_target_encoding_is_refused(module: Classification, folder: Path) -> None:
    other = reviews(
        write(folder / "rows.csv"), target_encoding=True, target_encoding_pairs=11, target_encoding_shrinkage=1.0
    )
    other.ensure_setup()
    with pytest.raises(UserError, match="the data does not have the target encoding of the network"):
        refuse_other_readings(module.metadata, other.val_dataloader())


def test_a_network_of_ones_own_must_take_the_features() -> None:
    config = ClassifierConfig(_target_="firstlight.classifier.network.BagOfWords")
    with pytest.raises(UserError, match=r"data.target_encoding=true requires the argument num_features"):
        build_network(config, vocab_size=13, num_classes=5, num_features=3)


def test_a_network_of_ones_own_that_takes_no_features_reads_batches_without() -> None:
    class Counter(nn.Module):
        def forward(self, token_ids: Tensor, padding_mask: Tensor | None) -> Tensor:
            return token_ids.float()[:, :5]

    token_ids = torch.randint(2, 13, (3, 7))
    assert torch.equal(Classification(Counter())(token_ids), token_ids.float()[:, :5])


BROKEN: dict[str, tuple[Change, str]] = {
    "a number": (lambda metadata: metadata.update(target_encoding=3), "target_encoding in the checkpoint is missing"),
    "another vocabulary": (
        lambda metadata: metadata["target_encoding"].update(word_scores=torch.zeros(3, 2)),
        r"is broken \(word_scores must be a tensor of type torch.float32 and shape",
    ),
    "no pairs": (lambda metadata: metadata["target_encoding"].pop("pair_keys"), r"is broken \(pair_keys must be"),
    "no table": (lambda metadata: metadata.pop("target_encoding"), "is .* in the file, but missing in the network"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_table_in_a_checkpoint_is_one_line(case: str, module: Classification, tmp_path: Path) -> None:
    change, message = BROKEN[case]
    content: dict[str, Any] = {"state_dict": module.state_dict()}
    module.on_save_checkpoint(content)
    content[METADATA]["target_encoding"] = dict(content[METADATA]["target_encoding"])
    change(content[METADATA])
    torch.save(content, tmp_path / "broken.ckpt")
    with pytest.raises(UserError, match=message) as raised:
        Classification.load_from_checkpoint(tmp_path / "broken.ckpt")
        metadata = open_checkpoint(tmp_path / "broken.ckpt")[METADATA]
        target_encoding_of(metadata, module.tokenizer.vocab_size, tmp_path / "broken.ckpt")
    assert "\n" not in str(raised.value)
