"""What the first post calls simplification, and the one definition of a word."""

import html
import re

from tokenizers import Regex
from tokenizers.normalizers import NFD, Lowercase, Normalizer, Replace, Sequence

WORD = re.compile(r"\w\w+\b")
_DROPPED = Regex(r"[\p{M}'`’‘\u200c\u200d]")  # combining marks, apostrophes, zero-width (non-)joiners
_NEW_LINE = Regex(r"\r\n?|\n")


def normalizer() -> Normalizer:
    """Lower case, no accents, no apostrophes, no zero-width joiners, new lines as spaces."""
    return Sequence([Lowercase(), NFD(), Replace(_DROPPED, ""), Replace(_NEW_LINE, " ")])


_NORMALIZER = normalizer()


def simplify(text: str) -> str:
    """Return the text with its HTML entities unescaped, then normalized."""
    return _NORMALIZER.normalize_str(_readable(text))


def words(text: str) -> list[str]:
    """Return the words of a text: two letters, digits or underscores and more, simplified.

    ASCII needs no decomposition, so Python alone does the same for it, in a third of the time.
    """
    text = _readable(text)
    simple = text.lower().replace("'", "").replace("`", "") if text.isascii() else _NORMALIZER.normalize_str(text)
    return WORD.findall(simple)


def _readable(text: str) -> str:
    """Unescape HTML entities, even those escaped twice, and write "?" for what no UTF-8 can hold."""
    if "&" in text:
        text = html.unescape(html.unescape(text))
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
