"""Statistics of a text: its characters, lines, passages and words, and how often words occur (post 2, plays)."""

import re
from collections import Counter
from dataclasses import dataclass

WORD = re.compile(r"\w+")
BLANK_LINES = re.compile(r"\n\s*\n")
RARE, UNCOMMON = 10, 100  # occurrences; post 2 (plays) gives the shares of the words below them


@dataclass(frozen=True)
class TextStatistics:
    """Statistics of a text. The lengths are in characters, without the new line at the end of a line.

    A passage ends at a blank line. A word is a sequence of letters, digits and underscores. Words that differ only in
    capitals are different words.

    Attributes:
        rare_words: share of the unique words that occur fewer than 10 times, from 0 to 1.
        uncommon_words: share of the unique words that occur fewer than 100 times.
        commonest_word: the most frequent word, "" without words; of equally frequent words, the first one.
        commonest_count: number of its occurrences.

    Example:
        >>> from firstlight.text import text_statistics
        >>> list(text_statistics("No, no!").rows().items())[-1]
        ('unique words seen fewer than 100 times', '100.0%')
    """

    characters: int
    distinct_characters: int
    lines: int
    mean_line: float
    longest_line: int
    passages: int
    longest_passage: int
    words: int
    unique_words: int
    rare_words: float
    uncommon_words: float
    commonest_word: str
    commonest_count: int

    def rows(self) -> dict[str, str]:
        """Return the name of each number, and the number as text.

        Passages are left out if there is only one, and the commonest word if every word occurs once.
        """
        passages = {"passages": f"{self.passages:,}", "longest passage": f"{self.longest_passage:,} characters"}
        commonest = {"commonest word": f"“{self.commonest_word}”, {self.commonest_count:,} times"}
        return {
            "characters": f"{self.characters:,}",
            "distinct characters": f"{self.distinct_characters:,}",
            "lines": f"{self.lines:,}",
            "mean length of a line": f"{self.mean_line:.2f} characters",
            "longest line": f"{self.longest_line:,} characters",
            **(passages if self.passages > 1 else {}),
            "words": f"{self.words:,}",
            "unique words": f"{self.unique_words:,}",
            f"unique words seen fewer than {RARE} times": f"{self.rare_words:.1%}",
            f"unique words seen fewer than {UNCOMMON} times": f"{self.uncommon_words:.1%}",
            **(commonest if self.commonest_count > 1 else {}),
        }


def text_statistics(text: str) -> TextStatistics:
    r"""Return the statistics of a text, as post 2 (plays) gives them for the plays of Shakespeare.

    Args:
        text: any text.

    Returns:
        The statistics.

    Example:
        >>> from firstlight.text import text_statistics
        >>> found = text_statistics("ANNA.\nThe loaf, the loaf!\n\nOTTO.\nNo.\n")
        >>> found.lines, found.passages, found.words, found.commonest_word
        (5, 2, 7, 'loaf')
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    passages = [passage for passage in BLANK_LINES.split(text.strip("\n")) if passage]
    counts = Counter(WORD.findall(text))
    commonest, times = next(iter(counts.most_common(1)), ("", 0))
    return TextStatistics(
        characters=len(text),
        distinct_characters=len(set(text)),
        lines=len(lines),
        mean_line=sum(map(len, lines)) / max(len(lines), 1),
        longest_line=max(map(len, lines), default=0),
        passages=len(passages),
        longest_passage=max(map(len, passages), default=0),
        words=counts.total(),
        unique_words=len(counts),
        rare_words=_share_below(RARE, counts),
        uncommon_words=_share_below(UNCOMMON, counts),
        commonest_word=commonest,
        commonest_count=times,
    )


def _share_below(limit: int, counts: Counter[str]) -> float:
    return sum(times < limit for times in counts.values()) / max(len(counts), 1)
