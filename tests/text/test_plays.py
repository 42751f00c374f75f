import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstlight.errors import UserError
from firstlight.text.plays import clean, extract_plays, gaps
from firstlight.text.statistics import text_statistics
from tests_support import ROOT

REAL = ROOT.parent / "shared" / "data" / "shakespeare" / "pg100.txt"
KEPT = set("\n !(),-.:;?[]_—‘’“”ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")

LICENCE_ABOVE = """The Project Gutenberg eBook of The Complete Works of A. Baker

This eBook is for the use of anyone anywhere.

*** START OF THE PROJECT GUTENBERG EBOOK THE COMPLETE WORKS OF A. BAKER ***



"""
LICENCE_BELOW = """



*** END OF THE PROJECT GUTENBERG EBOOK THE COMPLETE WORKS OF A. BAKER ***

Updated editions will replace the previous one.
"""

CONTENTS = """The Complete Works of A. Baker




by A. Baker


Contents

THE RHYMES
THE BAKERS OF LUNDY
THE LOST SPOON
A CROW’S COMPLAINT



"""

RHYMES = """THE RHYMES

                    1

The flour is white, the oven warm,
  And no one is about.

                    2

The crust is brown, the crumb is soft,
  So take the kneaded out.


THE END




"""

PROLOGUE = """PROLOGUE

 Enter Prologue.

PROLOGUE.
Two bakers, both of Lundy, hear them quarrel,
And learn to share an oven: that’s the moral.

 [_Exit._]




"""

BAKERS_PREAMBLE = """THE BAKERS OF LUNDY




Contents

PROLOGUE
ACT I
Scene I. A bakery
Scene II. Before the oven
ACT II
Scene I. The quay
EPILOGUE



Dramatis Personæ

PROLOGUE

ANNA, a baker
OTTO, another baker
EPILOGUE

Gulls, Sailors, &c.


SCENE: Lundy; later at sea




"""

BAKERS_ACTS = """ACT I


SCENE I. A bakery.

 Enter Anna and
 Otto.

ANNA.
The dough is up & gone, O Zoë! Who
Has been about it?

OTTO.
Act as you please; the scene is yours, not mine.
I slept.

SCENE II. Before the oven.

 Enter Gulls.

1 GULL.
To bake, or not to bake—we’d rather eat.




ACT II


SCENE I. The quay.

 Enter Anna.

ANNA.
The end of loaves is crumbs.
THE gulls have them.

 [_Exeunt._]
"""

EPILOGUE = """



EPILOGUE

OTTO.
Our loaf is eaten, and our play is done.

 [_Exit._]
"""

SPOON = """



THE LOST SPOON



Contents

ACT I
Scene I. A kitchen
ACT II
Scene I. The same

Dramatis Personæ

COOK
BOY


SCENE: A kitchen




ACT I

SCENE I. A kitchen.

COOK.
My spoon! My silver spoon is gone.

BOY.
It stirs not here.




ACT II

SCENE I. The same.

BOY.
I found it in the soup.

 [_Dance._]
"""

CROW = """



A CROW’S COMPLAINT

They baked no bread for me today,
They threw no crust my way.

FINIS
"""

BAKERS = BAKERS_PREAMBLE + PROLOGUE + BAKERS_ACTS + EPILOGUE
WORKS = LICENCE_ABOVE + CONTENTS + RHYMES + BAKERS + SPOON + CROW + LICENCE_BELOW

PLAYS = """ Enter Prologue.

PROLOGUE.
Two bakers, both of Lundy, hear them quarrel,
And learn to share an oven: that’s the moral.

 [_Exit._]

 Enter Anna and
 Otto.

ANNA.
The dough is up AND gone, O Zoe! Who
Has been about it?

OTTO.
Act as you please; the scene is yours, not mine.
I slept.

 Enter Gulls.

GULL.
To bake, or not to bake—we’d rather eat.

 Enter Anna.

ANNA.
The end of loaves is crumbs.
THE gulls have them.

 [_Exeunt._]

OTTO.
Our loaf is eaten, and our play is done.

 [_Exit._]

COOK.
My spoon! My silver spoon is gone.

BOY.
It stirs not here.

BOY.
I found it in the soup.

 [_Dance._]
"""

