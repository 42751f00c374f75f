import re

import numpy as np
import pytest

from firstlight.data.labels import (
    LEFT_OUT,
    MOST_CLASSES,
    SENTIMENTS,
    LabelReader,
    LabelReading,
    alike,
    canonical,
    class_names_of,
    reader_of,
    reader_of_choices,
    targets_of,
)
from firstlight.data.options import Labels
from firstlight.errors import UserError

PLACE = "reviews.csv:12"


def stars(lowest: int = 0, kind: Labels = Labels.stars) -> LabelReader:
    return reader_of("label", kind, lowest, [])


def classes(*values: object) -> LabelReader:
    return reader_of("mood", Labels.classes, 0, values)


# --- one value in different formats ---


@pytest.mark.parametrize("value", [4, 4.0, "4", "4.0", " 4 ", "4\r"])
def test_a_label_is_the_same_from_csv_json_and_parquet(value):
    assert canonical(value) == "4"
    assert stars().read(value, PLACE) == 4


@pytest.mark.parametrize("value", [None, float("nan"), "", "  "])
def test_a_missing_label_is_refused_with_its_place(value):
    for reader in (stars(), classes("sad", "glad")):
        message = rf"{PLACE}: the label in column {reader.column} is missing; remove the row, or fill it in"
        with pytest.raises(UserError, match=message):
            reader.read(value, PLACE)


# --- stars ---


@pytest.mark.parametrize("kind", [Labels.stars, Labels.binary])
def test_five_labels_from_0_or_1_are_one_to_five_stars(kind):
    for lowest in (0, 1):
        reader = stars(lowest, kind)
        assert [reader.read(str(label + lowest), PLACE) for label in range(5)] == [0, 1, 2, 3, 4]
        assert list(reader.names) == ["1 star", "2 stars", "3 stars", "4 stars", "5 stars"]


@pytest.mark.parametrize("value", ["good", "4.5", 4.5, "4-", "²", "9" * 5003, True, [4], "1_0"])
def test_a_star_that_is_no_whole_number_is_refused(value):
    with pytest.raises(UserError, match=f"{PLACE}: label .* is not a whole number of stars; .* data.labels=classes"):
        stars().read(value, PLACE)


# --- multiple choice ---


def test_a_label_is_the_name_or_the_number_of_a_column() -> None:
    first, second = (reader_of_choices("label", ("a", "b", "c"), lowest) for lowest in (0, 1))
    assert [first.read(value, PLACE) for value in ("a", "c", 0, 2.0, "1")] == [0, 2, 0, 2, 1]
    assert [second.read(value, PLACE) for value in (1, "3", "c")] == [0, 2, 2]
    named_by_numbers = reader_of_choices("label", ("1", "2", "3"), 0)
    assert [named_by_numbers.read(value, PLACE) for value in (1, "3")] == [0, 2]


CHOICES = reader_of_choices("label", ("a", "b", "c"), 0)


@pytest.mark.parametrize(
    ("reader", "label", "message"),
    [
        (stars(), 7, "label 7 is outside 0 to 4; correct it"),
        (stars(), 5, "label 5 is outside 0 to 4; set data.lowest_label=1 if the file counts from 1"),
        (stars(1), 0, "label 0 is outside 1 to 5; set data.lowest_label=0 if the file counts from 0"),
        (CHOICES, 3, "label 3 is outside 0 to 2; set data.lowest_label=1 if the file counts from 1"),
        (CHOICES, "d", "label d is not one of the answers, a, b, c; correct it"),
        (reader_of_choices("label", ("1", "2"), 0), 0, "label 0 is not one of the answers, 1, 2; correct it"),
    ],
)
def test_a_label_out_of_range_is_refused_with_a_remedy(reader, label, message):
    with pytest.raises(UserError, match=f"{PLACE}: {message}"):
        reader.read(label, PLACE)


# --- classes ---


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["sad", "glad", "sad", None, "", float("nan"), "mad"], ["glad", "mad", "sad"]),
        ([10, "9", 2.0, "none", -3], ["-3", "2", "9", "10", "none"]),  # numbers before words
        (["v2", "v2.0", "v2.5", "3.0"], ["3", "v2", "v2.0", "v2.5"]),
    ],
)
def test_classes_are_the_different_values_in_order(values, names):
    reader = classes(*values)
    assert list(reader.names) == names
    assert [reader.read(name, PLACE) for name in names] == [*range(len(names))]


@pytest.mark.parametrize(("values", "count"), [([None], 0), (range(1009), 1009)])
def test_a_column_with_one_class_or_a_class_for_every_row_is_not_the_label_column(values, count):
    message = f"data.label_column=mood must have 2 to {MOST_CLASSES} distinct values, not {count}; change it"
    with pytest.raises(UserError, match=message):
        classes(*values)
    with pytest.raises(UserError, match=r"data.label_column=mood: every row has the label '1'; add rows of another"):
        classes(1, 1.0, "1")
    assert len(classes(*range(MOST_CLASSES)).names) == MOST_CLASSES


