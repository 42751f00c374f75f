import json
import logging
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from firstlight.data.tables import IGNORED
from firstlight.errors import UserError
from firstlight.text.options import TokenizerOptions
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.sentence_tokenizers import END_ID, SentenceTokenizer
from firstlight.translator.corpus import PairTokenizers
from firstlight.translator.data import PairBatch, PairData, Pairs
from stand_ins import with_trainer

EVERY_WORD = TokenizerOptions(min_document_frequency=1)
CONTEXT = 9

Sentences = list[tuple[str, str]]

WORDS = [chr(ord("a") + i) * 2 for i in range(19)]


def sentences(count: int, seed: int = 0, longest: int = CONTEXT - 1) -> Sentences:
    """Return pairs of 1 to `longest` words. The source is upper case, so no word is in both languages."""
    rng = np.random.default_rng(seed)
    return [
        (
            " ".join(rng.choice(WORDS, rng.integers(1, longest + 1))).upper(),
            " ".join(rng.choice(WORDS, rng.integers(1, longest + 1))),
        )
        for _ in range(count)
    ]


SPLITS = {"train": sentences(101, 1), "validation": sentences(23, 2), "test": sentences(13, 3)}


def closed_data(folder: Path, splits: dict[str, Sentences] = SPLITS, **options: Any) -> PairData:
    """Return the data of pairs written as JSONL below a folder, before setup."""
    (folder / "pairs").mkdir(exist_ok=True)
    for split, pairs in splits.items():
        lines = (json.dumps({"en": source, "de": target}) + "\n" for source, target in pairs)
        (folder / "pairs" / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
    defaults = {
        "path": str(folder / "pairs"),
        "cache_dir": str(folder / "cache"),
        "tokenizer": EVERY_WORD,
        "context_length": CONTEXT,
        "batch_tokens": 61,
        "evaluation_batch_size": 5,
    }
    return PairData(**(defaults | options))


def open_data(folder: Path, splits: dict[str, Sentences] = SPLITS, stage: str = "fit", **options: Any) -> PairData:
    data = closed_data(folder, splits, **options)
    data.prepare_data()
    data.setup(stage)
    return data


def batch_of(data: PairData, rows: list[int]) -> PairBatch:
    lookup = Pairs(data.encoded.source.lengths, data.encoded.target.lengths)
    return data.table(lookup[np.array(rows)])


def read(data: PairData, batch: PairBatch) -> Sentences:
    """Return the content of a batch: the real tokens of each source and of each target."""
    return [
        (data.source_tokenizer.decode(source[real].tolist()), data.tokenizer.decode(target[written].tolist()))
        for source, real, target, written in zip(
            batch.source_ids, batch.source_mask, batch.targets, batch.target_mask, strict=True
        )
    ]


# --- a batch ---

THREE = {
    "train": [("A", "b b b c"), ("A A C", "b"), ("C A", "c b")] * 2,
    "validation": [("C", "c")],
    "test": [("A C C C C", "c")],
}


@pytest.fixture
def three(tmp_path: Path) -> PairData:
    """Return three pairs with known ids: source A 4, C 5; target b 4, c 5."""
    data = open_data(tmp_path, THREE, shared_vocabulary=False)
    assert data.source_tokenizer.words[4:] == ["ĠA", "ĠC"]
    assert data.tokenizer.words[4:] == ["Ġb", "Ġc"]
    return data


def test_a_batch_is_padded_to_its_longest_and_begins_and_ends_with_marks(three):
    batch = batch_of(three, [0, 1, 2])
    assert batch.source_ids.tolist() == [[4, 0, 0], [4, 4, 5], [5, 4, 0]]
    assert batch.source_mask.tolist() == [[True, False, False], [True] * 3, [True, True, False]]
    assert batch.token_ids.tolist() == [[2, 4, 4, 4, 5], [2, 4, 0, 0, 0], [2, 5, 4, 0, 0]]
    assert batch.targets.tolist() == [[4, 4, 4, 5, 3], [4, 3, *[IGNORED] * 3], [5, 4, 3, *[IGNORED] * 2]]
    assert batch.target_mask.tolist() == [[True] * 5, [True] * 2 + [False] * 3, [True] * 3 + [False] * 2]
    assert batch.rows.tolist() == [0, 1, 2]
    assert batch.num_tokens == 5 + 2 + 3
    assert {batch.source_ids.dtype, batch.token_ids.dtype, batch.targets.dtype} == {torch.int64}
    assert {batch.source_mask.dtype, batch.target_mask.dtype} == {torch.bool}


# --- loaders ---


@pytest.mark.parametrize(("split", "world_size"), [("validation", 1), ("test", 2)])
def test_every_pair_comes_once_in_an_evaluation_in_the_order_of_length(tmp_path, split, world_size):
    data = open_data(tmp_path)
    found: Sentences = []
    for rank in range(world_size):
        with_trainer(data, rank=rank, world_size=world_size)
        batches = list(data.val_dataloader() if split == "validation" else data.test_dataloader())
        assert max(len(batch.rows) for batch in batches) == 5
        longer_side = [max(batch[1:3]) for batch in batches]
        assert longer_side == sorted(longer_side)
        found += [pair for batch in batches for pair in read(data, data.table(batch))]
    assert Counter(found) == Counter(SPLITS[split])


def test_every_training_pair_comes_once_a_pass_within_the_budget(tmp_path):
    data = with_trainer(open_data(tmp_path))
    loader = data.train_dataloader()
    batches = list(loader)
    assert len(batches) == len(loader) > 5
    assert Counter(pair for batch in batches for pair in read(data, data.table(batch))) == Counter(SPLITS["train"])
    assert 61 - CONTEXT < max(len(batch.rows) * max(batch[1:3]) for batch in batches) <= 61


def test_training_goes_on_where_the_trainer_stands(tmp_path):
    data = open_data(tmp_path)
    whole = [batch.rows.tolist() for batch in with_trainer(data).train_dataloader()]
    rest = [batch.rows.tolist() for batch in with_trainer(data, step=4).train_dataloader()]
    assert rest[: len(whole) - 4] == whole[4:]
    other = [batch.rows.tolist() for batch in with_trainer(open_data(tmp_path, seed=7)).train_dataloader()]
    assert other != whole


# --- sentences beyond the context ---

LONG, SHORT = " ".join(["aa"] * CONTEXT), "aa bb"


def with_long(split: str, pair: tuple[str, str]) -> dict[str, Sentences]:
    """Return the pairs of SPLITS with a long pair on line 4 and a longer one on line 5 of one split."""
    pairs = SPLITS[split]
    return SPLITS | {split: [*pairs[:3], pair, (f"{LONG} aa bb", SHORT), *pairs[5:]]}


@pytest.mark.parametrize(
    ("split", "pair", "length"),
    [
        ("train", (SHORT, LONG), CONTEXT + 1),  # target and its end
        ("validation", (f"{LONG} aa", SHORT), CONTEXT + 1),
        ("test", (SHORT, f"{LONG} aa"), CONTEXT + 2),
    ],
)
def test_a_sentence_beyond_the_context_is_refused_with_its_place_and_what_would_do(tmp_path, split, pair, length):
    place = f"{tmp_path}/pairs/{split}.jsonl:4: the sentence has {length} tokens"
    with pytest.raises(UserError, match=f"^{re.escape(place)} .*; set context_length={CONTEXT + 2}, which is") as error:
        open_data(tmp_path, with_long(split, pair), skip_too_long=split != "train")
    assert ("data.skip_too_long=true" in str(error.value)) is (split == "train")
    open_data(tmp_path, with_long(split, pair), context_length=CONTEXT + 2)


def test_too_long_training_pairs_may_be_left_out(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    data = open_data(tmp_path, with_long("train", (SHORT, LONG)), skip_too_long=True)
    assert data.rows("train").tolist() == [0, 1, 2, *range(5, 101)]
    assert data.describe()["rows"] == {"train": 99, "validation": 23, "test": 13}
    assert "2 of 101 training pairs are longer than the context and are left out" in caplog.text


def test_a_pair_taken_out_of_training_is_named_by_the_line_it_was_read_from(tmp_path):
    pairs = sentences(101)
    validation = open_data(tmp_path, {"train": pairs}).rows("validation").tolist()
    pairs[validation[2]] = (SHORT, LONG)
    with pytest.raises(UserError, match=rf"/train.jsonl:{validation[2] + 1}: the sentence has {CONTEXT + 1} tokens"):
        open_data(tmp_path, {"train": pairs}, skip_too_long=True)


@pytest.mark.parametrize("pair", [(SHORT, LONG), (f"{LONG} aa", SHORT)], ids=["target", "source"])
def test_an_evaluation_cuts_and_counts_what_is_beyond_the_context(tmp_path, caplog, pair):
    caplog.set_level(logging.WARNING)
    data = open_data(tmp_path, with_long("test", pair), stage="test")
    rows = data.rows("test").tolist()
    assert data.rows("test").tolist() == rows
    assert caplog.messages == [f"2 of 13 texts are longer than the context of {CONTEXT} tokens and were cut"]
    assert max(batch.source_ids.shape[1] for batch in data.test_dataloader()) <= CONTEXT
    batch = data.table(data.lookup()[np.array(rows[2:6])])
    source, target = read(data, batch)[1]
    assert source == " ".join(pair[0].split()[:CONTEXT])
    assert target == " ".join(pair[1].split()[:CONTEXT])  # the last target is the next token
    assert (END_ID in batch.targets[1].tolist()) is (pair[1] == SHORT)
    assert batch.num_tokens == int(batch.target_mask.sum()) == int((batch.targets != IGNORED).sum())


def test_a_training_after_an_evaluation_cuts_nothing(tmp_path):
    data = open_data(tmp_path, with_long("train", (SHORT, LONG)), stage="test")
    assert len(data.rows("train")) == 101
    with pytest.raises(UserError, match=rf"train.jsonl:4: the sentence has {CONTEXT + 1} tokens"):
        with_trainer(data).train_dataloader()


# --- missing data ---


def test_a_fit_needs_pairs_to_validate_by(tmp_path):
    with pytest.raises(UserError, match=r"pairs has no validation pairs; use more pairs, or add validation.jsonl"):
        open_data(tmp_path, {"train": sentences(3)})
    data = open_data(tmp_path, {"train": sentences(3)}, stage="test")
    assert [data.has_split(split) for split in SPLITS] == [True, False, False]


def test_other_data_is_read_by_a_trained_reader(tmp_path):
    reader = PairTokenizers(*(SentenceTokenizer.train([text], EVERY_WORD) for text in ("BB AA", "aa cc")))
    data = closed_data(tmp_path, {"test": [("AA CC", "aa bb")]})
    data.reader = reader
    data.prepare_data()
    data.setup("test")
    assert data.source_tokenizer.words == reader.source.words
    assert data.tokenizer.words == reader.target.words
    assert batch_of(data, [0]).source_ids.tolist() == [[4, 1]]
    assert batch_of(data, [0]).targets.tolist() == [[4, 1, END_ID]]


# --- descriptions ---


def test_texts_are_those_of_the_rows_as_they_were_written(tmp_path):
    data = open_data(tmp_path, SPLITS | {"test": [("An  ÉTÉ\u00a0dog!", " Ein [END] «Hund» . "), ("B", "b")]})
    sources, targets = data.texts(np.array([125, 124, 3, 101]))
    assert sources == ["B", "An  ÉTÉ\u00a0dog!", SPLITS["train"][3][0], SPLITS["validation"][0][0]]
    assert targets == ["b", "Ein [END] «Hund» .", SPLITS["train"][3][1], SPLITS["validation"][0][1]]
    assert data.texts(np.array([], dtype=np.int64)) == ([], [])


def test_the_metadata_holds_the_source_tokenizer_where_it_is_another(tmp_path):
    assert open_data(tmp_path).metadata() == {"source_tokenizer": None}
    data = open_data(tmp_path, shared_vocabulary=False)
    assert tokenizer_of_json(data.metadata()["source_tokenizer"]).words == data.source_tokenizer.words
    assert data.source_tokenizer.words != data.tokenizer.words
