"""Extract the plays from the works of Shakespeare as published by Project Gutenberg.

A play is found by the headings of its acts. The text above the first act is a preamble, except for a prologue. A play
ends where the next work begins.
"""

import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from firstlight.errors import UserError

VERSION = 2  # increase it with every change of the extracted text

NO_PLAY = (
    'the text has no play: no heading of an act ("ACT I", "Act 1", "Actus Primus") is followed by speeches; '
    "set data.preparation=text to train on the unchanged text"
)

_ROMAN = {"I": 1, "l": 1, "V": 5, "X": 10}
_ORDINALS = [
    ("one", "first", "prim"),
    ("two", "second", "secund"),
    ("three", "third", "tert"),
    ("four", "fourth", "quart"),
    ("five", "fifth", "quint"),
]
_NUMBER = {name: number for number, names in enumerate(_ORDINALS, start=1) for name in names}

_MARKUP = r"[\s_*=\[]*"  # characters around a heading: an indent, italics, a bracket
_NUMERAL = rf"(?:(?i:the)\s+)?([IVX][IVXl]*|\d+|(?i:{'|'.join(_NUMBER)}))(?i:us|a)?"  # "Il" is a misprint of "II"
_SCENE_WORD = r"S(?i:c(?:e|æ|œ|ae|oe)n[ea])"
_ACT = re.compile(rf"{_MARKUP}(?:ACT|Act)(?:US|us)?\s+{_NUMERAL}(?=\s*$|\s*[.,:;\]_*=—-]|\s+{_SCENE_WORD})")
_SCENE = re.compile(rf"{_MARKUP}{_SCENE_WORD}\s+{_NUMERAL}(?![^\W_])")
_SCENE_OF_ACT = re.compile(rf"\b{_SCENE_WORD}\s+{_NUMERAL}(?![^\W_])")
_TITLED = re.compile(rf"(.*?\w)[\s.,:;—-]+({_ACT.pattern}.*)")
_BARRED = re.compile(r"\s*(?=.*\||ACT_)[A-Z0-9_'’]+(?:\|[A-Z0-9_]+)*$")
_THE = rf"{_MARKUP}(?:THE |The )?"
_ALONE = r"[\s.\]_*=]*$"
_PART = re.compile(rf"{_THE}(?:PROLOGUE|Prologue|INDUCTION|Induction|EPILOGUE|Epilogue){_ALONE}")
_CHORUS = re.compile(rf"{_THE}(?:CHORUS|Chorus){_ALONE}")
_ENTRANCE = re.compile(r"[\s_*\[]*(?:[A-Z][\w ]*\. )?Enter (?:the )?(?:Prologue|Chorus)\b", re.I)
_SETTING = re.compile(rf"{_MARKUP}(?:SCENE|Scene|The scene)\b")
_CONTENTS = re.compile(rf"{_MARKUP}(?:table of )?contents{_ALONE}", re.I)
_PREAMBLE = re.compile(
    rf"{_CONTENTS.pattern}|{_MARKUP}(?:dramatis person|(?:the )?(?:persons|characters) (?:represented|of the|in the)"
    r"|(?:the )?names of (?:all )?the actors|(?:the )?actors.? names|(?:written )?by william shakes?pear)",
    re.I,
)
_END = re.compile(
    rf"{_MARKUP}[\s—-]*(?:(?:THE END|The End|FINIS|Finis)[\s—-]*{_ALONE}|END OF TH|End of (?:the |this )?Project Gut)"
)
_SPEECH = re.compile(r"\s*(?:[\[_(]|Enter\b|[A-Z]{2}|[A-Z][\w ]*\.)")  # a speech or a direction
_NOTICE = re.compile(r"<<.*?>>", re.S)  # the license, which an edition repeats after every work

_STRAY = 100  # straight apostrophes are misprints if there are more curly ones than this for each
_FAR = 3  # the smallest number of blank lines above the title of a work in capitals

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
    lines = _lines(text)
    plays = ["\n".join(_without_headings(lines[start:end])) for start, end in _plays(lines)]
    if not plays:
        raise UserError(NO_PLAY)
    return _folded(clean("\n\n".join(plays)))


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


