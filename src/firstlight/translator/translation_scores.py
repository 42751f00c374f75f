"""Scores of translations against references: BLEU and chrF, computed by sacrebleu."""

from collections.abc import Sequence
from typing import NamedTuple


class TranslationScores(NamedTuple):
    """BLEU and chrF of a corpus, from 0 to 100, and the signatures of their computation (Post 2018).

    bleu: cased BLEU with the tokenizer 13a (Papineni et al. 2002); chrf: F-score of character n-grams (Popović 2015).
    """

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str

    def metrics(self, beam_size: int) -> dict[str, float]:
        """Return both scores by name: bleu and chrf for greedy translations, bleu_beam4 and chrf_beam4 for a beam."""
        suffix = "" if beam_size == 1 else f"_beam{beam_size}"
        return {f"bleu{suffix}": self.bleu, f"chrf{suffix}": self.chrf}

    @property
    def signatures(self) -> str:
        """Both signatures, in one line."""
        return f"BLEU {self.bleu_signature}, chrF {self.chrf_signature}"


def score(translations: Sequence[str], references: Sequence[str]) -> TranslationScores:
    """Return the scores of the translations of a corpus, with one reference for each."""
    from sacrebleu.metrics import BLEU, CHRF

    assert len(translations) == len(references), f"{len(translations)} translations of {len(references)}"
    bleu, chrf = BLEU(), CHRF()
    bleu_score, chrf_score = (
        metric.corpus_score(list(translations), [list(references)]).score for metric in (bleu, chrf)
    )
    return TranslationScores(bleu_score, chrf_score, str(bleu.get_signature()), str(chrf.get_signature()))
