"""Sample product reviews with one to five stars, generated from a grammar of our own.

The stars are the mean grade of what a review says. Half of the statements are twisted (negated, contrasted, about
another product), so counting words gets only part of the way, and one review in eight carries a neighboring star.
"""

import random
import re
from collections.abc import Iterator

from firstlight.data.samples.review_lexicon import COMMON, KINDS, Lexicon
from firstlight.data.samples.review_patterns import ASIDES, CONTRASTS, HEARSAY, OPENINGS, PLAIN, TWISTED, VERDICTS

VERSION = 1  # raised whenever the generated text changes: caches depend on it
SPLITS = {"train": 20_000, "validation": 2_000, "test": 2_000}
NUM_STARS = 5
MIN_WORDS, MAX_WORDS = 10, 120

NEIGHBOR_SHARE = 0.14  # reviews whose stars are one off
TWISTED_SHARE = 0.6  # statements that only a reader of the whole sentence gets right
CONCESSION_SHARE = 0.2  # statements that grant the opposite before they insist
HEARSAY_SHARE = 0.1  # statements followed by an opinion of others, which does not count
STATEMENT_COUNTS = (1, 1, 2, 2, 2, 3, 3, 4)  # how many a review makes, each as likely
ASIDE_COUNTS = (0, 0, 0, 0, 1, 1, 2, 3)


def generate(num_reviews: int, seed: int) -> Iterator[dict[str, str | int]]:
    """Yield reviews {"text", "label"}, no text twice; label + 1 = stars, balanced to within one review."""
    return _reviews(num_reviews, random.Random(f"reviews {seed}"), written=set())


def splits(seed: int = 0) -> dict[str, list[dict[str, str | int]]]:
    """Generate train, validation and test reviews; no text occurs twice, within a split or across them."""
    written: set[str] = set()
    return {
        name: list(_reviews(num_reviews, random.Random(f"reviews {seed} {name}"), written))
        for name, num_reviews in SPLITS.items()
    }


def _reviews(num_reviews: int, rng: random.Random, written: set[str]) -> Iterator[dict[str, str | int]]:
    labels = [index % NUM_STARS for index in range(num_reviews)]
    rng.shuffle(labels)
    for label in labels:
        text = _review(label, rng)
        while text in written or not MIN_WORDS <= len(text.split()) <= MAX_WORDS:
            text = _review(label, rng)
        written.add(text)
        yield {"text": text, "label": label}


def _review(label: int, rng: random.Random) -> str:
    """Write one review: an opening, statements among asides, a verdict; the first and the last only at times."""
    grade = _meant_stars(label, rng) - NUM_STARS // 2
    words = Words(rng)
    middle = _body(_grades(grade, rng), words, rng)
    for aside in rng.sample(ASIDES, rng.choice(ASIDE_COUNTS)):
        middle.insert(rng.randrange(len(middle) + 1), words.fill(aside))
    opening = [words.fill(rng.choice(OPENINGS))] if rng.random() < 0.7 else []
    verdict = [words.fill(rng.choice(VERDICTS[grade]))] if rng.random() < 0.35 else []
    sentences = (_sentence(text, rng) for text in opening + middle + verdict)
    return _habits(_AN.sub(r"\1n", " ".join(sentences)), rng)


# What it says


def _meant_stars(label: int, rng: random.Random) -> int:
    """The stars that the text deserves: the label, or at times its neighbor."""
    if rng.random() >= NEIGHBOR_SHARE:
        return label
    return rng.choice([star for star in (label - 1, label + 1) if 0 <= star < NUM_STARS])


def _grades(mean: int, rng: random.Random) -> list[int]:
    """Draw the grades (-2 to 2) of a review's statements, so that their mean rounds to the given one."""
    count = rng.choice(STATEMENT_COUNTS)
    while True:
        grades = [max(-2, min(2, mean + rng.choice((-2, -1, 0, 1, 2)))) for _ in range(count)]
        if 2 * abs(sum(grades) - mean * count) < count:
            return grades


def _body(grades: list[int], words: "Words", rng: random.Random) -> list[str]:
    """State each grade about one aspect; some of it beside a concession, and at times what others said in between."""
    body = []
    for grade in grades:
        body.append(_statement(grade, words, rng))
        if rng.random() < HEARSAY_SHARE:
            hearsay = words.fill(rng.choice(HEARSAY))
            body.append(hearsay.replace("...", words.turn().fill(rng.choice(PLAIN[rng.choice((-2, -1, 1, 2))]))))
    return body


def _statement(grade: int, words: "Words", rng: random.Random) -> str:
    if rng.random() < TWISTED_SHARE:
        return words.turn().fill(rng.choice(TWISTED[grade]))
    statement = words.turn().fill(rng.choice(PLAIN[grade]))
    if grade and rng.random() < CONCESSION_SHARE:
        concession = words.turn().fill(rng.choice(PLAIN[-grade]))
        return rng.choice(CONTRASTS).format(concession=concession, statement=statement)
    return statement


class Words(dict[str, str]):
    """The words of one review: what it is about is fixed, every other slot is drawn anew each time."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.rng = rng
        self.lexicon: Lexicon = rng.choice(_LEXICONS)
        self.update({slot: self[slot] for slot in ("product", "brand", "rival")})
        self.aspects = rng.sample(self.lexicon["own_aspect"] , 14) 

    def __missing__(self, slot: str) -> str:
        choices = self.lexicon[slot]
        return self.fill(choices[int(len(choices) * self.rng.random() ** 2)])  # the front is used most

    def fill(self, pattern: str) -> str:
        """Put a word into each {slot} of a pattern."""
        return pattern.format_map(self)

    def turn(self) -> "Words":
        """Turn to an aspect that was not mentioned yet, mostly one of this kind of product."""
        self["aspect"] = self.aspects.pop()
        return self


_LEXICONS = [COMMON | {"rival": COMMON["brand"], "own_aspect": kind["aspect"]} | kind for kind in KINDS]

# How it is written down

_AN = re.compile(r"\b(a)(?= (?:[aeio]|un(?!i)|um|up|ug))", re.IGNORECASE)
_TYPO = re.compile(r"\b[a-z]{5,}\b")


def _sentence(text: str, rng: random.Random) -> str:
    """Start with a capital and end with a mark."""
    return text[0].upper() + text[1:] + rng.choices((".", "!", "...", "!!"), (90, 7, 2, 1))[0]


def _habits(text: str, rng: random.Random) -> str:
    """Add what reviewers do: typos, capitals or none, typographic apostrophes, quotes escaped by a web form."""
    if rng.random() < 0.15:
        text = _TYPO.sub(lambda word: _typo(word[0], rng) if rng.random() < 0.1 else word[0], text)
    if rng.random() < 0.06:
        text = text.lower()
    elif rng.random() < 0.05:
        text = re.sub(r"\b(?:not|never|very|really|love|hate)\b", lambda word: word[0].upper(), text)
    if rng.random() < 0.15:
        text = text.replace("'", "’")
    if rng.random() < 0.6:
        text = text.replace("&", "&amp;").replace('"', "&quot;")
    return text


def _typo(word: str, rng: random.Random) -> str:
    """Drop, double or swap letters inside a word."""
    at = rng.randrange(1, len(word) - 1)
    middle = rng.choice(("", word[at] * 2, word[at + 1] + word[at]))
    return word[:at] + middle + word[at + (2 if len(middle) == 2 and middle[0] != middle[1] else 1) :]