def _lines(text: str) -> list[str]:
    """Return the lines, with unusual forms of headings replaced by the usual form.

    "ACT_2|SC_7" → "ACT 2. SCENE 7"; "KING_LEAR|EPILOGUE" → "EPILOGUE"; "KING LEAR ACT I. SCENE 1" → "ACT I. SCENE 1".
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = [_without_bars(line.rstrip()) for line in _NOTICE.sub("", text).split("\n")]
    titled = {index: match for index, line in enumerate(lines) if "ACT" in line and (match := _TITLED.match(line))}
    alone = {_key(line) for line in lines} if titled else set()
    for index, match in titled.items():
        title, heading = match[1], match[2]
        is_title = _key(title) in alone or (title.isupper() and _SCENE_OF_ACT.search(heading))
        if is_title and "end" not in _key(title).split():
            lines[index] = heading
    return lines


def _without_bars(line: str) -> str:
    if not _BARRED.match(line):
        return line
    parts = [re.sub("^SC ", "SCENE ", part.replace("_", " ")) for part in line.strip().split("|")]
    return ". ".join(filter(_is_heading, parts)) or line


def _folded(text: str) -> str:
    """Return a text with at most one blank line in a row, none above the text, and no spaces at the ends of lines."""
    text = re.sub(r" +$", "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def _without_headings(lines: list[str]) -> Iterator[str]:
    """Yield all lines except headings. PROLOGUE directly above a speech is not a heading but its speaker."""
    heading = ""
    for index, line in enumerate(lines):
        if _is_numbered(line) or (heading and _goes_on(heading, line)):
            heading = line
        else:
            heading = ""
            if not _is_heading_of_part(lines, index):
                yield line


def _goes_on(heading: str, line: str) -> bool:
    """Return whether a line continues a wrapped heading: "SCENE I. A room in" / "the palace."."""
    return heading[-1:].isalpha() and " " in heading.strip() and bool(line) and not _SPEECH.match(line)


def _is_heading_of_part(lines: list[str], index: int) -> bool:
    """Return whether a line such as PROLOGUE, single or typed twice, is a heading and not the next line's speaker."""
    if not _PART.match(lines[index]):
        return False
    first = last = index
    while first and _PART.match(lines[first - 1]):
        first -= 1
    while last + 1 < len(lines) and _PART.match(lines[last + 1]):
        last += 1
    if not _is_blank(lines, first - 1):
        return False
    is_above_speech = first < last and not _is_blank(lines, last + 1) and bool(_SPEECH.match(lines[last + 1]))
    return index < last or is_above_speech or _is_blank(lines, last + 1)


def _is_numbered(line: str) -> bool:
    """Return whether a line is the heading of an act or a scene."""
    return bool(_ACT.match(line) or _SCENE.match(line))


def _is_blank(lines: list[str], index: int) -> bool:
    return not 0 <= index < len(lines) or not lines[index]


