import random
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from firstlight.classifier.data import ReviewData
from firstlight.data.options import Labels
from firstlight.data.tables import TokenBatch
from firstlight.errors import UserError
from firstlight.generator.data import CharacterData, ReviewTextData, StreamData
from firstlight.generator.options import Preparation, Split
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.text.text_tokenizers import decode
from firstlight.text.tokenizers import PAD_ID
from stand_ins import with_trainer
from tests_support import write_lines

CHARACTERS = TokenizerOptions(kind=TokenizerKind.char, max_size=None)
BYTE_PAIRS = TokenizerOptions(kind=TokenizerKind.subword, max_size=263)
CONTEXT, SIZE = 11, 7
TEXT = "".join(random.Random(3).choices(["abc ", "de", "é ", "x\n", ".\n\n"], k=1009))
NAMES = [
    f"{first}{last}" for first in ("Ann", "Bert", "Car", "Élo", "Dor") for last in ("", "a", "is", "ita", "wen", "ius")
]


def open_text(folder: Path, text: str = TEXT, **options: Any) -> CharacterData:
    (folder / "text.txt").write_text(text, encoding="utf-8")
    defaults = {
        "path": str(folder / "text.txt"),
        "cache_dir": str(folder / "cache"),
        "tokenizer": CHARACTERS,
        "context_length": CONTEXT,
        "batch_size": SIZE,
        "evaluation_batch_size": 5,
    }
    data = CharacterData(**(defaults | options))
    data.ensure_setup()
    return data


def open_names(folder: Path, names: list[str] = NAMES, **options: Any) -> CharacterData:
    lines = {"preparation": Preparation.lines, "validation_fraction": 0.1, "test_fraction": 0.1, "batch_size": 2}
    return open_text(folder, "\n".join(names), **(lines | options))


def open_reviews(folder: Path, kind: type = ReviewTextData, **options: Any) -> Any:
    (folder / "reviews").mkdir(exist_ok=True)
    rng = random.Random(5)
    for split, count in {"train": 101, "validation": 23, "test": 13}.items():
        texts = [
            " ".join(["The", *rng.choices(["tea", "is", "good", "bad", "!"], k=rng.randrange(7))]) for _ in range(count)
        ]
        texts[3] = ""
        rows = [{"text": text, "label": i % 5} for i, text in enumerate(texts)]
        write_lines(folder / "reviews" / f"{split}.jsonl", rows)
    defaults = {
        "path": str(folder / "reviews"),
        "cache_dir": str(folder / "cache"),
        "tokenizer": TokenizerOptions(min_document_frequency=1, punctuation=False),
        "context_length": CONTEXT,
        "batch_size": SIZE,
    }
    data = kind(**(defaults | options))
    data.ensure_setup()
    return data


EVERY_KIND = pytest.mark.parametrize("open_data", [open_text, open_names, open_reviews])


def batches(data: StreamData, loader: Any) -> list[TokenBatch]:
    """Return the batch of a network, looked up by the loader, or with a trainer by the hooks of the data."""
    return [each if isinstance(each, TokenBatch) else data.table(each) for each in loader]


def ids_of(data: StreamData, split: str) -> np.ndarray:
    return data.ids(data.stream(split))


def all_ids(data: StreamData) -> np.ndarray:
    return data.ids(data.stream())


def text_of(data: StreamData, ids: Any) -> str:
    return decode(data.tokenizer, np.asarray(ids).ravel().tolist())


def train(data: StreamData) -> list[list[list[int]]]:
    return [batch.positions.tolist() for batch in data.train_dataloader()]


# --- windows and their targets ---


@EVERY_KIND
def test_the_targets_are_the_tokens_that_follow(tmp_path, open_data):
    data = with_trainer(open_data(tmp_path))
    for loader in (data.train_dataloader(), data.val_dataloader(), data.test_dataloader()):
        for batch in batches(data, loader):
            assert batch.token_ids.shape == batch.targets.shape
            assert torch.equal(batch.token_ids[:, 1:], batch.targets[:, :-1])
            assert batch.num_targets == batch.num_tokens == batch.targets.numel()


@EVERY_KIND
@pytest.mark.parametrize("split", ["validation", "test"])
def test_validation_predicts_every_token_once_and_in_order(tmp_path, open_data, split):
    data = with_trainer(open_data(tmp_path, test_fraction=0.1))
    found = batches(data, data.split_loader(split))
    predicted = torch.cat([batch.targets.flatten() for batch in found]).tolist()
    assert predicted == ids_of(data, split)[1:].tolist()
    again = batches(data, data.split_loader(split))
    assert all(torch.equal(one.token_ids, two.token_ids) for one, two in zip(found, again, strict=True))


@pytest.mark.parametrize("tokenizer", [CHARACTERS, BYTE_PAIRS], ids=["characters", "byte pairs"])
@pytest.mark.parametrize("split", Split, ids=lambda split: split.value)
def test_a_training_window_is_a_piece_of_the_training_text(tmp_path, tokenizer, split):
    data = with_trainer(open_text(tmp_path, tokenizer=tokenizer, split=split))
    begin, end = data.stream("train").head()[[0, -1]]
    ids = ids_of(data, "train").tolist()
    for batch in data.train_dataloader():
        assert batch.positions.shape == (SIZE, CONTEXT + 1)
        assert begin <= batch.positions.min() <= batch.positions.max() <= end
        for window in data.table.flat[batch.positions].tolist():
            assert any(ids[i : i + CONTEXT + 1] == window for i in range(len(ids)))
    if split is Split.sequential:
        assert text_of(data, ids) == TEXT[: len(TEXT) - round(0.05 * len(TEXT))]


