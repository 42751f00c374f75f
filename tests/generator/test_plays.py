import hashlib
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from firstlight.errors import UserError
from firstlight.generator.plays import clean, extract_plays
from firstlight.text.statistics import text_statistics
from tests_support import ROOT

REAL = ROOT.parent / "shared" / "data" / "shakespeare" / "pg100.txt"
KEPT = set("\n !(),-.:;?[]_—‘’“”ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

SMALL = yaml.safe_load(Path(__file__).with_name("plays.yaml").read_text(encoding="utf-8"))
PARTS = re.split(r"^@@@ (\w+)\n", Path(__file__).with_name("editions.txt").read_text(encoding="utf-8"), flags=re.M)
LICENCE_ABOVE, LICENCE_BELOW, CONTENTS, RHYMES, PROLOGUE, BAKERS_PREAMBLE, BAKERS_ACTS = PARTS[2:16:2]
EPILOGUE, SPOON, CROW, PLAYS, INDENTED = PARTS[16::2]
BAKERS = BAKERS_PREAMBLE + PROLOGUE + BAKERS_ACTS + EPILOGUE
WORKS = LICENCE_ABOVE + CONTENTS + RHYMES + BAKERS + SPOON + CROW + LICENCE_BELOW


def saved_elsewhere(text: str) -> str:
    """Return a text with the byte-order mark and the line endings of Windows."""
    return "\ufeff" + text.replace("\n", "\r\n")


@pytest.mark.parametrize(
    "edition",
    [
        WORKS,
        saved_elsewhere(WORKS),
        WORKS.replace("\n", "\r"),
        WORKS.replace("’", "'"),
        CONTENTS + RHYMES + BAKERS + SPOON + CROW,  # without the license
        RHYMES + BAKERS + SPOON + CROW,  # and without the contents
    ],
)
def test_the_plays_are_what_is_left_of_the_works(edition):
    assert extract_plays(edition) == PLAYS


def test_a_play_in_a_file_of_its_own():
    alone = extract_plays(saved_elsewhere(LICENCE_ABOVE + BAKERS + LICENCE_BELOW))
    assert alone == PLAYS[: PLAYS.index("COOK.")].strip("\n") + "\n"


def test_speakers_may_be_on_the_line_of_the_speech():
    plays = extract_plays(INDENTED)
    assert "  ANNA. The dough is up, and gone. Who has\n    been about it?\n  OTTO. I slept." in plays
    assert plays.strip().startswith("Enter Chorus.")
    assert plays.endswith("  COOK. My spoon is gone.\n")
    gone = ("THE END", "BAKERS", "SPOON", "Baker", "DRAMATIS", "rival", "a cook", "SOLD", "ACT")
    assert not [word for word in gone if word in plays]


@pytest.mark.parametrize(("edition", "plays"), SMALL["editions"])
def test_small_editions(edition, plays):
    assert extract_plays(edition) == plays


def test_a_chorus_between_acts_stays():
    play = BAKERS_ACTS.replace("ACT II\n", "ACT II\n\nCHORUS.\nNow all the youth of Lundy eat.\n")
    assert "\n\nCHORUS.\nNow all the youth of Lundy eat.\n\n Enter Anna." in extract_plays(play)


def test_a_straight_apostrophe_among_many_curly_ones_is_a_misprint_and_goes():
    assert clean("Otto' oven" + ", ’tis" * 100) == "Otto oven" + ", ’tis" * 100
    many = BAKERS_ACTS.replace("1 GULL.", "1 GULL.\n" + "’Tis so, we’d say.\n" * 100)
    one = many.replace("rather eat", "rather e'er eat")
    assert extract_plays(one) == extract_plays(many.replace("rather eat", "rather eer eat"))


@pytest.mark.parametrize(
    "text", ["", "\n\n", RHYMES, CONTENTS + RHYMES + CROW, BAKERS_PREAMBLE, "We act. I act. Act I did!"]
)
def test_a_text_without_plays_is_the_users_mistake(text):
    with pytest.raises(UserError, match=r"^the text has no play.*ACT I.*data\.preparation=text[^\n]*$"):
        extract_plays(text)


@pytest.mark.parametrize(("text", "expected"), SMALL["clean"])
def test_clean(text, expected):
    assert clean(text) == expected


@given(st.text())
def test_a_clean_text_has_no_other_characters_and_stays_clean(text):
    once = clean(text)
    assert set(once) <= KEPT
    assert clean(once) == once


@pytest.mark.slow  # takes 3 s; each rule also has a test with a small edition
@pytest.mark.skipif(not REAL.exists(), reason=f"needs the complete works in {REAL}")
def test_the_complete_works_come_near_to_what_the_post_has():
    text = REAL.read_text(encoding="utf-8")
    plays = extract_plays(text)
    assert set(plays) == KEPT
    for name, number in {"passages": 38_409, "words": 921_816}.items():
        assert text_statistics(plays)[name] == pytest.approx(number, rel=0.005)
    assert extract_plays(saved_elsewhere(LICENCE_ABOVE + text + LICENCE_BELOW)) == plays
    assert hashlib.sha256(plays.encode()).hexdigest()[:16] == "09940410434062c5"
