"""Normalization of text as in post 1, and two definitions of a word: without and with punctuation."""

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
    """Return a normalizer: lower case, no accents, no apostrophes, no zero-width joiners, spaces for new lines.

    punctuation: also remove HTML tags.
    """
    steps = [Lowercase(), NFD(), Replace(_DROPPED, ""), Replace(_NEW_LINE, " ")]
    return Sequence([Replace(Regex(_TAG), " "), *steps] if punctuation else steps)


_NORMALIZER = normalizer()


def simplify(text: str) -> str:
    """Return a text in lower case, without accents, apostrophes and zero-width joiners, and with spaces for new lines.

    HTML entities are unescaped first. This is the simplification of post 1 (review classification, 2022).

    Args:
        text: any text.

    Returns:
        The simplified text.

    Example:
        >>> from firstlight.text import simplify
        >>> simplify("It's a CAFÉ &amp; bar!")
        'its a cafe & bar!'
    """
    return _NORMALIZER.normalize_str(_readable(text))


def words(text: str) -> list[str]:
    """Return the words of a text: two or more letters, digits or underscores, simplified.

    ASCII text needs no decomposition, so string methods do the same in a third of the time.
    """
    return WORD.findall(_simple(_readable(text)))


def words_and_marks(text: str) -> list[str]:
    """Return the words of a text, single letters and digits included, and its punctuation: "5/5!!!" → 5 / 5 !!!"""
    text = re.sub(_TAG, " ", _readable(text))
    return [found.group() for found in TOKEN.finditer(_simple(text))]


def _simple(text: str) -> str:
    return text.lower().replace("'", "").replace("`", "") if text.isascii() else _NORMALIZER.normalize_str(text)


def _readable(text: str) -> str:
    """Unescape HTML entities, even those escaped twice, and write "?" for what UTF-8 cannot encode."""
    if "&" in text:
        text = html.unescape(html.unescape(text))
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
