"""Extract the plays from the works of Shakespeare as published by Project Gutenberg.

A play is found by the headings of its acts. The text above the first act is a preamble, except for a prologue. A play
ends where the next work begins.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from firstlight.errors import UserError

NO_PLAY = (
    'no play in the text: looked for headings of acts ("ACT I", "Act 1", "Actus Primus") with lines to speak below '
    "them; data.preparation=text trains on the text as it is"
)

_ROMAN = {"I": 1, "V": 5, "X": 10}
_ORDINALS = [
    ("one", "first", "prim"),
    ("two", "second", "secund"),
    ("three", "third", "tert"),
    ("four", "fourth", "quart"),
    ("five", "fifth", "quint"),
]
_NUMBER = {name: number for number, names in enumerate(_ORDINALS, start=1) for name in names}

_MARKUP = r"[\s_*=\[]*"  # what may surround a heading: an indent, italics, a bracket
_NUMERAL = rf"(?:(?i:the)\s+)?([IVX]+|\d+|(?i:{'|'.join(_NUMBER)}))(?i:us|a)?"
_SCENE_WORD = r"S(?i:c(?:e|æ|œ|ae|oe)n[ea])"
_ACT = re.compile(rf"{_MARKUP}(?:ACT|Act)(?:US|us)?\s+{_NUMERAL}(?=\s*$|\s*[.,:;\]_*=—-]|\s+{_SCENE_WORD})")
_SCENE = re.compile(rf"{_MARKUP}{_SCENE_WORD}\s+{_NUMERAL}(?![^\W_])")
_SCENE_OF_ACT = re.compile(rf"\b{_SCENE_WORD}\s+{_NUMERAL}(?![^\W_])")
_THE = rf"{_MARKUP}(?:THE |The )?"
_ALONE = r"[\s.\]_*=]*$"
_PRELUDE = re.compile(rf"{_THE}(?:PROLOGUE|Prologue|INDUCTION|Induction){_ALONE}")
_EPILOGUE = re.compile(rf"{_THE}(?:EPILOGUE|Epilogue){_ALONE}")
_CHORUS = re.compile(rf"{_THE}(?:CHORUS|Chorus){_ALONE}")
_ENTRANCE = re.compile(r"[\s_*\[]*(?:[A-Z][\w ]*\. )?Enter (?:the )?(?:Prologue|Chorus)\b", re.I)
_SETTING = re.compile(rf"{_MARKUP}(?:SCENE|Scene|The scene)\b")
_CONTENTS = re.compile(rf"{_MARKUP}(?:table of )?contents{_ALONE}", re.I)
_PREAMBLE = re.compile(
    rf"{_CONTENTS.pattern}|{_MARKUP}(?:dramatis person|(?:the )?(?:persons|characters) (?:represented|of the|in the)"
    r"|(?:the )?names of (?:all )?the actors|(?:the )?actors.? names|(?:written )?by william shakes?pear)",
    re.I,
)
_END = re.compile(rf"{_MARKUP}(?:(?:THE END|The End|FINIS|Finis){_ALONE}|END OF TH|End of (?:the |this )?Project Gut)")
_SPEECH = re.compile(r"\s*(?:[\[_(]|Enter\b|[A-Z]{2}|[A-Z][\w ]*\.)")  # or a direction
_NOTICE = re.compile(r"<<.*?>>", re.S)  # the licence that an edition repeats after every work

_FAR = 3  # blank lines above the title of a work, at the least
_TITLE_BLOCKS = 4  # at the most: a year, a title, a subtitle, the author
_DIRECTION = ("[", "_", "(")

_ALIKE = str.maketrans(
    {
        "Æ": "AE", "æ": "ae", "Œ": "OE", "œ": "oe", "Ø": "O", "ø": "o", "ß": "ss",
        "«": "“", "»": "”", "„": "“", "‟": "“", "‚": "‘", "‛": "‘", "–": "-", "―": "—",
    }
)  # fmt: skip
_OUTSIDE = re.compile(r"[^\n !(),\-.:;?A-Z\[\]_a-z—‘’“”]")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class PlayStatistics:
    """Counts of a text. A passage ends at a blank line; words that differ in capitals are different."""

    lines: int
    passages: int
    words: int
    unique_words: int
    characters: int
    distinct_characters: int
    longest_line: int
    longest_passage: int


def statistics(text: str) -> PlayStatistics:
    """Count the lines, passages, words and characters of a text."""
    lines = text.removesuffix("\n").split("\n") if text else []
    passages = [passage for passage in re.split(r"\n\s*\n", text.strip("\n")) if passage]
    words = _WORD.findall(text)
    return PlayStatistics(
        lines=len(lines),
        passages=len(passages),
        words=len(words),
        unique_words=len(set(words)),
        characters=len(text),
        distinct_characters=len(set(text)),
        longest_line=max(map(len, lines), default=0),
        longest_passage=max(map(len, passages), default=0),
    )


def extract_plays(text: str) -> str:
    r"""Return the plays of a Project Gutenberg edition of Shakespeare, cleaned as in post 2 (Shakespeare, 2024).

    The result has stage directions, speakers and speeches, with one blank line between passages. The licence, contents,
    poems, titles, casts, and the headings of acts, scenes, prologues and epilogues are removed. At most 71 different
    characters remain: English letters, new line, space and common marks.

    Args:
        text: the whole edition, such as Gutenberg's number 100, or a single play.

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
    """Replace characters other than English letters and common marks by the nearest such character, or remove them."""
    text = re.sub(r" *\t *", " ", text).translate(_ALIKE)
    text = unicodedata.normalize("NFKD", text)  # "é" → "e" and a mark that goes; "…" → "..."
    text = re.sub(r"&c\b\.?", "etc.", text).replace("&", "AND")
    text = re.sub(r"^([ _]*)\d+\.? +", r"\1", text, flags=re.M)  # "1 GENTLEMAN" → "GENTLEMAN"
    text = re.sub(r'(?<![^\s(\[—_-])"', "“", text).replace('"', "”")
    return _OUTSIDE.sub("", text)


