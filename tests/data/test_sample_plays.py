"""The generated plays are reproducible, well-formed, coherent, and rarely repeat themselves."""

import hashlib
import re
from collections import Counter
from itertools import pairwise
from math import exp, log

import pytest

from firstlight.data.samples.plays import MAX_COLUMNS, NUM_PLAYS, VERSION, text


@pytest.fixture(scope="module")
def plays() -> str:
    return text(seed=0)


@pytest.fixture(scope="module")
def passages(plays: str) -> list[str]:
    return plays.rstrip("\n").split("\n\n")


@pytest.fixture(scope="module")
def speeches(passages: list[str]) -> list[str]:
    return [passage for passage in passages if is_speech(passage)]


def is_speech(passage: str) -> bool:
    return bool(re.match(r"[A-Z]+\.\n", passage))


def perplexities(text: str, max_order: int) -> list[float]:
    """Return the perplexity of n-gram models of characters with a context of 0, 1, ... characters."""
    cut = len(text) * 9 // 10
    counts = [Counter(text[at : at + size] for at in range(cut - size + 1)) for size in range(max_order + 2)]
    kinds = [Counter(gram[:-1] for gram in grams) for grams in counts[1:]]
    losses, num_characters = [0.0] * (max_order + 1), len(set(text))
    for at in range(cut, len(text)):
        probability = 1 / num_characters
        for order in range(max_order + 1):
            before = text[at - order : at]
            if num_kinds := kinds[order][before]:
                seen = counts[order + 1][before + text[at]]
                probability = (seen + num_kinds * probability) / (counts[order][before] + num_kinds)
            losses[order] -= log(probability)
    return [exp(loss / (len(text) - cut)) for loss in losses]


@pytest.mark.slow  # 1.8 s; the same is shown of names, pairs and reviews; the text of seed 0 is pinned below
def test_the_same_seed_gives_the_same_plays_and_another_seed_others(plays, speeches):
    assert text(seed=0) == plays
    others = text(seed=1)
    assert 1_150_000 < len(others) < 1_320_000
    assert sum(speech in others for speech in speeches[:200]) <= 1


def test_text_that_changes_needs_a_new_version(plays):
    digest = hashlib.sha256(plays.encode()).hexdigest()[:16]
    assert (VERSION, digest) == (1, "9b86d01f273ec97b"), (
        "raise VERSION, so that no cache keeps the old text, then pin this digest"
    )


def test_there_are_1_2_million_characters_of_a_small_set(plays):
    assert 1_150_000 < len(plays) < 1_320_000
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    assert set(plays) <= set(letters + "\n !(),-.:;?[]_—‘’“”")
    assert len(set(plays)) >= 65


def test_no_line_is_longer_than_60_characters_and_no_space_is_left_over(plays):
    assert max(map(len, plays.split("\n"))) <= MAX_COLUMNS == 60
    assert not re.search(r"  | \n|\n |\n\n\n", plays)


def test_plays_have_titles_persons_acts_and_scenes(passages):
    heads = Counter(re.match(r"ACT|SCENE|THE PERSONS OF THE PLAY|\[_|", passage)[0] for passage in passages)
    assert heads["THE PERSONS OF THE PLAY"] == NUM_PLAYS
    assert heads["ACT"] == 5 * NUM_PLAYS
    assert heads["SCENE"] >= 15 * NUM_PLAYS
    assert heads["[_"] >= 2 * heads["SCENE"]
    assert not re.search("[{}]", "".join(passages))


