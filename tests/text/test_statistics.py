"""Tests of the statistics of a text, on texts that are counted by hand."""

import pytest

from firstlight.text.statistics import as_texts, text_statistics

LOAF = "ANNA.\nThe loaf, the loaf!\n\nOTTO.\nNo.\n"


def test_statistics_of_a_small_text() -> None:
    assert text_statistics(LOAF) == {
        "characters": 37,
        "distinct characters": 16,
        "lines": 5,
        "mean length of a line": 6.4,  # 5 + 19 + 0 + 5 + 3
        "longest line": 19,
        "passages": 2,
        "longest passage": 25,
        "words": 7,
        "unique words": 6,
        "% of unique words seen fewer than 10 times": 100.0,
        "% of unique words seen fewer than 100 times": 100.0,
        "commonest word": "“loaf”, 2 times",
    }


def test_an_empty_text_has_nothing_to_count() -> None:
    found = text_statistics("")
    assert found["characters"] == found["lines"] == found["words"] == 0
    assert not found.keys() & {"passages", "longest passage", "commonest word"}


def test_rare_words_are_counted_below_ten_and_below_a_hundred() -> None:
    found = text_statistics("a " * 9 + "b " * 10 + "c " * 99 + "d " * 100)
    assert (found["words"], found["unique words"]) == (218, 4)
    shares = [found[f"% of unique words seen fewer than {limit} times"] for limit in (10, 100)]
    assert shares == [25.0, 75.0]
    assert found["commonest word"] == "“d”, 100 times"


@pytest.mark.parametrize("text", ["a\n\n\n b\n", "a\n \nb"])
def test_blank_lines_of_any_number_separate_passages(text: str) -> None:
    assert text_statistics(text)["passages"] == 2


def test_the_numbers_are_written_for_readers() -> None:
    rows = as_texts(text_statistics(LOAF * 1000))
    assert rows["characters"] == "37,000"
    assert rows["mean length of a line"] == "6.4"
    assert rows["commonest word"] == "“loaf”, 2,000 times"
