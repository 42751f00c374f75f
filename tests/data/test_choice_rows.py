"""Rows of multiple choice: pairs of a context with each answer, their labels, and their options."""

import numpy as np
import pytest

from firstlight.data.choice_rows import ChoiceRows, longest
from firstlight.data.labels import LabelReader
from firstlight.data.options import Labels, ReviewOptions
from firstlight.errors import UserError

TWO_OF_THREE = ChoiceRows(num_contexts=2, num_choices=3)
COLUMNS = ("a", "b", "c")


def test_each_answer_is_a_pair_with_the_joined_context() -> None:
    expected = [("It rains. Tom waits.", answer) for answer in ("He is wet.", "He is dry.", "He sings.")]
    texts = ("It rains.", "Tom waits.", "He is wet.", "He is dry.", "He sings.")
    assert list(TWO_OF_THREE.pairs([texts])) == expected
    joined = ["It rains. Tom waits. ||| He is wet. ||| He is dry. ||| He sings.", " ||| ".join(texts)]
    assert list(TWO_OF_THREE.pairs(joined)) == expected * 2  # the context may be one text


@pytest.mark.parametrize("text", ["one", "a ||| b ||| c", ("a", "b", "c"), tuple("abcdef"), (1, 2, 3, 4)])
def test_another_number_of_texts_is_one_line(text: str | tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=r"^the network chooses among 3 answers to a context, but .* has \d texts?; "):
        list(TWO_OF_THREE.pairs([text]))


def test_the_length_of_a_row_is_that_of_its_longest_pair() -> None:
    lengths = np.array([5, 9, 7, 8, 6, 6])
    assert longest(TWO_OF_THREE.by_row(lengths)).tolist() == [9, 8]
    assert longest(lengths) is lengths


def reader(columns: tuple[str, ...] = COLUMNS, lowest: int = 0) -> LabelReader:
    return LabelReader(Labels.classes, "label", lowest).learn_choices(columns)


def test_a_label_is_the_name_or_the_number_of_a_column() -> None:
    assert [reader().read(value, "f:1") for value in ("a", "c", 0, 2.0, "1")] == [0, 2, 0, 2, 1]
    assert [reader(lowest=1).read(value, "f:1") for value in (1, "3", "c")] == [0, 2, 2]
    named_by_numbers = reader(("1", "2", "3"))
    assert [named_by_numbers.read(value, "f:1") for value in (1, "3")] == [0, 2]


@pytest.mark.parametrize(
    ("columns", "lowest", "value", "message"),
    [
        (COLUMNS, 0, "d", "f:7: label d is not one of the answers, a, b, c, or a number from 0 to 2; correct it"),
        (COLUMNS, 0, 3, "a number from 0 to 2; set data.lowest_label=1 if the file counts from 1"),
        (COLUMNS, 1, 0, "a number from 1 to 3; set data.lowest_label=0 if the file counts from 0"),
        (COLUMNS, 0, -1, "label -1 is not one of the answers"),
        (("1", "2"), 0, 0, "f:7: label 0 is not one of the answers, 1, 2; correct it"),
        (COLUMNS, 0, None, "f:7: the label in column label is missing; remove the row, or fill it in"),
    ],
)
def test_a_label_that_is_not_an_answer_is_one_line(
    columns: tuple[str, ...], lowest: int, value: object, message: str
) -> None:
    with pytest.raises(UserError) as error:
        reader(columns, lowest).read(value, "f:7")
    assert message in str(error.value)


def options(**changes: object) -> ReviewOptions:
    given = {"text_column": "story", "choice_columns": ["a", "b"], "labels": "classes"}
    return ReviewOptions(**given | changes)  # type: ignore[arg-type]


def test_the_columns_are_those_of_the_context_and_then_those_of_the_answers() -> None:
    found = options(text_column=["story", "question"], choice_columns=["b", "a"])
    assert (found.text_columns, found.choices) == (["story", "question", "b", "a"], ChoiceRows(2, 2))
    assert not found.reads_pairs
    assert options(text_column=7, choice_columns=[1, 2]).text_columns == ["7", "1", "2"]
    assert ReviewOptions().choices is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"choice_columns": ["a"]}, r"data\.choice_columns=\[a\] must be two or more different columns, as in"),
        ({"choice_columns": ["a", "b", "a"]}, r"data\.choice_columns=\[a,b,a\] must be two or more different columns"),
        ({"text_column": ["x", "x"]}, r"data\.text_column=\[x,x\] must be one or more different columns"),
        ({"text_column": "a"}, r"a is also a data\.text_column; remove it from one"),
        ({"labels": "stars"}, r"data\.choice_columns=\[a,b\] requires data\.labels=classes, not stars"),
        ({"both_orders": True}, r"data\.both_orders=true does not apply to multiple choice; set it to false"),
        ({"target_encoding": True}, r"data\.target_encoding=true does not apply to multiple choice; set it to false"),
        ({"context_length": 4}, "context_length=4 is too short for contexts with answers and their 3 marks"),
    ],
)
def test_mistakes_of_options_are_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        options(**changes)
