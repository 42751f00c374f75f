"""Extract the plays from the works of Shakespeare as published by Project Gutenberg (number 100, or a play of it).

A play is found by the headings of its acts. The text above the first act is a preamble, except for a prologue. A play
ends at the words THE END or FINIS, or at the title of the next work, which is in capitals far below it.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from firstlight.errors import UserError

VERSION = 3  # increase it with every change of the extracted text

NO_PLAY = (
    'the text has no play: no heading of a first act ("ACT I", "Act 1") is followed by speeches; '
    "set data.preparation=text to train on the unchanged text"
)

_MARKUP = r"[\s_*=\[]*"  # characters around a heading: an indent, italics, a bracket
_ALONE = r"[\s.\]_*=]*$"
_ACT = re.compile(rf"{_MARKUP}(?:ACT|Act) ([IVX]+|\d+)(?=\s*$|\s*[.,:;\]_*=—-])")
_SCENE = re.compile(rf"{_MARKUP}(?:SCENE|Scene) (?:[IVX]+|\d+)(?![^\W_])")
_PART = re.compile(rf"{_MARKUP}(?:(?:THE )?(?:PROLOGUE|INDUCTION|EPILOGUE)|Prologue|Induction|Epilogue){_ALONE}")
_CHORUS = re.compile(rf"{_MARKUP}(?:CHORUS|Chorus){_ALONE}")
_ENTRANCE = re.compile(r"[\s_*\[]*(?:[A-Z][\w ]*\. )?Enter (?:the )?(?:Prologue|Chorus)\b", re.I)
_SETTING = re.compile(rf"{_MARKUP}(?:SCENE|Scene|The scene)\b")
_END = re.compile(rf"{_MARKUP}(?:(?:THE END|FINIS){_ALONE}|END OF TH|End of (?:the |this )?Project Gut)")
_NOTICE = re.compile(r"<<.*?>>", re.S)  # the license, which an edition repeats after every work

_STRAY = 100  # straight apostrophes are misprints if there are more curly ones than this for each
_FAR = 3  # the smallest number of blank lines above the title of a work

_ALIKE = str.maketrans(
    {
        "Æ": "AE", "æ": "ae", "Œ": "OE", "œ": "oe", "Ø": "O", "ø": "o", "ß": "ss",
        "«": "“", "»": "”", "„": "“", "‟": "“", "‚": "‘", "‛": "‘", "–": "-", "―": "—",
    }
)  # fmt: skip
_OUTSIDE = re.compile(r"[^\n !(),\-.:;?A-Z\[\]_a-z—‘’“”]")


def extract_plays(text: str) -> str:
    r"""Return the plays of a Project Gutenberg edition of Shakespeare, cleaned as in post 2 (Shakespeare, 2024).

    The result has stage directions, speakers and speeches, with one blank line between passages. The license, contents,
    poems, titles, casts, and the headings of acts, scenes, prologues and epilogues are removed. At most 71 different
    characters remain: English letters, new line, space and common marks. Straight apostrophes become curly. If an
    edition has mostly curly apostrophes, the few straight ones are misprints and are removed.

    Args:
        text: a complete edition, such as Gutenberg's number 100, or a single play.

    Returns:
        The plays as one text.

    Raises:
        UserError: if the text has no play.

    Example:
        >>> from firstlight.text import extract_plays
        >>> text = '''THE TRAGEDY OF NOBODY
        ...
        ... ACT I
        ... SCENE I. A room.
        ...
        ... FIRST LORD.
        ... Who is there? A man & a dog.
        ...
        ... THE END'''
        >>> extract_plays(text)
        'FIRST LORD.\nWho is there? A man AND a dog.\n'
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.rstrip() for line in _NOTICE.sub("", text).split("\n")]
    plays = ["\n".join(_without_headings(lines[start:end])) for start, end in _plays(lines)]
    if not plays:
        raise UserError(NO_PLAY)
    text = re.sub(r" +$", "", clean("\n\n".join(plays)), flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def clean(text: str) -> str:
    """Return a text of English letters and common marks. Other characters are replaced by similar ones, or removed."""
    text = re.sub(r" *\t *", " ", text).translate(_ALIKE)
    text = unicodedata.normalize("NFKD", text)  # "é" → "e" and a mark, which is removed below; "…" → "..."
    text = re.sub(r"&c\b\.?", "etc.", text).replace("&", "AND")
    text = re.sub(r"^([ _]*)\d+\.? +", r"\1", text, flags=re.M)  # "1 GENTLEMAN" → "GENTLEMAN"
    text = re.sub(r'(?<![^\s(\[—_-])"', "“", text).replace('"', "”")
    if text.count("'") * _STRAY > text.count("’"):
        text = text.replace("'", "’")
    return _OUTSIDE.sub("", text)


def _without_headings(lines: list[str]) -> Iterator[str]:
    """Yield all lines except headings."""
    for index, line in enumerate(lines):
        if not _is_numbered(line) and not _is_heading_of_part(lines, index):
            yield line


def _is_numbered(line: str) -> bool:
    """Return whether a line is the heading of an act or a scene."""
    return bool(_ACT.match(line) or _SCENE.match(line))


def _is_heading_of_part(lines: list[str], index: int) -> bool:
    """Return whether a line such as PROLOGUE is a heading. Directly above a speech it is its speaker."""
    return bool(_PART.match(lines[index])) and _is_blank(lines, index - 1) and _is_blank(lines, index + 1)


def _is_blank(lines: list[str], index: int) -> bool:
    return not 0 <= index < len(lines) or not lines[index]


def _plays(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the first line of each play and the line after its last one."""
    done = 0  # lines before it belong to an earlier play or to a list of acts
    for acts, following in pairwise([*_groups(lines), [len(lines)]]):
        end = _end(lines, acts[-1], following[0])
        if _is_spoken(lines[acts[0] : acts[1] if len(acts) > 1 else end]):
            yield _start(lines, done, acts[0]), end
            done = end
        else:
            done = acts[-1] + 1


def _groups(lines: list[str]) -> list[list[int]]:
    """Return the headings of acts in groups, each of which begins with a first act: a play, or a list of its acts."""
    groups: list[list[int]] = []
    for index, line in enumerate(lines):
        if act := _ACT.match(line):
            if act[1] in ("I", "1"):
                groups.append([])
            if groups:
                groups[-1].append(index)
    return groups


def _is_spoken(act: list[str]) -> bool:
    """Return whether these lines are an act, not an entry of a list of acts. In a list, a line may be wrapped."""
    for block in _blocks(act, 0, len(act)):
        headings = sum(map(_is_heading, block.lines))
        if not _is_heading(block.lines[0]) or len(block.lines) >= 2 * headings:
            return True
    return False


def _is_heading(line: str) -> bool:
    return bool(_is_numbered(line) or _PART.match(line) or _CHORUS.match(line))


def _start(lines: list[str], above: int, act: int) -> int:
    """Return the first spoken line of a play: that of its first act, or of a prologue or an induction before it.

    A cast may also list a PROLOGUE. The spoken one is below the setting ("SCENE: Verona"), or it is the last one.
    """
    for index in range(above, act):
        if _SETTING.match(lines[index]) and not _SCENE.match(lines[index]):
            return next((spoken for spoken in range(index + 1, act) if _opens(lines, spoken)), act)
    return max((index for index in range(above, act) if _is_heading_of_part(lines, index)), default=act)


def _opens(lines: list[str], index: int) -> bool:
    """Return whether a prologue, an induction or a chorus begins in a line."""
    line = lines[index]
    return _is_blank(lines, index - 1) and any(kind.match(line) for kind in (_PART, _CHORUS, _ENTRANCE))


def _end(lines: list[str], last_act: int, limit: int) -> int:
    """Return the line after a play: that of its end mark, or the first line of the next work."""
    limit = next((index for index in range(last_act, limit) if _END.match(lines[index])), limit)
    works = (block.start for block in _blocks(lines, last_act + 1, limit) if block.gap >= _FAR and block.is_title)
    return next(works, limit)


@dataclass(frozen=True)
class _Block:
    """Consecutive lines that are not blank."""

    start: int
    lines: list[str]
    gap: int  # blank lines above

    @property
    def is_title(self) -> bool:
        """Whether it is in capitals, and no heading and no direction."""
        text = "".join(self.lines)
        return text == text.upper() and not text.lstrip().startswith(("[", "_", "(")) and not _is_heading(self.lines[0])


def _blocks(lines: list[str], start: int, stop: int) -> Iterator[_Block]:
    gap = 0
    while start < stop:
        if not lines[start]:
            start, gap = start + 1, gap + 1
            continue
        end = next((index for index in range(start, stop) if not lines[index]), stop)
        yield _Block(start, lines[start:end], gap)
        start, gap = end, 0