def test_a_column_of_numbers_with_decimals_is_not_the_label_column() -> None:
    numbers = [place / 100 for place in range(-30, 30)]
    with pytest.raises(UserError, match=r"^data.label_column=mood has 60 different numbers, such as -0.3; docs/own"):
        classes(*numbers)
    assert len(classes(*numbers[:50]).names) == 50
    assert len(classes(*numbers, "none").names) == 61


# --- the predicted classes ---


def test_a_sentiment_is_negative_or_positive_and_three_stars_are_left_out():
    assert targets_of(np.array([0, 1, 2, 3, 4]), Labels.binary).tolist() == [0, 0, LEFT_OUT, 1, 1]
    assert class_names_of(Labels.binary, ["1 star"]) == ["negative", "positive"]


@pytest.mark.parametrize("given", [["pos", "neg", "even"], ["pos", "other"], ["other", "neg"], ["a", "a"]])
def test_names_that_are_too_many_or_other_labels_are_refused(given: list[str]) -> None:
    with pytest.raises(UserError, match=r"must be 2 different new names, .*labels"):
        class_names_of(Labels.classes, ["neg", "pos"], given)


@pytest.mark.parametrize(
    ("labels", "both"),
    [
        (["Pos", "neg", "pos"], "'Pos' and 'pos'"),
        (["caf\u00e9", "cafe\u0301"], r"'caf\xe9' and 'cafe\u0301'"),
        (["pos", "pos\u200b"], r"'pos' and 'pos\u200b'"),
        (["very good", "very  good"], "'very good' and 'very  good'"),
        *((labels, None) for labels in (["pos", "neg"], ["0.1", "0.11"], ["-1", "1"], ["a", "\u00e4"], [])),
    ],
)
def test_labels_that_look_or_mean_the_same_are_named(labels: list[str], both: str | None) -> None:
    assert alike(labels) == (both and f"the labels {both} are two classes; if they mean the same, write them alike")


# --- two labels of a run that predicts negative or positive ---


def read(values: list[object], lowest: int = 0, kind: Labels = Labels.binary) -> LabelReading:
    """Return the reading of labels in a task with the classes negative and positive."""
    reader = reader_of("label", kind, lowest, values, SENTIMENTS)
    meanings = {canonical(value): reader.read(value, PLACE) for value in values}
    return LabelReading.of(meanings, Labels.binary, reader.names, SENTIMENTS)


@pytest.mark.parametrize(
    ("values", "lowest", "line"),
    [
        ([0, 1], 0, "labels 0, 1 → negative, positive"),
        (["1", "0.0"], 1, "labels 0, 1 → negative, positive"),
        ([1, -1], 0, "labels -1, 1 → negative, positive"),
        ([2, 1], 1, "labels 1, 2 → negative, positive"),
        (["pos", "Negative"], 0, "labels Negative, pos → negative, positive"),
        (["pos"], 0, "labels pos → positive"),
        ([4, 0], 0, "labels 0, 4 → negative, positive"),
        ([0, 1, 2, 3, 4], 0, "labels 0, 1, 3, 4 → negative, negative, positive, positive (2 left out)"),
        ([1, 2, 4, 5, 3], 1, "labels 1, 2, 4, 5 → negative, negative, positive, positive (3 left out)"),
    ],
)
def test_two_labels_are_read_as_what_they_say_and_others_as_stars(values, lowest, line):
    reading = read(values, lowest)
    assert str(reading) == line
    assert reading.doubt(lowest) is None


@pytest.mark.parametrize(
    ("values", "lowest", "message"),
    [
        ([1, 2], 0, r"labels 1 → negative \(2 left out\), if they are stars from 0 to 4; set data.lowest_label=1 if 1"),
        ([3, 4], 0, "labels 3, 4 → positive, positive, .*; set data.lowest_label=3 if 3 is .*data.labels=stars"),
    ],
)
def test_labels_that_may_be_stars_or_sentiments_are_in_doubt(values, lowest, message):
    assert re.match(message, read(values, lowest).doubt(lowest) or "")


def test_labels_that_are_said_to_be_two_classes_need_not_both_occur():
    assert str(read([1], kind=Labels.classes)) == "labels 1 → positive"
    assert str(read([2], 1, kind=Labels.classes)) == "labels 2 → positive"
    for kind, message in ((Labels.classes, "a class of the training data: negative"), (Labels.binary, "a whole")):
        with pytest.raises(UserError, match=f"label good is not {message}"):
            read(["good", "poor"], kind=kind)


def test_a_class_without_a_row_is_named():
    reading = LabelReading.of({"1": 0, "3": 2}, Labels.stars, ["1 star", "2 stars", "3 stars"], ["a", "b", "c"])
    assert reading.missing(np.array([0, 2, 0])) == "no row is b"
    assert reading.missing(np.array([1])) == "no row is a or c"
    assert reading.missing(np.array([0, 1, 2])) is None