def _lines(text: str) -> list[str]:
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return [line.rstrip() for line in _NOTICE.sub("", text).split("\n")]


def _folded(text: str) -> str:
    """Leave one blank line of every run of them, none above the text, and no blanks at the end of a line."""
    text = re.sub(r" +$", "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def _without_headings(lines: list[str]) -> Iterator[str]:
    """Yield all lines but the headings. PROLOGUE right above a speech is its speaker."""
    heading = ""
    for index, line in enumerate(lines):
        if _is_numbered(line) or (heading and _goes_on(heading, line)):
            heading = line
        else:
            heading = ""
            if not (_is_part(line) and _is_alone(lines, index)):
                yield line


def _goes_on(heading: str, line: str) -> bool:
    """Is this line the rest of a heading that is wrapped: "SCENE I. A room in" / "the palace."?"""
    return heading[-1:].isalpha() and " " in heading.strip() and bool(line) and not _SPEECH.match(line)


def _is_part(line: str) -> bool:
    return bool(_PRELUDE.match(line) or _EPILOGUE.match(line))


def _is_numbered(line: str) -> bool:
    """Is this the heading of an act or a scene?"""
    return bool(_ACT.match(line) or _SCENE.match(line))


def _is_alone(lines: list[str], index: int) -> bool:
    return _is_blank(lines, index - 1) and _is_blank(lines, index + 1)


def _is_blank(lines: list[str], index: int) -> bool:
    return not 0 <= index < len(lines) or not lines[index]


def _plays(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the first line of each play, and the line after its last."""
    titles = _titles(lines)
    runs = _runs(lines)
    done = 0  # what is above belongs to an earlier play, or to a list of acts
    for run, following in pairwise([*runs, [len(lines)]]):
        end = _end(lines, run[-1], following[0], titles)
        if _is_spoken(lines[run[0] : run[1] if len(run) > 1 else end]):
            yield _start(lines, done, run[0]), end
            done = end
        else:
            done = run[-1] + 1


def _runs(lines: list[str]) -> list[list[int]]:
    """Group the headings of acts: each group counts up, and is a play or a list of the acts of one."""
    runs: list[list[int]] = []
    before = (0, 0)
    for index, line in enumerate(lines):
        if act := _ACT.match(line):
            scene = _SCENE_OF_ACT.search(line, act.end())
            number = (_number(act[1]), _number(scene[1]) if scene else 0)
            if not runs or number <= before:
                runs.append([])
            runs[-1].append(index)
            before = number
    return runs


def _number(numeral: str) -> int:
    if numeral.isdecimal():
        return int(numeral)
    if numeral.lower() in _NUMBER:
        return _NUMBER[numeral.lower()]
    digits = [_ROMAN[digit] for digit in numeral]
    return sum(-digit if digit < following else digit for digit, following in pairwise([*digits, 0]))


def _is_spoken(act: list[str]) -> bool:
    """Is this an act, and not an act and its scenes in a list? In a list, a line may be wrapped."""
    for block in _blocks(act, 0, len(act)):
        headings = sum(map(_is_heading, block.lines))
        if not _is_heading(block.lines[0]) or len(block.lines) >= 2 * headings:
            return True
    return False


def _is_heading(line: str) -> bool:
    return bool(_is_numbered(line) or _is_part(line) or _CHORUS.match(line))


def _start(lines: list[str], above: int, act: int) -> int:
    """Return the line where a play begins to be spoken: its first act, or a prologue or an induction before it.

    A cast may have a PROLOGUE too: the spoken one is below the setting ("SCENE: Verona"), or the last one.
    """
    cast = max((index for index in range(above, act) if _PREAMBLE.match(lines[index])), default=above)
    setting = next((index for index in range(cast, act) if _is_setting(lines[index])), None)
    if setting is not None:
        return next((index for index in range(setting + 1, act) if _opens(lines, index)), act)
    preludes = (index for index in range(cast, act) if _PRELUDE.match(lines[index]) and _is_alone(lines, index))
    return max(preludes, default=act)


def _is_setting(line: str) -> bool:
    return bool(_SETTING.match(line)) and not _SCENE.match(line)


def _opens(lines: list[str], index: int) -> bool:
    """Does a prologue, an induction or a chorus begin in this line?"""
    line = lines[index]
    return _is_blank(lines, index - 1) and any(kind.match(line) for kind in (_PRELUDE, _CHORUS, _ENTRANCE))


def _end(lines: list[str], last_act: int, limit: int, titles: set[str]) -> int:
    """Return the line where a play has ended: at its end mark, or where the next work begins."""
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
    """Lines without a blank one between them."""

    start: int
    lines: list[str]
    gap: int  # blank lines above

    @property
    def is_in_capitals(self) -> bool:
        text = "".join(self.lines)
        return text == text.upper() and not text.lstrip().startswith(_DIRECTION)


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
    """Is this a title: listed in the contents, or in capitals far below the text above?"""
    if _is_heading(block.lines[0]):
        return False
    return _key(" ".join(block.lines)) in titles or (block.gap >= _FAR and block.is_in_capitals)


def _title_above(blocks: list[_Block], preamble: int) -> int:
    """Return where the title of a preamble begins: a few blocks in capitals, or one line that stands apart."""
    start = preamble
    for block in reversed(blocks[-_TITLE_BLOCKS:]):
        if not (block.is_in_capitals or _stands_apart(block)) or _is_heading(block.lines[0]):
            break
        start = block.start
    return start


def _stands_apart(block: _Block) -> bool:
    line = block.lines[0]
    return block.gap > 1 and len(block.lines) == 1 and line[-1].isalnum() and not line.lstrip().startswith(_DIRECTION)


def _titles(lines: list[str]) -> set[str]:
    """Return the works that the first list of contents has, if there is one. A title met again is the work itself."""
    contents = next((index for index, line in enumerate(lines) if _CONTENTS.match(line)), len(lines))
    titles: set[str] = set()
    for block in _blocks(lines, contents + 1, len(lines)):
        found = {_key(line) for line in block.lines} - {""}
        if (titles and block.gap > 1) or found & titles or _is_heading(block.lines[0]):
            break
        titles |= found
    return titles


def _key(title: str) -> str:
    """A title without its page number, its capitals and its marks."""
    return " ".join(re.findall(r"[^\W\d_]+", title.lower()))