INDENTED = """
1604

THE BAKERS OF LUNDY

by A. Baker


DRAMATIS PERSONAE

  CHORUS

  ANNA, a baker
  OTTO, her rival


                         SCENE.--Lundy.


                         THE PROLOGUE

                         Enter Chorus.

  Chor. Two bakers, both of Lundy, hear them quarrel.
                                                      Exit.


ACT I. SCENE 1.
Lundy. A bakery

Enter ANNA and OTTO

  ANNA. The dough is up, and gone. Who has
    been about it?
  OTTO. I slept.                                     Exeunt


<<THIS ELECTRONIC VERSION OF THE WORKS
MAY NOT BE SOLD.>>


ACT I. SCENE 2.
Lundy. Before the oven

  GULL. We eat.


ACT II. SCENE 1.
The quay

  ANNA. The gulls have them.
                                                     Exeunt

THE END


<<THIS ELECTRONIC VERSION OF THE WORKS
MAY NOT BE SOLD.>>


1607

THE LOST SPOON

by A. Baker


DRAMATIS PERSONAE

  COOK, a cook

ACT I. SCENE 1.
A kitchen

  COOK. My spoon is gone.

THE END
"""


def saved_elsewhere(text: str) -> str:
    """Return a text with the byte-order mark and the line endings of Windows."""
    return "\ufeff" + text.replace("\n", "\r\n")


def folded(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text)


def test_the_plays_are_what_is_left_of_the_works():
    assert extract_plays(WORKS) == PLAYS


def test_a_byte_order_mark_and_other_line_ends_change_nothing():
    assert extract_plays(saved_elsewhere(WORKS)) == PLAYS
    assert extract_plays(WORKS.replace("\n", "\r")) == PLAYS


def test_the_licence_may_be_missing():
    assert extract_plays(CONTENTS + RHYMES + BAKERS + SPOON + CROW) == PLAYS


def test_the_contents_may_be_missing():
    assert extract_plays(RHYMES + BAKERS + SPOON + CROW) == PLAYS


def test_the_contents_tell_where_a_work_begins_when_no_space_does():
    assert extract_plays(folded(WORKS)) == PLAYS


def test_a_play_in_a_file_of_its_own():
    alone = extract_plays(saved_elsewhere(LICENCE_ABOVE + BAKERS + LICENCE_BELOW))
    assert alone == PLAYS[: PLAYS.index("COOK.")].strip("\n") + "\n"


def test_speakers_may_be_on_the_line_of_the_speech():
    plays = extract_plays(INDENTED)
    assert "  ANNA. The dough is up, and gone. Who has\n    been about it?\n  OTTO. I slept." in plays
    assert plays.strip().startswith("Enter Chorus.")
    assert plays.endswith("  COOK. My spoon is gone.\n")


@pytest.mark.parametrize("gone", ["THE END", "BAKERS", "SPOON", "Baker", "DRAMATIS", "rival", "a cook", "SOLD", "ACT"])
def test_what_is_no_part_of_a_play_goes_in_an_indented_edition_too(gone):
    assert gone not in extract_plays(INDENTED)


def test_wrapping_does_not_matter():
    wrapped = re.sub(r"(\w+,) (\w+)", r"\1\n\2", BAKERS_ACTS)
    assert wrapped != BAKERS_ACTS
    assert extract_plays(BAKERS_PREAMBLE + wrapped).split() == extract_plays(BAKERS_PREAMBLE + BAKERS_ACTS).split()


@pytest.mark.parametrize(
    ("first", "second", "scene"),
    [
        ("Act 1", "Act 2", "Scene 1"),
        ("ACT I.", "ACT II.", "SCENE I.—Lundy."),
        ("_ACT ONE_", "_ACT TWO_", "_Scene One_"),
        ("Actus Primus. Scœna Prima.", "Actus Secundus.", "Scæna Secunda."),
        ("ACT THE FIRST.", "ACT THE SECOND.", "SCENE THE FIRST."),
        ("ACT I. SCENE I.", "ACT I. SCENE II.", ""),
    ],
)
def test_acts_are_numbered_in_many_ways(first, second, scene):
    play = f"The Bakers\n\n\n{first}\n\n{scene}\n\nANNA. One loaf.\n\n{second}\n\n{scene}\n\nOTTO. Two loaves.\n"
    assert extract_plays(play) == "ANNA. One loaf.\n\nOTTO. Two loaves.\n"


