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


def test_the_signatures_say_how_it_was_computed():
    found = score(TRANSLATIONS, REFERENCES)
    assert re.fullmatch(r"nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:[\d.]+", found.bleu_signature)
    assert re.fullmatch(r"nrefs:1\|case:mixed\|eff:yes\|nc:6\|nw:0\|space:no\|version:[\d.]+", found.chrf_signature)
    assert TranslationScores._fields == ("bleu", "chrf", "bleu_signature", "chrf_signature")


def test_a_translation_without_a_reference_is_our_mistake():
    with pytest.raises(AssertionError, match="3 translations of 2"):
        score(TRANSLATIONS, REFERENCES[:2])