# --- the start at the step of the trainer ---


@EVERY_KIND
@pytest.mark.parametrize("step", [1, 13, 61])
def test_training_is_taken_up_where_the_trainer_is(tmp_path, open_data, step):
    data = with_trainer(open_data(tmp_path))
    per_epoch = len(train(data))
    epochs = [train(with_trainer(data, step=epoch * per_epoch)) for epoch in range(step // per_epoch + 2)]
    uninterrupted = list(chain(*epochs))
    assert train(with_trainer(data, step=step)) == uninterrupted[step : step + per_epoch]
    assert epochs[0] != epochs[1]


# --- documents ---


def test_documents_of_a_split_stand_between_separators(tmp_path):
    data = open_names(tmp_path)
    found = {split: text_of(data, ids_of(data, split)) for split in ("train", "validation", "test")}
    assert all(text.startswith(".") and text.endswith(".") and ".." not in text for text in found.values())
    names = {split: text.strip(".").split(".") for split, text in found.items()}
    assert {split: len(each) for split, each in names.items()} == {"train": 24, "validation": 3, "test": 3}
    assert sorted(chain(*names.values())) == sorted(NAMES)


@pytest.mark.parametrize("separator", [".", "|"])
def test_the_separator_is_what_the_options_say_and_a_stream_has_none(tmp_path, separator):
    stream = open_text(tmp_path)
    assert stream.separator_id is None
    assert stream.known_documents() == []
    assert stream.metadata() == {"separator_id": None}
    data = open_names(tmp_path, separator=separator)
    assert data.tokenizer.words[data.separator_id] == separator
    assert data.metadata() == {"separator_id": data.separator_id}
    assert text_of(data, ids_of(data, "test")).count(separator) == 4


@pytest.mark.parametrize("most", [1, 13])
def test_fewer_documents_may_be_trained_on_and_validation_stays_whole(tmp_path, most):
    data = open_names(tmp_path, max_train_rows=most, context_length=3)
    everything = open_names(tmp_path)
    assert data.known_documents() == everything.known_documents()[:most]
    assert text_of(data, ids_of(data, "train")).strip(".").split(".") == data.known_documents()
    for split in ("validation", "test"):
        assert len(ids_of(data, split)) == len(ids_of(everything, split))
    seen = {place for batch in chain(*train(with_trainer(data))) for place in batch}
    assert seen <= set(data.stream("train").head().tolist())


def test_less_of_a_text_may_be_trained_on_and_validation_stays_whole(tmp_path):
    most = 5
    data = with_trainer(open_text(tmp_path, max_train_rows=most))
    steps = range(0, 211, len(data.train_dataloader()))
    seen = {place for step in steps for batch in chain(*train(with_trainer(data, step=step))) for place in batch}
    assert seen == set(range(most * CONTEXT + 1))
    assert data.describe()["tokens"]["train"] == len(data.stream("train")) == most * CONTEXT + 1
    known = set(text_of(data, ids_of(data, "train")))
    assert set(data.tokenizer.words) == known | {"\ufffd"}
    everything = open_text(tmp_path)
    whole = text_of(everything, ids_of(everything, "validation"))
    assert text_of(data, ids_of(data, "validation")) == "".join(c if c in known else "\ufffd" for c in whole)


# --- reviews ---


def test_reviews_have_the_vocabulary_of_the_classifier(tmp_path):
    text, reviews = open_reviews(tmp_path), open_reviews(tmp_path, ReviewData, labels=Labels.binary)
    assert text.tokenizer.words == reviews.tokenizer.words
    assert text.tokenizer.to_json() == reviews.tokenizer.to_json()


def test_reviews_are_joined_by_padding_and_written_one_below_the_other(tmp_path):
    data = open_reviews(tmp_path)
    for split in ("train", "validation", "test"):
        expected = [PAD_ID]
        for row in data.corpus.rows_of(split):
            expected += [*data.corpus.ids[row].tolist(), PAD_ID]
        assert ids_of(data, split).tolist() == expected
    assert data.separator_id == PAD_ID
    written = text_of(data, ids_of(data, "train")).strip("\n").split("\n")
    assert len(written) == 101
    assert written[3] == ""
    assert set(" ".join(written).split()) == {"the", "tea", "is", "good", "bad"}


# --- descriptions and statistics ---


def test_a_split_that_is_empty_is_none(tmp_path):
    data = open_text(tmp_path)
    assert [data.has_split(split) for split in ("train", "validation", "test")] == [True, True, False]
    assert len(ids_of(data, "test")) == len(list(data.test_dataloader())) == 0
    names = open_names(tmp_path, test_fraction=0.0)
    assert not names.has_split("test")
    assert len(names.stream("test")) == 0


# --- errors ---


@pytest.mark.parametrize("length", [2, 12])
def test_a_text_that_is_shorter_than_the_context_is_refused_in_one_line(tmp_path, length):
    message = (
        f"^{tmp_path}/text.txt: the training part has {round(0.95 * length)} tokens, but "
        "context_length=11 requires 12; use more text or a smaller context_length$"
    )
    with pytest.raises(UserError, match=message):
        open_text(tmp_path, "a" * length)


def test_a_text_without_a_validation_part_is_refused(tmp_path):
    message = f"^{tmp_path}/text.txt: the text is too short for a validation part; use more text$"
    with pytest.raises(UserError, match=message):
        open_text(tmp_path, "a" * 29)  # one character for validation has no next token
    with pytest.raises(UserError, match=r"for a validation part; use more text$"):
        open_text(tmp_path, TEXT.replace("\n", " "), split=Split.passages)  # a single passage
