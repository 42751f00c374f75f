"""Rows of multiple choice: pairs of a context with each answer, their labels, and their options."""

import numpy as np
import pytest

from firstlight.data.options import ReviewOptions
from firstlight.data.row_options import ChoiceRows, by_row, longest
from firstlight.errors import UserError

TWO_OF_THREE = ChoiceRows(num_contexts=2, num_choices=3)


def test_each_answer_is_a_pair_with_the_joined_context() -> None:
    expected = [("It rains. Tom waits.", answer) for answer in ("He is wet.", "He is dry.", "He sings.")]
    texts = ("It rains.", "Tom waits.", "He is wet.", "He is dry.", "He sings.")
    assert list(TWO_OF_THREE.pairs([texts])) == expected
    joined = ["It rains. Tom waits. ||| He is wet. ||| He is dry. ||| He sings.", " ||| ".join(texts)]
    assert list(TWO_OF_THREE.pairs(joined)) == expected * 2  # the context may be one text


@pytest.mark.parametrize("text", ["one", "a ||| b ||| c", ("a", "b", "c"), tuple("abcdef"), (1, 2, 3, 4)])
def test_another_number_of_texts_is_one_line(text: str | tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=r"^the network chooses among 3 answers .*, but a row has the texts .*; "):
        list(TWO_OF_THREE.pairs([text]))


def test_the_length_of_a_row_is_that_of_its_longest_pair() -> None:
    lengths = np.array([5, 9, 7, 8, 6, 6])
    assert longest(by_row(lengths, TWO_OF_THREE)).tolist() == [9, 8]
    assert longest(lengths) is lengths


def options(**changes: object) -> ReviewOptions:
    given = {"text_column": "story", "choice_columns": ["a", "b"], "labels": "classes"}
    return ReviewOptions(**given | changes)  # type: ignore[arg-type]


def test_the_columns_are_those_of_the_context_and_then_those_of_the_answers() -> None:
    found = options(text_column=["story", "question"], choice_columns=["b", "a"])
    assert (found.text_columns, found.choices) == (["story", "question", "b", "a"], ChoiceRows(2, 2))
    assert not found.reads_pairs
    assert options(text_column=7, choice_columns=[1, 2]).text_columns == ["7", "1", "2"]
    assert ReviewOptions().choices is None
