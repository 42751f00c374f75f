"""Sample product reviews with one to five stars, generated from a grammar of our own: reviews.toml.

The stars are the mean grade of what a review states. Half of the statements are twisted (negated, overturned, set
against another product), some grant the opposite first, and other people's opinions do not count: counting words goes
part of the way, reading goes further. One review in seven carries a neighboring star, which nobody can know.
"""

import random
import re
from collections.abc import Iterator

from firstlight.data.samples.grammar import Words, capitalized, front_first, load, with_articles

VERSION = 1  # raised whenever the generated text changes: caches depend on it
SPLITS = {"train": 20_000, "validation": 2_000, "test": 2_000}
NUM_STARS = 5
MIN_WORDS, MAX_WORDS = 10, 120

STATEMENT_COUNTS = (1, 1, 1, 2, 2, 2, 3, 3, 4)  # how many a review makes, each as likely
ASIDE_COUNTS = (0, 0, 0, 1, 1, 2)

Review = dict[str, str | int]

_DATA = load("reviews")
PLAIN, TWISTED, VERDICTS = (  # by grade, from -2 to 2
    {int(grade): patterns for grade, patterns in _DATA[kind].items()} for kind in ("plain", "twisted", "verdicts")
)
_AROUND, _SHARES = _DATA["around"], _DATA["shares"]
_LEXICONS = [_DATA["words"] | product for product in _DATA["products"]]


def generate(num_reviews: int, seed: int) -> Iterator[Review]:
    """Yield reviews {"text", "label"}, no text twice; label + 1 = stars, balanced to within one review."""
    return _reviews(num_reviews, random.Random(f"reviews {seed}"), written=set())


def splits(seed: int = 0) -> dict[str, list[Review]]:
    """Generate train, validation and test reviews; no text occurs twice, within a split or across them."""
    written: set[str] = set()
    return {
        name: list(_reviews(num_reviews, random.Random(f"reviews {seed} {name}"), written))
        for name, num_reviews in SPLITS.items()
    }


def _reviews(num_reviews: int, rng: random.Random, written: set[str]) -> Iterator[Review]:
    labels = [index % NUM_STARS for index in range(num_reviews)]
    rng.shuffle(labels)
    for label in labels:
        text = _review(label, rng)
        while text in written or not MIN_WORDS <= len(text.split()) <= MAX_WORDS:
            text = _review(label, rng)
        written.add(text)
        yield {"text": text, "label": label}


# What a review says


def _review(label: int, rng: random.Random) -> str:
    """Write an opening, statements with asides between them, and a verdict; the first and the last not always."""
    grade = _meant_label(label, rng) - NUM_STARS // 2
    words = ReviewWords(rng)
    sentences = [sentence for each in _grades(grade, rng) for sentence in _statement(each, words, rng)]
    for aside in rng.sample(_AROUND["asides"], rng.choice(ASIDE_COUNTS)):
        sentences.insert(rng.randrange(len(sentences) + 1), words.fill(aside))
    if rng.random() < _SHARES["opening"]:
        sentences.insert(0, words.fill(rng.choice(_AROUND["openings"])))
    if rng.random() < _SHARES["verdict"]:
        sentences.append(words.fill(rng.choice(VERDICTS[grade])))
    return _as_typed(" ".join(_punctuated(sentence, rng) for sentence in sentences), rng)


def _meant_label(label: int, rng: random.Random) -> int:
    """The label that the text deserves: the given one, or at times its neighbor."""
    if rng.random() >= _SHARES["neighbor"]:
        return label
    return rng.choice([neighbor for neighbor in (label - 1, label + 1) if 0 <= neighbor < NUM_STARS])


def _grades(mean: int, rng: random.Random) -> list[int]:
    """Draw the grades (-2 to 2) of a review's statements, such that their mean rounds to the given one."""
    count = rng.choice(STATEMENT_COUNTS)
    while True:
        grades = [max(-2, min(2, mean + rng.choice((-2, -1, 0, 1, 2)))) for _ in range(count)]
        if 2 * abs(sum(grades) - mean * count) < count:
            return grades


def _statement(grade: int, words: "ReviewWords", rng: random.Random) -> list[str]:
    """State the grade about a new aspect: twisted, plain, or beside a concession; then, at times, quote somebody."""
    if rng.random() < _SHARES["twisted"]:
        sentences = [words.about_new_aspect(TWISTED[grade])]
    else:
        sentences = [words.about_new_aspect(PLAIN[grade])]
        if grade and rng.random() < _SHARES["concession"]:
            concession = words.about_new_aspect(PLAIN[-grade])
            sentences = [rng.choice(_AROUND["contrasts"]).format(statement=sentences[0], concession=concession)]
    if rng.random() < _SHARES["hearsay"]:
        quote = words.about_new_aspect(PLAIN[rng.choice((-2, -1, 1, 2))])
        sentences.append(f'{words.fill(rng.choice(_AROUND["hearsay"]))} "{quote}"')
    return sentences


class ReviewWords(Words):
    """The words of one review: its product and brands are fixed, any other slot is drawn anew."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, rng.choice(_LEXICONS))
        self.mentioned: set[str] = set()
        self.update({slot: self[slot] for slot in ("product", "brand", "rival")})

    def about_new_aspect(self, patterns: tuple[str, ...]) -> str:
        """Fill one of the patterns, about an aspect that this review has not mentioned yet."""
        pattern = front_first(patterns, self.rng, self.steepness)
        aspect = self["any_aspect"]
        while aspect in self.mentioned:
            aspect = self["any_aspect"]
        self.mentioned.add(aspect)
        self["aspect"] = aspect
        return self.fill(pattern)


# How it is written down

_EMPHATIC = re.compile(r"\b(?:not|never|very|really|love|hate)\b")
_LONG_WORD = re.compile(r"\b[a-z]{5,}\b")


def _punctuated(sentence: str, rng: random.Random) -> str:
    """Start with a capital, end with a mark, and say "an" where it belongs."""
    end = rng.choices((".", "!", "...", "!!"), (90, 7, 2, 1))[0]
    return capitalized(with_articles(sentence)) + end


def _as_typed(text: str, rng: random.Random) -> str:
    """Write it as people do: typos, no capitals or too many, typographic apostrophes, quotes escaped by a web form."""
    if rng.random() < 0.15:
        text = _LONG_WORD.sub(lambda word: _typo(word[0], rng) if rng.random() < 0.1 else word[0], text)
    if rng.random() < 0.06:
        text = text.lower()
    elif rng.random() < 0.05:
        text = _EMPHATIC.sub(lambda word: word[0].upper(), text)
    if rng.random() < 0.15:
        text = text.replace("'", "’")
    if rng.random() < 0.6:
        text = text.replace("&", "&amp;").replace('"', "&quot;")
    return text


def _typo(word: str, rng: random.Random) -> str:
    """Drop or double an inner letter, or swap it with the next."""
    at = rng.randrange(1, len(word) - 1)
    start, letter, rest = word[:at], word[at], word[at + 1 :]
    return start + rng.choice((rest, letter * 2 + rest, rest[0] + letter + rest[1:]))
