import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from firstlight.classifier.data import ReviewData
from firstlight.classifier.module import Classification
from firstlight.classifier.prediction import logits_of
from firstlight.data import table_data
from firstlight.data.options import Balance, Labels, Truncation
from firstlight.data.tables import ReviewBatch
from firstlight.errors import UserError
from firstlight.files.rows import write_rows
from firstlight.lit.losses import probabilities
from firstlight.text.options import TokenizerOptions
from stand_ins import with_trainer

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec")

COUNTS = {"train": (29, 23, 31, 11, 17), "validation": (3, 5, 7, 2, 3), "test": (5, 2, 3, 2, 1)}
WORDS = ("broke", "meh", "okay", "good", "great")


def made_up(counts: tuple[int, ...], seed: int) -> list[dict[str, Any]]:
    """Return mixed reviews of different lengths whose last word is the label. counts: the number of each label."""
    rng = random.Random(seed)
    labels = [label for label, count in enumerate(counts) for _ in range(count)]
    rng.shuffle(labels)
    return [
        {"text": " ".join(["the", f"item{number}", *["really"] * rng.randrange(9), WORDS[label]]), "label": label}
        for number, label in enumerate(labels)
    ]


ROWS = {split: made_up(counts, seed) for seed, (split, counts) in enumerate(COUNTS.items())}
TEXTS = {split: [row["text"] for row in rows] for split, rows in ROWS.items()}


@pytest.fixture(autouse=True)
def three_splits(write) -> None:
    write(**ROWS)


def open_reviews(folder: Path, **options: Any) -> ReviewData:
    defaults = {
        "path": str(folder),
        "cache_dir": str(folder.parent / "cache"),
        "tokenizer": TokenizerOptions(min_document_frequency=1),
        "labels": Labels.stars,
        "context_length": 7,
        "batch_size": 13,
        "evaluation_batch_size": 17,
    }
    data = ReviewData(**(defaults | options))
    data.prepare_data()
    data.setup()
    return data


def words_of(data: ReviewData, batch: ReviewBatch) -> list[str]:
    rows = zip(batch.token_ids, batch.padding_mask, strict=True)
    return [" ".join(data.tokenizer.words[token] for token in ids[mask]) for ids, mask in rows]


# --- targets ---


def test_stars_are_five_classes_in_order(folder):
    data = open_reviews(folder, labels=Labels.stars)
    assert (data.num_classes, data.has_ordered_classes) == (5, True)
    assert data.class_names == ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]
    for split, counts in COUNTS.items():
        assert np.bincount(data.targets[data.rows(split)]).tolist() == list(counts)


def test_a_sentiment_leaves_three_stars_out_but_not_of_its_vocabulary(folder):
    data, stars = (open_reviews(folder, labels=labels) for labels in (Labels.binary, Labels.stars))
    assert data.tokenizer.words == stars.tokenizer.words
    assert (data.class_names, data.has_ordered_classes) == (["negative", "positive"], False)
    for split, (one, two, _, four, five) in COUNTS.items():
        assert np.bincount(data.targets[data.rows(split)]).tolist() == [one + two, four + five]
        assert not any(text.endswith("okay") for text in data.texts(split, 1009))


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_any_labels_of_any_columns_of_any_format_are_classes(tmp_path, ending):
    names = ("world", "sports", "science")
    rows = [{"id": n, "topic": names[n % 3], "body": f"the news of {names[n % 3]}"} for n in range(97)]
    write_rows(tmp_path / f"news.{ending}", rows)
    data = open_reviews(
        tmp_path / f"news.{ending}", labels=Labels.classes, text_column="body", label_column="topic", context_length=11
    )
    assert (data.class_names, data.has_ordered_classes) == (["science", "sports", "world"], False)
    assert [len(data.rows(split)) for split in ("train", "validation", "test")] == [79, 9, 9]
    batch = next(iter(data.evaluation_loader(data.rows("test"))))
    for text, target in zip(words_of(data, batch), batch.targets, strict=True):
        assert text.endswith(data.class_names[target])


# --- rows ---


def test_the_texts_are_those_of_the_first_rows_that_are_used(folder):
    data = open_reviews(folder)
    for split in ("train", "validation", "test"):
        assert [data.texts(split, most) for most in (0, 11, 1009)] == [TEXTS[split][:most] for most in (0, 11, 1009)]
    used = [row["text"] for row in ROWS["test"] if row["label"] != 2]
    assert open_reviews(folder, labels=Labels.binary).texts("test", 7) == used[:7]


# --- batches ---


