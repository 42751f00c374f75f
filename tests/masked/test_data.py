import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from firstlight.classifier.data import ReviewData
from firstlight.generator.data import ReviewTextData
from firstlight.masked.data import MaskedBatch, MaskedReviewData
from stand_ins import with_trainer
from tests_support import write_lines

CONTEXT = 11


def training(data: MaskedReviewData) -> list[MaskedBatch]:
    """Return the batches of one pass, looked up like in the hooks of a trainer."""
    return [data.on_after_batch_transfer(batch, 0) for batch in data.train_dataloader()]


def unmasked(batch: MaskedBatch) -> Tensor:
    """Return the texts with the targets in their places."""
    return batch.token_ids.flatten().scatter(0, batch.places, batch.targets).view_as(batch.token_ids)


def masked_texts(batches: list[MaskedBatch]) -> dict[int, list[int]]:
    """Return the ids that a network gets, by row."""
    return {
        row: ids[mask].tolist()
        for batch in batches
        for row, ids, mask in zip(batch.rows.tolist(), batch.token_ids, batch.padding_mask, strict=True)
    }


def same(one: list[MaskedBatch], other: list[MaskedBatch]) -> bool:
    pairs = [(a, b) for first, second in zip(one, other, strict=True) for a, b in zip(first, second, strict=True)]
    return all(torch.equal(a, b) if isinstance(a, Tensor) else a == b for a, b in pairs)


def test_the_targets_are_the_tokens_that_a_classifier_reads_there(reviews, reviews_folder: Path) -> None:
    data = reviews(truncation="head_tail")
    places = {"path": str(reviews_folder), "cache_dir": str(reviews_folder / "cache")}
    plain = ReviewData(labels="stars", context_length=CONTEXT, truncation="head_tail", **places)
    plain.ensure_setup()
    assert data.tokenizer.words == plain.tokenizer.words
    texts = masked_texts(plain.val_dataloader())  # type: ignore[arg-type]
    for batch in data.val_dataloader():
        whole = batch._replace(token_ids=unmasked(batch))
        assert masked_texts([whole]) == {row: texts[row] for row in batch.rows.tolist()}
        assert batch.num_tokens == batch.padding_mask.sum()
        assert batch.num_targets == len(batch.targets) == len(batch.places)
        changed = batch.token_ids != unmasked(batch)
        places = torch.zeros_like(changed).flatten().index_fill(0, batch.places, value=True).view_as(changed)
        assert not (changed & ~places).any()
        assert places[batch.padding_mask].float().mean() == pytest.approx(0.15, abs=0.05)
        assert not places[~batch.padding_mask].any()


def test_validation_is_masked_alike_whatever_the_seed_and_the_batches(reviews) -> None:
    first, other = reviews(seed=1), reviews(seed=2, evaluation_batch_size=7)
    texts = masked_texts(list(first.val_dataloader()))
    assert texts == masked_texts(list(first.val_dataloader())) == masked_texts(list(other.val_dataloader()))
    assert texts != masked_texts([batch._replace(token_ids=unmasked(batch)) for batch in first.val_dataloader()])


def test_each_pass_masks_other_words_and_the_seed_decides_them(reviews) -> None:
    data = with_trainer(reviews())
    first, again = training(data), training(data)
    assert same(first, again)
    steps = len(first)
    second = training(with_trainer(data, step=steps))
    texts, others = masked_texts(first), masked_texts(second)
    assert texts.keys() == others.keys()
    assert sum(texts[row] == others[row] for row in texts) < 0.3 * len(texts)
    seeded = masked_texts(training(with_trainer(reviews(seed=2))))
    assert sum(texts[row] == seeded[row] for row in texts) < 0.3 * len(texts)


def test_a_resumed_training_sees_the_batches_and_masks_of_an_uninterrupted_one(reviews) -> None:
    data = reviews(bucket_by_length=True)
    first = training(with_trainer(data))
    second = training(with_trainer(data, step=len(first)))
    resumed = training(with_trainer(data, step=4))
    assert same(resumed, [*first[4:], *second[:4]])


def test_several_processes_share_a_batch_and_mask_it_as_one_does(reviews) -> None:
    whole = masked_texts(training(with_trainer(reviews(batch_size=40))))
    parts = [training(with_trainer(reviews(batch_size=20), rank=rank, world_size=2)) for rank in (0, 1)]
    shared = masked_texts([*parts[0], *parts[1]])
    assert shared == whole
    assert len(parts[0]) == len(parts[1])


def test_an_empty_text_has_no_target(tmp_path: Path) -> None:
    for split in ("train", "validation"):
        write_lines(tmp_path / f"{split}.jsonl", [{"text": text} for text in ("", "it broke", "it broke")])
    data = MaskedReviewData(path=str(tmp_path), cache_dir=str(tmp_path), evaluation_batch_size=1)
    empty, *others = data.val_dataloader()
    assert (empty.num_targets, empty.num_tokens, empty.token_ids.shape) == (0, 0, (1, 1))
    assert [batch.num_targets for batch in others] == [1, 1]


TEXTS = [f"the cat sees dog number {number}" for number in range(40)]
UNLABELED = {
    "plain.txt": "\n\n".join(TEXTS),  # blank lines are no texts
    "bare.csv": "\n".join(["text", *TEXTS]),
    "bare.jsonl": "\n".join(json.dumps({"text": text}) for text in TEXTS),
    "odd.jsonl": "\n".join(json.dumps({"text": text, "label": [text]}) for text in TEXTS),
}


@pytest.mark.parametrize("kind", [MaskedReviewData, ReviewTextData])
@pytest.mark.parametrize("name", UNLABELED)
def test_texts_need_no_labels(kind: Any, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(UNLABELED[name] + "\n")
    data = kind(path=str(tmp_path / name), cache_dir=str(tmp_path / "cache"), context_length=CONTEXT)
    data.ensure_setup()
    encoded = data.encoded if kind is MaskedReviewData else data.corpus
    assert [len(encoded.rows_of(split)) for split in ("train", "validation", "test")] == [32, 4, 4]
    assert not len(encoded.labels)
    assert data.source.texts(["text"], [0, 39]) == [TEXTS[0], TEXTS[39]]


def test_options_of_labels_are_unknown() -> None:
    for kind in (MaskedReviewData, ReviewTextData):
        for name in ("label_column", "labels", "target_encoding", "balance", "choice_columns", "class_names"):
            with pytest.raises(TypeError, match=f"^{kind.__name__} has no option {name}"):
                kind(**{name: None})