@pytest.mark.parametrize(
    "cast", ["Dramatis Personæ", "PERSONS REPRESENTED.", "Characters in the Play", "_Persons of the Play_"]
)
def test_casts_have_many_names(cast):
    second = f"The Spoon\n\n\n{cast}\n\nCOOK\nBOY\n\nACT I\n\nCOOK. My spoon!\n"
    assert extract_plays(f"ACT I\n\nANNA. One loaf.\n\n\n{second}") == "ANNA. One loaf.\n\nCOOK. My spoon!\n"


def test_a_heading_may_be_wrapped():
    wrapped = "ACT I\n\nSCENE I. Lundy. A bakery near\nthe quay, with a view of\nthe sea.\n\nANNA.\nBread!\n"
    assert extract_plays(wrapped) == "ANNA.\nBread!\n"


def test_no_blank_line_is_needed_between_a_heading_and_a_speech():
    assert extract_plays("ACT I\nSCENE I. A bakery\nANNA. Bread!\nOTTO. Ale!\n") == "ANNA. Bread!\nOTTO. Ale!\n"


def test_an_induction_is_a_part_of_its_play_and_has_scenes():
    preamble = "THE BAKERS\n\n\nDramatis Personæ\n\nANNA\nOTTO\n\n\n"
    play = "INDUCTION\n\nSCENE I. A heath.\n\nSLY.\nAle!\n\nACT I\n\nANNA.\nBread!\n"
    assert extract_plays(preamble + play) == "SLY.\nAle!\n\nANNA.\nBread!\n"


def test_a_line_of_asterisks_ends_no_play():
    contents = CONTENTS.replace("THE RHYMES", "* * *\n\nTHE RHYMES")
    ornate = BAKERS.replace("SCENE I. The quay.\n", "SCENE I. The quay.\n\n* * *\n")
    assert extract_plays(contents + ornate + CROW) == extract_plays(CONTENTS + BAKERS + CROW)


def test_a_chorus_between_acts_stays():
    play = BAKERS_ACTS.replace("ACT II\n", "ACT II\n\nCHORUS.\nNow all the youth of Lundy eat.\n")
    assert "\n\nCHORUS.\nNow all the youth of Lundy eat.\n\n Enter Anna." in extract_plays(play)


def test_a_play_may_have_one_act():
    assert extract_plays("THE SPOON\n\nACT I\n\nCOOK.\nMy spoon!\n") == "COOK.\nMy spoon!\n"


def test_acts_numbered_twice_lose_nothing():
    play = "ACT I\n\nANNA.\nOne.\n\nACT II\n\nANNA.\nTwo.\n\nACT II\n\nANNA.\nThree.\n"
    assert extract_plays(play) == "ANNA.\nOne.\n\nANNA.\nTwo.\n\nANNA.\nThree.\n"


def test_an_edition_with_straight_apostrophes_gives_the_same_text():
    assert extract_plays(WORKS.replace("’", "'")) == PLAYS


def test_a_straight_apostrophe_among_many_curly_ones_is_a_misprint_and_goes():
    many = BAKERS_ACTS.replace("1 GULL.", "1 GULL.\n" + "’Tis so, we’d say.\n" * 100)
    one = many.replace("rather eat", "rather e'er eat")
    assert extract_plays(one) == extract_plays(many.replace("rather eat", "rather eer eat"))


TITLED = """THE LOST SPOON

DRAMATIS PERSONAE

  COOK
  BOY

{}

COOK.
My spoon!

ACT II.

BOY.
Found!
"""