@pytest.mark.parametrize("truncation", Truncation)
def test_a_batch_is_the_texts_of_its_rows(folder, truncation):
    data = open_reviews(folder, context_length=4, truncation=truncation)
    batch = next(iter(data.evaluation_loader(data.rows("train"))))
    for text, row, target in zip(words_of(data, batch), batch.rows, batch.targets, strict=True):
        words = TEXTS["train"][row].split()
        kept = {Truncation.head: words[:4], Truncation.tail: words[-4:], Truncation.head_tail: words[:2] + words[-2:]}
        assert text.split() == (words if len(words) <= 4 else kept[truncation])
        assert target == ROWS["train"][row]["label"]


def test_a_long_text_is_read_at_a_random_span_in_training_only(folder):
    data = open_reviews(folder, context_length=4, random_span=True, target_encoding=True)
    loader, starts = data.train_dataloader(), {}
    for _ in range(40):
        for batch in loader:
            for text, row in zip(words_of(data, batch), batch.rows.tolist(), strict=True):
                words = TEXTS["train"][row].split()
                spans = [" ".join(words[i : i + 4]) for i in range(max(len(words) - 3, 1))]
                starts.setdefault(row, [set(spans), set()])[1].add(text)
    assert all(seen <= spans for spans, seen in starts.values())
    long = [(spans, seen) for spans, seen in starts.values() if len(spans) in (2, 3, 4)]
    assert long
    assert sum(seen == spans for spans, seen in long) > 0.95 * len(long)
    head = open_reviews(folder, context_length=4)
    for split in ("validation", "train"):
        pairs = zip(data.split_loader(split), head.split_loader(split), strict=True)
        assert all(torch.equal(one.token_ids, two.token_ids) for one, two in pairs)
    word = max(data.tokenizer.words[2:], key=lambda word: sum(word in text.split()[4:] for text in TEXTS["train"]))
    texts = sum(word in text.split() for text in TEXTS["train"])
    assert data.target_encoding.word_texts[data.tokenizer.words.index(word)] == texts  # counted in the whole text


def test_lookup_before_and_after_the_transfer_to_the_device_give_the_same_batch(folder, monkeypatch):
    monkeypatch.setattr(table_data, "fits", lambda table, device: False)
    before = with_trainer(open_reviews(folder), device="meta")  # any device except the CPU
    after = with_trainer(open_reviews(folder))
    for rows in before.evaluation_loader(before.rows("train")[:31]):
        looked_up = before.on_before_batch_transfer(rows, 0)
        assert isinstance(looked_up, ReviewBatch)
        assert before.on_after_batch_transfer(looked_up, 0) is looked_up
        left_alone = after.on_before_batch_transfer(rows, 0)
        assert left_alone is rows
        for ours, theirs in zip(after.on_after_batch_transfer(left_alone, 0), looked_up, strict=True):
            assert torch.equal(torch.as_tensor(ours), torch.as_tensor(theirs))


def test_the_table_moves_to_the_device_where_it_fits(folder, monkeypatch):
    data = with_trainer(open_reviews(folder), device="meta")
    rows = next(iter(data.evaluation_loader(data.rows("test"))))
    monkeypatch.setattr(table_data, "fits", lambda table, device: False)
    assert isinstance(data.on_before_batch_transfer(rows, 0), ReviewBatch)
    assert data.table.flat.device.type == "cpu"
    monkeypatch.undo()
    assert data.on_before_batch_transfer(rows, 0) is rows
    assert {buffer.device.type for buffer in data.table.buffers()} == {"meta"}


# --- classes of unequal size ---


def test_class_weights_give_every_class_the_same_say(folder, tmp_path):
    assert open_reviews(folder).class_weights() is None
    weights = open_reviews(folder, balance=Balance.weights).class_weights()
    counts = torch.tensor(COUNTS["train"])
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights * counts, torch.full((5,), counts.sum() / 5))  # the mean weight of a row is 1
    write_rows(tmp_path / "r.jsonl", [{"text": "some text", "label": n % 2} for n in range(53)])  # three empty classes
    assert open_reviews(tmp_path / "r.jsonl", balance=Balance.weights).class_weights().isfinite().all()


# --- errors ---


@pytest.mark.parametrize(
    ("labels", "class_name", "values"), [(Labels.binary, "negative", (0, 0)), (Labels.stars, "4 stars", (3, 3))]
)
def test_data_of_one_class_is_refused(tmp_path, labels, class_name, values):
    write_rows(tmp_path / "r.csv", [{"text": "some text", "label": values[n % 2]} for n in range(53)])
    message = rf"r.csv: every training row is {class_name} with data.labels={labels.value}; .* set data.labels=classes"
    with pytest.raises(UserError, match=message):
        open_reviews(tmp_path / "r.csv", labels=labels)


# --- the reading of labels ---


