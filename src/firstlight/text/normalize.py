"""What the first post calls simplification, and the two definitions of a word: its own, and one with punctuation."""

import html
import re

from tokenizers import Regex
from tokenizers.normalizers import NFD, Lowercase, Normalizer, Replace, Sequence

WORD = re.compile(r"\w\w+\b")
TOKEN = re.compile(
    r"\w+|([^\w\s])\1{0,2}"
)  # a word of any length, or up to three of one mark: "..." and "!!!" say more
_DROPPED = Regex(r"[\p{M}'`’‘\u200c\u200d]")  # combining marks, apostrophes, zero-width (non-)joiners
_NEW_LINE = Regex(r"\r\n?|\n")
_TAG = r"<[^<>]{1,20}>"  # such as <br />


def normalizer(*, punctuation: bool = False) -> Normalizer:
    """Lower case, no accents, no apostrophes, no zero-width joiners, new lines as spaces; no tags among punctuation."""
    steps = [Lowercase(), NFD(), Replace(_DROPPED, ""), Replace(_NEW_LINE, " ")]
    return Sequence([Replace(Regex(_TAG), " "), *steps] if punctuation else steps)


_NORMALIZER = normalizer()


def simplify(text: str) -> str:
    """Return the text with its HTML entities unescaped, then normalized."""
    return _NORMALIZER.normalize_str(_readable(text))


def words(text: str) -> list[str]:
    """Return the words of a text: two letters, digits or underscores and more, simplified.

    ASCII needs no decomposition, so Python alone does the same for it, in a third of the time.
    """
    return WORD.findall(_simple(_readable(text)))


def words_and_marks(text: str) -> list[str]:
    """Return the words of a text, single letters and digits among them, and its punctuation: "5/5!!!" → 5 / 5 !!!"""
    text = re.sub(_TAG, " ", _readable(text))
    return [found.group() for found in TOKEN.finditer(_simple(text))]


def _simple(text: str) -> str:
    return text.lower().replace("'", "").replace("`", "") if text.isascii() else _NORMALIZER.normalize_str(text)


def _readable(text: str) -> str:
    """Unescape HTML entities, even those escaped twice, and write "?" for what no UTF-8 can hold."""
    if "&" in text:
        text = html.unescape(html.unescape(text))
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