@pytest.mark.parametrize(
    "heading",
    [
        "THE LOST SPOON ACT I. SCENE 1",
        "THE LOST SPOON, ACT I. SCENE 1. A kitchen.",
        "  THE LOST SPOON: ACT I",
        "The Lost Spoon. ACT I",
        "THE SPOON ACT I. SCENE 1.",
        "ACT_1|SC_1",
        "THE_LOST_SPOON|ACT_1|SC_1",
        "ACT_1",
        "ACT_1|SC_1\n                  ACT I. SCENE I.",
        "ACT I\nACT I. SCENE I.",
    ],
)
def test_the_heading_of_an_act_may_carry_the_title_or_bars(heading):
    play = TITLED.format(heading)
    assert extract_plays(play) == "COOK.\nMy spoon!\n\nBOY.\nFound!\n"
    assert gaps(play) == []


def test_the_title_may_be_in_the_heading_of_every_scene():
    titled = INDENTED.replace("\nACT I", "\nTHE BAKERS OF LUNDY ACT I")
    assert titled.count("LUNDY ACT") == 4
    assert extract_plays(titled) == extract_plays(INDENTED)


@pytest.mark.parametrize(
    "line", ["END OF ACT I. SCENE 1.", "THE END OF ACT I", "And so we ACT I. Or do we?", "OTTO. ACT I? No."]
)
def test_a_line_that_names_an_act_and_is_no_heading_stays(line):
    play = f"ACT I\n\nANNA.\nOne.\n\n{line}\n\nACT II\n\nANNA.\nTwo.\n"
    assert extract_plays(play).count("\n") == 7


@pytest.mark.parametrize("mark", ["THE END", "-THE END-", "--The End--", "—FINIS—", "  - THE END -"])
def test_the_mark_at_the_end_of_a_play_may_have_dashes(mark):
    assert extract_plays(f"ACT I\n\nANNA.\nBread!\n\n{mark}\n\nSonnets\n\nO bread!\n") == "ANNA.\nBread!\n"


@pytest.mark.parametrize("first", ["EPILOGUE", "THE_BAKERS|EPILOGUE"])
@pytest.mark.parametrize("second", ["                    EPILOGUE.", "              THE EPILOGUE."])
@pytest.mark.parametrize("gap", ["", "\n"])
def test_the_heading_of_an_epilogue_may_be_typed_twice(first, second, gap):
    play = f"ACT I\n\nANNA. Bread!\n\n{first}\n{second}\n{gap}  OTTO. Our play is done.\n"
    assert extract_plays(play) == "ANNA. Bread!\n\n  OTTO. Our play is done.\n"


OPENING = "THE BAKERS\n\nDramatis Personæ\n\nANNA\n\n{}\n\nACT I\n\nANNA.\nBread!\n"


def test_a_prologue_typed_twice_is_a_heading():
    play = OPENING.format("PROLOGUE\n        PROLOGUE.\n\nEnter CHORUS\n\nCHORUS.\nTwo bakers, both of Lundy.")
    assert extract_plays(play) == "Enter CHORUS\n\nCHORUS.\nTwo bakers, both of Lundy.\n\nANNA.\nBread!\n"


def test_a_prologue_right_above_a_speech_is_its_speaker_below_a_heading_too():
    play = OPENING.format("SCENE: Lundy\n\nPROLOGUE\nPROLOGUE.\nTwo bakers, both of Lundy.")
    assert extract_plays(play) == "PROLOGUE.\nTwo bakers, both of Lundy.\n\nANNA.\nBread!\n"


def test_a_misprinted_numeral_is_read():
    play = "ACT I\n\nANNA.\nOne.\n\nACT Il. SCENE 1\n\nANNA.\nTwo.\n"
    assert extract_plays(play) == "ANNA.\nOne.\n\nANNA.\nTwo.\n"
    assert gaps(play) == []


# --- missing acts and scenes ---


@pytest.mark.parametrize("text", [WORKS, INDENTED, SPOON, "ACT I\n\nANNA.\nOne.\n\nACT II\n\nANNA.\nTwo.\n"])
def test_an_edition_without_gaps_has_none(text):
    assert gaps(text) == []


