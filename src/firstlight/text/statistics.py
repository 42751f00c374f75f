"""Statistics of a text: its characters, lines, passages and words, and how often words occur (post 2, plays)."""

import re
from collections import Counter
from collections.abc import Mapping

WORD = re.compile(r"\w+")
BLANK_LINES = re.compile(r"\n\s*\n")
LIMITS = (10, 100)  # occurrences; post 2 (plays) gives the shares of the words below them


def text_statistics(text: str) -> dict[str, int | float | str]:
    r"""Return the statistics of a text, as post 2 (plays) gives them for the plays of Shakespeare.

    A passage ends at a blank line. A word is a sequence of letters, digits and underscores. Words that differ only in
    capitals are different words.

    Args:
        text: any text.

    Returns:
        The numbers by name; lengths are in characters. The passages are left out if there is only one, and the
        commonest word if every word occurs once; of equally frequent words, the first one is the commonest.

    Example:
        >>> from firstlight.text import text_statistics
        >>> found = text_statistics("ANNA.\nThe loaf, the loaf!\n\nOTTO.\nNo.\n")
        >>> found["passages"], found["words"], found["commonest word"]
        (2, 7, '“loaf”, 2 times')
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    passages = [passage for passage in BLANK_LINES.split(text.strip("\n")) if passage]
    counts = Counter(WORD.findall(text))
    found: dict[str, int | float | str] = {
        "characters": len(text),
        "distinct characters": len(set(text)),
        "lines": len(lines),
        "mean length of a line": round(sum(map(len, lines)) / max(len(lines), 1), 2),
        "longest line": max(map(len, lines), default=0),
    }
    if len(passages) > 1:
        found |= {"passages": len(passages), "longest passage": max(map(len, passages))}
    found |= {"words": counts.total(), "unique words": len(counts)}
    for limit in LIMITS:
        share = sum(times < limit for times in counts.values()) / max(len(counts), 1)
        found[f"% of unique words seen fewer than {limit} times"] = round(100 * share, 1)
    for word, times in counts.most_common(1):
        if times > 1:
            found["commonest word"] = f"“{word}”, {times:,} times"
    return found


def as_texts(statistics: Mapping[str, int | float | str]) -> dict[str, str]:
    """Return statistics for readers."""
    return {name: value if isinstance(value, str) else f"{value:,}" for name, value in statistics.items()}
