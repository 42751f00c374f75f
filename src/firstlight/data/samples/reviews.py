"""Sample product reviews with one to five stars, generated from the grammar in reviews.toml.

The stars are the mean grade of the statements of a review. Half of the statements are twisted (negated, reversed, or
compared with another product), some begin with a concession, and opinions of other people do not count. Therefore the
counts of words predict the stars only partly. One review in seven has a neighboring star, which cannot be predicted.
"""

import random
import re
from collections.abc import Iterator

from firstlight.data.samples.grammar import Words, capitalized, front_first, load, with_articles

VERSION = 1  # increased when the generated text changes, so that caches are not reused
SPLITS = {"train": 20_000, "validation": 2_000, "test": 2_000}
NUM_STARS = 5
MIN_WORDS, MAX_WORDS = 10, 120

STATEMENT_COUNTS = (1, 1, 1, 2, 2, 2, 3, 3, 4)  # the number of statements of a review, each equally likely
ASIDE_COUNTS = (0, 0, 0, 1, 1, 2)

Review = dict[str, str | int]

_DATA = load("reviews")
PLAIN, TWISTED, VERDICTS = (  # by grade, from -2 to 2
    {int(grade): patterns for grade, patterns in _DATA[kind].items()} for kind in ("plain", "twisted", "verdicts")
)
_AROUND, _SHARES = _DATA["around"], _DATA["shares"]
_LEXICONS = [_DATA["words"] | product for product in _DATA["products"]]


def generate(num_reviews: int, seed: int) -> Iterator[Review]:
    """Yield distinct reviews {"text", "label"}. label + 1 is the stars, balanced to within one review."""
    return _reviews(num_reviews, random.Random(f"reviews {seed}"), written=set())


def splits(seed: int = 0) -> dict[str, list[Review]]:
    """Return train, validation and test reviews. No text occurs twice, within a split or across splits."""
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


# The content of a review


def _review(label: int, rng: random.Random) -> str:
    """Return a review: statements with asides between them, often with an opening and a verdict."""
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
    """Return the label that fits the text: the given one, or sometimes its neighbor."""
    if rng.random() >= _SHARES["neighbor"]:
        return label
    return rng.choice([neighbor for neighbor in (label - 1, label + 1) if 0 <= neighbor < NUM_STARS])


def _grades(mean: int, rng: random.Random) -> list[int]:
    """Return random grades (-2 to 2) of the statements of a review. Their mean rounds to the given one."""
    count = rng.choice(STATEMENT_COUNTS)
    while True:
        grades = [max(-2, min(2, mean + rng.choice((-2, -1, 0, 1, 2)))) for _ in range(count)]
        if 2 * abs(sum(grades) - mean * count) < count:
            return grades


def _statement(grade: int, words: "ReviewWords", rng: random.Random) -> list[str]:
    """Return a statement on a new aspect: twisted, plain, or with a concession. Sometimes a quote follows."""
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
    """The words of one review. Its product and brands are fixed; any other slot is drawn again."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, rng.choice(_LEXICONS))
        self.mentioned: set[str] = set()
        self.update({slot: self[slot] for slot in ("product", "brand", "rival")})

    def about_new_aspect(self, patterns: tuple[str, ...]) -> str:
        """Return one of the patterns, filled with an aspect that this review has not mentioned yet."""
        pattern = front_first(patterns, self.rng, self.steepness)
        aspect = self["any_aspect"]
        while aspect in self.mentioned:
            aspect = self["any_aspect"]
        self.mentioned.add(aspect)
        self["aspect"] = aspect
        return self.fill(pattern)


# Spelling

_EMPHATIC = re.compile(r"\b(?:not|never|very|really|love|hate)\b")
_LONG_WORD = re.compile(r"\b[a-z]{5,}\b")


def _punctuated(sentence: str, rng: random.Random) -> str:
    """Return a sentence with a capital first letter, a final mark, and "an" before vowels."""
    end = rng.choices((".", "!", "...", "!!"), (90, 7, 2, 1))[0]
    return capitalized(with_articles(sentence)) + end


def _as_typed(text: str, rng: random.Random) -> str:
    """Return a text with typos, no capitals or too many, typographic apostrophes and escaped quotes."""
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
    """Return a word with an inner letter dropped, doubled or swapped with the next."""
    at = rng.randrange(1, len(word) - 1)
    start, letter, rest = word[:at], word[at], word[at + 1 :]
    return start + rng.choice((rest, letter * 2 + rest, rest[0] + letter + rest[1:]))