def test_brackets_quotes_and_underscores_close_within_their_passage(passages):
    for opening, closing in ("()", "[]", "“”"):
        marks = ["".join(mark for mark in passage if mark in opening + closing) for passage in passages]
        assert not [mark for mark in marks if mark != (opening + closing) * (len(mark) // 2)]
        assert sum(map(len, marks)) > 500
    assert not [passage for passage in passages if passage.count("_") % 2 or passage.count("‘") > passage.count("’")]


def test_verse_lines_begin_with_a_capital_and_have_about_one_length(speeches):
    lines = [line for speech in speeches for line in speech.split("\n")[1:-1]]
    assert not [line for line in lines if not re.match(r"[‘’“(]*[A-Z]|\[_", line)]
    verses = [len(line) for line in lines if "[" not in line]
    assert sum(30 <= length <= 50 for length in verses) > 0.75 * len(verses)


def test_only_who_is_on_the_stage_speaks(passages):
    stage: set[str] = set()
    for passage in passages:
        flat = passage.replace("\n", " ")
        if passage.startswith("SCENE"):
            stage = set()
        elif entry := re.fullmatch(r"\[_Enter (.*)\._\]", flat):
            stage |= {name.upper() for name in re.split(", | and ", entry[1])}
        elif is_speech(passage):
            speaker = passage.split(".")[0]
            assert speaker in stage, passage
            stage -= {speaker} if passage.endswith("[_Exit._]") else set()


def test_a_word_in_quotes_was_said_just_before(passages):
    echoes = [
        (found[1].lower(), before.lower())
        for before, passage in pairwise(passages)
        if (found := re.match(r"[A-Z]+\.\n(?:\[_[^]]*\]\n)?“([\w-]+)[”,]", passage))
    ]
    assert len(echoes) > 200
    assert all(word in before for word, before in echoes)


def test_sentences_start_with_a_capital_and_articles_fit(plays):
    assert not re.search(r"[.?][”’]?\s[a-z]", plays.replace("”? ", ""))
    assert not re.search(r"\b(a|my|thy)\s[aeio]|\b(an|mine|thine)\s[bcdfgjklmnpqrstvwxz]", plays)


def test_verbs_agree_with_thou_and_you(plays):
    assert not re.search(
        r"\bthou\s(are|have|do|will|can|shall)\b|\byou\s(art|hast|dost|wilt|canst|shalt)\b", plays, re.I
    )
    assert min(len(re.findall(rf"\b{word}\b", plays)) for word in ("thou art", "you are", "thine", "mine")) > 50


def test_a_play_says_either_hath_or_has(plays):
    parts = plays.split("THE PERSONS OF THE PLAY")[1:]
    counts = [(len(re.findall(r"\bhath\b", part)), len(re.findall(r"\bhas\b", part))) for part in parts]
    assert {min(pair) for pair in counts} == {0}
    assert min(max(pair) for pair in counts) > 50
    assert {pair[0] > 0 for pair in counts} == {True, False}


def test_words_vary_and_names_recur_within_a_play_only(plays):
    counts = Counter(re.findall(r"[a-z]{2,}", plays.lower()))
    assert len(counts) >= 3_500
    assert sum(count < 10 for count in counts.values()) > len(counts) / 4
    casts = [set(re.findall(r"\n([A-Z]+), an? ", part)) for part in plays.split("THE PERSONS OF THE PLAY")[1:]]
    assert len(set().union(*casts)) > 0.95 * sum(map(len, casts))


def test_hardly_anything_is_said_twice(speeches):
    assert len(set(speeches)) > 0.995 * len(speeches)
    lines = [line for speech in speeches for line in speech.split("\n")[1:] if len(line) > 25]
    assert len(set(lines)) > 0.98 * len(lines)
    assert Counter(lines).most_common(1)[0][1] <= 6


@pytest.mark.slow  # 1.7 s; the text whose difficulty it measures is pinned above
def test_reading_further_back_guesses_better(plays):
    """The perplexity is 12 with a context of one character, 7 with two and 3.5 with four, of 71 characters."""
    order = perplexities(plays, max_order=4)
    assert order[1] > 10.5
    assert order[2] < 0.7 * order[1]
    assert order[4] < 0.6 * order[2]
    assert order[4] < 0.35 * order[1]
    assert order[4] > 3
