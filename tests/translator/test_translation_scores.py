import re

import pytest
import sacrebleu

from firstlight.translator.translation_scores import TranslationScores, score

TRANSLATIONS = ["A dog runs through the tall grass.", "Two men are sitting on a red bench .", "The girl sings."]
REFERENCES = [
    "A brown dog runs through the high grass.",
    "Two men are sitting on a bench.",
    "A girl is singing a song.",
]


def test_the_scores_are_those_of_sacrebleu():
    found = score(TRANSLATIONS, REFERENCES)
    assert found.bleu == sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES]).score
    assert found.chrf == sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES]).score
    assert 0 < found.bleu < found.chrf < 100


def test_a_corpus_is_scored_as_a_whole_and_not_as_a_mean_of_sentences():
    alone = [score([ours], [theirs]).bleu for ours, theirs in zip(TRANSLATIONS, REFERENCES, strict=True)]
    assert score(TRANSLATIONS, REFERENCES).bleu != pytest.approx(sum(alone) / 3, abs=1)


def test_translations_and_references_are_not_interchangeable():
    assert score(TRANSLATIONS, REFERENCES).bleu != pytest.approx(score(REFERENCES, TRANSLATIONS).bleu)


def test_what_people_wrote_scores_a_hundred_and_nothing_scores_nothing():
    same = score(REFERENCES, REFERENCES)
    assert (same.bleu, same.chrf) == (pytest.approx(100), pytest.approx(100))
    nothing = score(["", "", ""], REFERENCES)
    assert (nothing.bleu, nothing.chrf) == (0, 0)


def test_case_counts():
    lower = score([text.lower() for text in REFERENCES], REFERENCES)
    assert lower.bleu < 90
    assert lower.chrf < 99


def test_each_translation_is_compared_with_its_own_reference():
    assert score(REFERENCES[::-1], REFERENCES).bleu < score(REFERENCES, REFERENCES).bleu / 2


def test_the_signatures_say_how_it_was_computed():
    found = score(TRANSLATIONS, REFERENCES)
    assert re.fullmatch(r"nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:[\d.]+", found.bleu_signature)
    assert re.fullmatch(r"nrefs:1\|case:mixed\|eff:yes\|nc:6\|nw:0\|space:no\|version:[\d.]+", found.chrf_signature)
    assert TranslationScores._fields == ("bleu", "chrf", "bleu_signature", "chrf_signature")


def test_a_translation_without_a_reference_is_our_mistake():
    with pytest.raises(AssertionError, match="3 translations of 2"):
        score(TRANSLATIONS, REFERENCES[:2])