@pytest.mark.parametrize(
    ("headings", "missing"),
    [
        (["ACT II", "ACT III"], "no act 1"),
        (["ACT I", "ACT III", "ACT V"], "no act 2, no act 4"),
        (["ACT I\nSCENE I.", "SCENE III."], "no scene 2 of act 1"),
        (["ACT I. SCENE 2.", "ACT II. SCENE 1.", "ACT II. SCENE 3."], "no scene 1 of act 1, no scene 2 of act 2"),
        (["ACT I", "ACT IV\nSCENE II."], "no act 2, no act 3, no scene 1 of act 4"),
        (["INDUCTION\n\nSCENE II.", "ACT I"], "no scene 1 of the induction"),
    ],
)
def test_gaps_name_the_play_its_line_and_what_is_missing(headings, missing):
    acts = "".join(f"{each}\n\nANNA.\nBread!\n\n" for each in headings)
    assert gaps(f"THE BAKERS\n\nDramatis Personæ\n\nANNA\n\n\n{acts}") == [f"8: THE BAKERS: {missing}"]


def test_a_play_with_gaps_is_named_among_others():
    bakers = BAKERS.replace("SCENE II. Before", "SCENE III. Before")
    text = LICENCE_ABOVE + CONTENTS + RHYMES + bakers + SPOON + CROW
    [found] = gaps(text)
    line, rest = found.split(": ", 1)
    assert rest == "THE BAKERS OF LUNDY: no scene 2 of act 1"
    assert text.splitlines()[int(line) - 1] == "PROLOGUE"


@pytest.mark.parametrize(
    "text", ["", "\n\n", RHYMES, CONTENTS + RHYMES + CROW, BAKERS_PREAMBLE, "We act. I act. Act I did!"]
)
def test_a_text_without_plays_is_the_users_mistake(text):
    with pytest.raises(UserError, match=r"^the text has no play.*ACT I.*data\.preparation=text[^\n]*$"):
        extract_plays(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bread & butter, &c. and cakes, &c, too", "bread AND butter, etc. and cakes, etc., too"),
        ("Cæsar, ÆSOP, Œdipus, œuvre", "Caesar, AESOP, OEdipus, oeuvre"),
        ("Alençon, unlearnèd, À la, naïve, Ångström", "Alencon, unlearned, A la, naive, Angstrom"),
        ("Otto' oven, 'tis o'er", "Otto’ oven, ’tis o’er"),
        ("Otto' oven" + ", ’tis" * 100, "Otto oven" + ", ’tis" * 100),
        ('"Aye," quoth he, ("no")—"well"', "“Aye,” quoth he, (“no”)—“well”"),
        ("1 GULL.\n  2. Gulls\n_3. A gull._", "GULL.\n  Gulls\n_A gull._"),
        ("a loaf, 2s. 6d.", "a loaf, s. d."),
        ("one\ttwo \t three", "one two three"),
        ("so… and – so -- on—", "so... and - so -- on—"),
        ("{a} <b> *c* |d| e=f @ # 日本", "a b c d ef   "),
        ("[_Exeunt._] (aside), why? O! no: yes; so", "[_Exeunt._] (aside), why? O! no: yes; so"),
    ],
    ids=[
        "and",
        "ligatures",
        "accents",
        "straight",
        "misprint",
        "quotes",
        "numbers",
        "digits",
        "tabs",
        "dots",
        "others",
        "kept",
    ],
)
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
    found = text_statistics(plays)
    assert set(plays) == KEPT
    assert found.distinct_characters == 71
    assert 4_950_000 <= found.characters <= 4_990_000
    assert found.lines == pytest.approx(182_027, rel=0.005)
    assert found.passages == pytest.approx(38_409, rel=0.005)
    assert found.words == pytest.approx(921_816, rel=0.005)
    assert found.unique_words == pytest.approx(30_040, rel=0.005)
    assert found.longest_passage == 3_047
    assert (found.commonest_word, found.commonest_count) == ("the", pytest.approx(23_467, rel=0.005))
    assert found.mean_line == pytest.approx(26.27, rel=0.005)
    assert found.rare_words == pytest.approx(0.8, abs=0.02)  # the post rounds
    assert extract_plays(saved_elsewhere(LICENCE_ABOVE + text + LICENCE_BELOW)) == plays
    assert hashlib.sha256(plays.encode()).hexdigest()[:16] == "09940410434062c5"
    assert gaps(text) == []