def test_names_that_are_the_labels_are_the_order_of_the_classes(tmp_path):
    labels = ("neg", "pos", "zero")
    path = tmp_path / "r.csv"
    write_rows(path, [{"text": f"text{n} here", "label": labels[n % 3]} for n in range(90)])
    given = ["pos", "zero", "neg"]
    usual, ordered = (open_reviews(path, labels="classes", class_names=names) for names in (None, given))
    assert ordered.class_names == ordered.metadata()["label_names"] == given
    assert [given[target] for target in ordered.targets] == [labels[target] for target in usual.targets]
    assert ordered.describe()["labels"] == "labels neg, pos, zero → neg, pos, zero"
    assert np.array_equal(ordered.rows("test"), usual.rows("test"))  # the order does not change the splits
    again = open_reviews(path, labels="classes", class_names=["sad", "glad", "even"])
    assert again.describe()["labels"] == "labels neg, pos, zero → sad, glad, even"


def test_labels_that_look_the_same_are_a_warning(tmp_path, caplog):
    for labels, count in ((("Pos", "pos", "neg"), 1), (("Pos", "neg"), 0)):
        caplog.clear()
        rows = [{"text": f"text{n} here", "label": labels[n % len(labels)]} for n in range(90)]
        write_rows(tmp_path / "r.csv", rows)
        open_reviews(tmp_path / "r.csv", labels="classes")
        assert caplog.text.count(f"{tmp_path / 'r.csv'}: the labels 'Pos' and 'pos' are two classes") == count


def test_labels_that_may_be_no_stars_are_refused_with_a_remedy(tmp_path):
    write_rows(tmp_path / "r.csv", [{"text": "some text", "label": 1 + n % 2} for n in range(53)])
    with pytest.raises(UserError, match=r"labels 1 → negative \(2 left out\).*; set data.lowest_label=1 if 1 is"):
        open_reviews(tmp_path / "r.csv", labels=Labels.binary)
    data = open_reviews(tmp_path / "r.csv", labels=Labels.binary, lowest_label=1)
    assert str(data.label_reading) == "labels 1, 2 → negative, positive"


def test_a_class_without_a_row_is_a_warning(folder, caplog):
    write_rows(folder / "validation.jsonl", [{"text": "some text", "label": label} for label in (0, 1, 3)])
    open_reviews(folder)
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"{folder}, validation split: no row is 3 stars or 5 stars"
    ]


@pytest.mark.parametrize(("split", "rows"), [("train", 3), ("validation", 2)])
def test_data_of_three_stars_has_no_sentiment(folder, split, rows):
    write_rows(folder / f"{split}.jsonl", [{"text": "some text", "label": 2}] * rows)
    with pytest.raises(UserError, match=f"{folder} has no {split} rows for data.labels=binary"):
        open_reviews(folder, labels=Labels.binary)


def test_too_few_rows_for_a_validation_split_are_refused(tmp_path):
    write_rows(tmp_path / "r.csv", [{"text": "some text", "label": n} for n in range(5)])
    with pytest.raises(UserError, match=r"r.csv: 5 rows are too few .*data.validation_fraction$"):
        open_reviews(tmp_path / "r.csv")


# --- long texts ---


def test_texts_that_fit_the_context_give_the_same_batches_with_windows(folder):
    cut, windows = (open_reviews(folder, context_length=13, long_texts=each) for each in ("cut", "windows"))
    for name in ("train_dataloader", "val_dataloader", "test_dataloader"):
        for one, other in zip(getattr(cut, name)(), getattr(windows, name)(), strict=True):
            assert all(np.array_equal(*parts) for parts in zip(one, other, strict=True))


@pytest.mark.parametrize("labels", [Labels.binary, Labels.stars])
def test_the_outputs_of_a_long_text_are_the_means_over_its_windows(folder, labels):
    data = open_reviews(folder, labels=labels, context_length=4, long_texts="windows")
    module = Classification.for_data(data, dim=8, num_heads=2).eval()
    rows = data.rows("validation")
    expected = []
    for row in rows:
        ids = torch.from_numpy(data.encoded.ids[row]).long()
        count = max(1, -(-len(ids) // 4))
        starts = [number * max(0, len(ids) - 4) // max(1, count - 1) for number in range(count)]
        expected.append(torch.cat([module(ids[None, start : start + 4]) for start in starts]).mean(dim=0))
    assert len({len(data.encoded.ids[row]) for row in rows}) > 4
    torch.testing.assert_close(logits_of(module.network, data.val_dataloader()), torch.stack(expected))
    measured = [module.measure(batch).outputs for batch in data.val_dataloader()]
    found, targets, shares = (
        torch.cat([each[name] for each in measured]) for name in ("rows", "targets", "probabilities")
    )
    assert sorted(found.tolist()) == rows.tolist()
    assert targets.tolist() == data.targets[found].tolist()
    by_row = dict(zip(found.tolist(), shares, strict=True))
    torch.testing.assert_close(torch.stack([by_row[row] for row in rows]), probabilities(torch.stack(expected)))
