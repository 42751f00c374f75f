"""Tests of the statistics of a text, on texts that are counted by hand."""

import pytest

from firstlight.text.statistics import TextStatistics, text_statistics

LOAF = "ANNA.\nThe loaf, the loaf!\n\nOTTO.\nNo.\n"


def test_statistics_of_a_small_text() -> None:
    assert text_statistics(LOAF) == TextStatistics(
        characters=37,
        distinct_characters=16,
        lines=5,
        mean_line=32 / 5,  # 5 + 19 + 0 + 5 + 3
        longest_line=19,
        passages=2,
        longest_passage=25,
        words=7,
        unique_words=6,
        rare_words=1.0,
        uncommon_words=1.0,
        commonest_word="loaf",
        commonest_count=2,
    )


def test_an_empty_text_has_nothing_to_count() -> None:
    found = text_statistics("")
    assert found == TextStatistics(0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0.0, 0.0, "", 0)
    assert not found.rows().keys() & {"passages", "longest passage", "commonest word"}


def test_rare_words_are_counted_below_ten_and_below_a_hundred() -> None:
    found = text_statistics("a " * 9 + "b " * 10 + "c " * 99 + "d " * 100)
    assert (found.words, found.unique_words) == (218, 4)
    assert (found.rare_words, found.uncommon_words) == (1 / 4, 3 / 4)
    assert (found.commonest_word, found.commonest_count) == ("d", 100)


def test_the_numbers_are_named_for_readers() -> None:
    rows = text_statistics(LOAF * 1000).rows()
    assert rows["characters"] == "37,000"
    assert rows["mean length of a line"] == "6.40 characters"
    assert rows["unique words seen fewer than 10 times"] == "0.0%"
    assert rows["commonest word"] == "“loaf”, 2,000 times"
    assert len(rows) == 12


@pytest.mark.parametrize("text", ["a\n\n\n b\n", "a\n \nb"])
def test_blank_lines_of_any_number_separate_passages(text: str) -> None:
    assert text_statistics(text).passages == 2