def _plays(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the first line of each play and the line after its last one."""
    titles = _titles(lines)
    done = 0  # lines before it belong to an earlier play or to a list of acts
    for run, following in pairwise([*_runs(lines), [len(lines)]]):
        end = _end(lines, run[-1], following[0], titles)
        if _is_spoken(lines[run[0] : run[1] if len(run) > 1 else end]):
            yield _start(lines, done, run[0]), end
            done = end
        else:
            done = run[-1] + 1


def _runs(lines: list[str]) -> list[list[int]]:
    """Return the headings of acts in groups with increasing numbers. A group is a play or a list of acts."""
    runs: list[list[int]] = []
    before, last = (math.inf, 0), 0
    for index, line in enumerate(lines):
        if act := _ACT.match(line):
            scene = _SCENE_OF_ACT.search(line, act.end())
            number = (_number(act[1]), _number(scene[1]) if scene else 0)
            is_repeated = number[0] == before[0] and not any(lines[last + 1 : index])  # the heading is there twice
            if number <= before and not is_repeated:
                runs.append([])
            if not is_repeated:
                runs[-1].append(index)
            before, last = number, index
    return runs


def _number(numeral: str) -> int:
    if numeral.isdecimal():
        return int(numeral)
    if numeral.lower() in _NUMBER:
        return _NUMBER[numeral.lower()]
    digits = [_ROMAN[digit] for digit in numeral]
    return sum(-digit if digit < following else digit for digit, following in pairwise([*digits, 0]))


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
    cast = max((index for index in range(above, act) if _PREAMBLE.match(lines[index])), default=above)
    for index in range(cast, act):
        if _SETTING.match(lines[index]) and not _SCENE.match(lines[index]):
            return next((spoken for spoken in range(index + 1, act) if _opens(lines, spoken)), act)
    return max((index for index in range(cast, act) if _is_heading_of_part(lines, index)), default=act)


def _opens(lines: list[str], index: int) -> bool:
    """Return whether a prologue, an induction or a chorus begins in a line."""
    line = lines[index]
    return _is_blank(lines, index - 1) and any(kind.match(line) for kind in (_PART, _CHORUS, _ENTRANCE))


def _end(lines: list[str], last_act: int, limit: int, titles: set[str]) -> int:
    """Return the line after a play: that of its end mark, or the first line of the next work."""
    limit = next((index for index in range(last_act, limit) if _END.match(lines[index])), limit)
    blocks = list(_blocks(lines, last_act + 1, limit))
    for number, block in enumerate(blocks):
        if _PREAMBLE.match(block.lines[0]):
            return _title_above(blocks[:number], block.start)
        if _is_next_work(block, titles):
            return block.start
    return limit


@dataclass(frozen=True)
class _Block:
    """Consecutive lines that are not blank."""

    start: int
    lines: list[str]
    gap: int  # blank lines above

    @property
    def is_in_capitals(self) -> bool:
        text = "".join(self.lines)
        return text == text.upper() and not text.lstrip().startswith(("[", "_", "("))  # a direction


def _blocks(lines: list[str], start: int, stop: int) -> Iterator[_Block]:
    gap = 0
    while start < stop:
        if not lines[start]:
            start, gap = start + 1, gap + 1
            continue
        end = next((index for index in range(start, stop) if not lines[index]), stop)
        yield _Block(start, lines[start:end], gap)
        start, gap = end, 0


def _is_next_work(block: _Block, titles: set[str]) -> bool:
    """Return whether a block is a title: listed in the contents, or in capitals far below the previous text."""
    if _is_heading(block.lines[0]):
        return False
    return _key(" ".join(block.lines)) in titles or (block.gap >= _FAR and block.is_in_capitals)


def _title_above(blocks: list[_Block], preamble: int) -> int:
    """Return the first line of the title above a preamble: a few blocks in capitals, or a separate line."""
    start = preamble
    for block in reversed(blocks):
        if not (block.is_in_capitals or _stands_apart(block)) or _is_heading(block.lines[0]):
            break
        start = block.start
    return start


def _stands_apart(block: _Block) -> bool:
    return block.gap > 1 and len(block.lines) == 1 and block.lines[0][-1].isalnum()


def _titles(lines: list[str]) -> set[str]:
    """Return the titles in the first list of contents, if there is one. A repeated title begins the work itself."""
    contents = next((index for index, line in enumerate(lines) if _CONTENTS.match(line)), len(lines))
    titles: set[str] = set()
    for block in _blocks(lines, contents + 1, len(lines)):
        found = {_key(line) for line in block.lines} - {""}
        if (titles and block.gap > 1) or found & titles or _is_heading(block.lines[0]):
            break
        titles |= found
    return titles


def _key(title: str) -> str:
    """Return a title in lower case without its page number and marks."""
    return " ".join(re.findall(r"[^\W\d_]+", title.lower()))
