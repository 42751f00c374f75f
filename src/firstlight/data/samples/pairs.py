"""Sample sentences in English and German, generated from a grammar of our own.

One draw decides what is said, two grammars say it. German has genders, cases and endings, moves the verb and parts it
from its prefix, orders time and place its own way, and chooses words by what they stand beside: whoever translates
word by word is mostly wrong. The German is a function of the English.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

from firstlight.data.samples import pair_lexicon as lexicon

VERSION = 1  # raised whenever the generated text changes: caches depend on it
SPLITS = {"train": 12_000, "validation": 1_000, "test": 1_000}
MIN_WORDS, MAX_WORDS = 3, 20  # of either side

ADJECTIVE_SHARE = 0.4  # of noun phrases; a quarter of these have a color as well where colors fit
COMPOUND_SHARE = 0.1
BEAST_SHARE = 0.1  # clauses whose subject is an animal
PLACE_SHARE = 0.35

Pair = tuple[str, str]  # English, German
T = TypeVar("T")
NOTHING = "", ""


def splits(seed: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Generate train, validation and test rows {"en", "de"}; no English sentence occurs twice."""
    written: set[str] = set()
    return {name: _rows(num_rows, random.Random(f"pairs {seed} {name}"), written) for name, num_rows in SPLITS.items()}


def _rows(num_rows: int, rng: random.Random, written: set[str]) -> list[dict[str, Any]]:
    writer = Writer(rng)
    rows: list[dict[str, Any]] = []
    while len(rows) < num_rows:
        english, german = writer.sentence()
        lengths = len(english.split()), len(german.split())
        if english not in written and min(lengths) >= MIN_WORDS and max(lengths) <= MAX_WORDS:
            written.add(english)
            rows.append({"en": english, "de": german})
    return rows


# Words


@dataclass(frozen=True)
class Noun:
    """A noun in both languages; gender "p" has no singular in German."""

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: str
    pronoun: str  # he, she or it
    weak: bool = False
    pair: bool = False  # trousers: plural in English only
    female: str = ""

    def forms(self, plural: bool) -> tuple[str, ...]:
        """Nominative, accusative, dative and genitive."""
        if plural:
            word = self.german_plural
            return word, word, word if word[-1] in "ns" else word + "n", word
        word = self.german
        if self.weak:
            return (word, *[self.german_plural] * 3)
        genitive = word
        if self.gender != "f":
            short = len(re.findall("[aeiouyäöü]+", word.lower())) == 1
            genitive += "es" if short or word[-1] in "sßxz" else "s"
        return word, word, word, genitive


@dataclass(frozen=True)
class Verb:
    """A verb in both languages, with the case or the preposition that it governs in German."""

    english: str
    past: str
    particle: str  # the rest of a phrasal verb, with a leading space
    stative: bool
    infinitive: str
    prefix: str
    third: str
    participle: str
    auxiliary: str = "haben"
    preposition: str = ""
    case: int = 1
    reflexive: bool = False

    @property
    def has_regular_imperative(self) -> bool:
        """Whether it keeps its vowel: "trage", but not "werfe"."""
        stem = re.sub("e?n$", "", self.infinitive)
        return self.third in (stem + "t", stem + "et")


def _entries(text: str) -> list[Pair]:
    return [(english, german) for english, _, german in (entry.strip().partition("=") for entry in text.split(";"))]


def _noun(english: str, german: str) -> Noun:
    singular, _, plural = english.lstrip("+").partition(",")
    gender, _, words = german.partition(" ")
    words, _, female = words.partition("/")
    word, word_plural, *pronoun = [*words.split(","), ""] if "," not in words else words.split(",")
    return Noun(
        singular,
        plural or (singular if english[0] == "+" else _with_s(singular)),
        word.rstrip("*"),
        word_plural,
        gender,
        pronoun[0] if pronoun else "it",
        weak=word.endswith("*"),
        pair=english[0] == "+",
        female=female,
    )


def _person(noun: Noun) -> Noun:
    """A person's pronoun is "he" or "she" unless the noun is neuter."""
    return replace(noun, pronoun={"m": "he", "f": "she"}.get(noun.gender, noun.pronoun))


def _verb(english: str, german: str) -> Verb:
    base, _, past = english.lstrip("!").partition(",")
    base, _, particle = base.partition(" ")
    government, _, forms = german.rpartition(":")
    reflexive = forms.startswith("sich ")
    if reflexive:
        government, forms = forms.removeprefix("sich ").rpartition(":")[::2]
    elif government.startswith("sich "):
        reflexive, government = True, government.removeprefix("sich ")
    infinitive, third, participle = forms.split(",")
    prefix, _, stem = infinitive.rpartition("|")
    preposition, _, case = government.rpartition(" ")
    return Verb(
        base,
        past or _with_ed(base),
        " " + particle if particle else "",
        stative=english[0] == "!",
        infinitive=stem,
        prefix=prefix,
        third=third,
        participle=participle.lstrip("+"),
        auxiliary="sein" if participle[0] == "+" else "haben",
        preposition=preposition,
        case={"": 1, "A": 1, "D": 2}[case],
        reflexive=reflexive,
    )


def _nouns(text: str) -> tuple[Noun, ...]:
    return tuple(_noun(*entry) for entry in _entries(text))


def _verbs(text: str) -> tuple[Verb, ...]:
    return tuple(_verb(*entry) for entry in _entries(text))


# English forms

_BEFORE_VOWEL = re.compile(r"\b([Aa])(?= (?:[aeio]|un(?!if)|um|ug))")
_DOUBLED = re.compile(r"[^aeiou]*[aeiou][bdgklmnprt]")


@cache
def _with_s(word: str) -> str:
    if re.search(r"(?:s|sh|ch|x|z|o)$", word) and not word.endswith(("piano", "photo", "radio")):
        return word + "es"
    return word[:-1] + "ies" if re.search(r"[^aeiou]y$", word) else word + "s"


def _with_ed(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ied"
    return (word + word[-1] if _DOUBLED.fullmatch(word) else word) + "ed"


@cache
def _with_ing(word: str) -> str:
    if word.endswith("ie"):
        return word[:-2] + "ying"
    if word.endswith("e") and not word.endswith(("ee", "ye")):
        return word[:-1] + "ing"
    return (word + word[-1] if _DOUBLED.fullmatch(word) or word in ("begin", "forget") else word) + "ing"


# German forms: by gender (or plural), then nominative, accusative, dative, genitive

DEFINITE = {
    "m": ("der", "den", "dem", "des"),
    "f": ("die", "die", "der", "der"),
    "n": ("das", "das", "dem", "des"),
    "p": ("die", "die", "den", "der"),
}
DER_ENDINGS = {
    "m": ("er", "en", "em", "es"),
    "f": ("e", "e", "er", "er"),
    "n": ("es", "es", "em", "es"),
    "p": ("e", "e", "en", "er"),
}
EIN_ENDINGS = DER_ENDINGS | {"m": ("", "en", "em", "es"), "n": ("", "", "em", "es")}
STRONG = DER_ENDINGS | {"m": ("er", "en", "em", "en"), "n": ("es", "es", "em", "en")}  # of adjectives
MIXED = {
    "m": ("er", "en", "en", "en"),
    "f": ("e", "e", "en", "en"),
    "n": ("es", "es", "en", "en"),
    "p": ("en", "en", "en", "en"),
}
WEAK = MIXED | {"m": ("e", "en", "en", "en"), "n": ("e", "e", "en", "en")}
NOMINATIVE, ACCUSATIVE, DATIVE, GENITIVE = range(4)

AUXILIARIES = {
    "haben": {"ich": "habe", "du": "hast", "er": "hat", "wir": "haben"},
    "sein": {"ich": "bin", "du": "bist", "er": "ist", "wir": "sind"},
    "werden": {"ich": "werde", "du": "wirst", "er": "wird", "wir": "werden"},
    "war": {"ich": "war", "du": "warst", "er": "war", "wir": "waren"},
}
BE = {"I": "am", "he": "is", "they": "are", "you": "are"}
WAS = {"I": "was", "he": "was", "they": "were", "you": "were"}
DO = {"I": "do", "he": "does", "they": "do", "you": "do"}
POSSESSIVES = {"he": ("his", "sein"), "she": ("her", "ihr"), "they": ("their", "ihr"), "I": ("my", "mein")}
POSSESSIVES |= {"we": ("our", "unser"), "you": ("your", "dein")}
CONTRACTED = {"in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans", "zu dem": "zum", "zu der": "zur"}
CONTRACTED |= {"bei dem": "beim", "von dem": "vom"}


@cache
def _inflect(adjective: str, ending: str) -> str:
    """Add an ending to an adjective: dunkel, dunkle; teuer, teure; hoch, hohe; müde, müde."""
    if adjective == "hoch":
        return "hoh" + ending
    stem = re.sub(r"el$", "l", re.sub(r"(eu|au)er$", r"\1r", adjective)).removesuffix("e")
    return stem + ending


def _first_person(verb: Verb) -> str:
    if verb.infinitive in ("wissen", "mögen"):
        return verb.third
    return re.sub(r"(?:eln|n)$", lambda end: "le" if end[0] == "eln" else "", verb.infinitive) + (
        "e" if verb.infinitive.endswith("ern") else ""
    )


def _finite(verb: Verb, person: str) -> str:
    if person == "ich":
        return _first_person(verb)
    if person == "du":
        return {"kennt": "kennst", "weiß": "weißt"}[verb.third]
    return verb.third if person == "er" else verb.infinitive


def _prepositional(preposition: str, phrase: "NounPhrase", case: int) -> str:
    """Put a preposition before a noun phrase; it merges with an article."""
    words = f"{preposition} {phrase.cases[case]}"
    first = " ".join(words.split()[:2])
    return CONTRACTED[first] + words.removeprefix(first) if first in CONTRACTED and phrase.definite else words


# Phrases and clauses


@dataclass(frozen=True)
class NounPhrase:
    """What a subject or an object says in English and in the German cases, and what agrees with it."""

    english: str
    cases: tuple[str, ...]
    gender: str = "p"  # German, "p" for the plural
    pronoun: str = "they"  # I, he, she, it, we or they
    definite: bool = True
    woman: bool = False  # what only a later "her" tells in English

    @property
    def english_person(self) -> str:
        """Which form of "be" it takes."""
        return {"I": "I", "we": "they", "they": "they", "you": "you"}.get(self.pronoun, "he")

    @property
    def german_person(self) -> str:
        if self.pronoun in ("I", "we", "you"):
            return {"I": "ich", "we": "wir", "you": "du"}[self.pronoun]
        return "wir" if self.gender == "p" else "er"

    @property
    def possessive(self) -> Pair:
        if self.pronoun == "it":
            return "its", "ihr" if self.gender == "f" else "sein"
        return POSSESSIVES[self.pronoun]

    def as_pronoun(self) -> "NounPhrase":
        """It, he, she or they: German pronouns of things and animals follow the gender of the noun."""
        gender = {"he": "m", "she": "f"}.get(self.pronoun, self.gender)
        cases = {"m": ("er", "ihn", "ihm"), "f": ("sie", "sie", "ihr"), "n": ("es", "es", "ihm")}
        return NounPhrase(self.pronoun, cases.get(gender, ("sie", "sie", "ihnen")), gender, self.pronoun)

    def followed_by(self, attribute: Pair) -> "NounPhrase":
        cases = tuple(case + " " + attribute[1] for case in self.cases)
        return replace(self, english=self.english + " " + attribute[0], cases=cases)


OBJECTIVE = {"he": "him", "she": "her", "it": "it", "they": "them"}


@dataclass(frozen=True)
class Clause:
    """The parts of a clause; German puts them in another order in main clauses, questions and subordinate clauses."""

    subject: NounPhrase
    english: tuple[str, str]  # the finite verb and the rest
    finite: str
    middle: str
    prefix: str = ""
    last: str = ""  # a participle, an infinitive or an adjective
    question: tuple[str, str] | None = None  # English, where it needs another verb than the statement

    def statement(self) -> Pair:
        return self.english_statement(), _words(self.subject.cases[NOMINATIVE], self._verb_first())

    def english_statement(self) -> str:
        return _words(self.subject.english, *self.english)

    def inverted(self) -> str:
        """German with something else in front: the subject follows the verb."""
        return _words(self.finite, self.subject.cases[NOMINATIVE], self.middle, self.prefix, self.last)

    def subordinate(self, subject: str | None = None) -> Pair:
        """German with the verb at the end."""
        first = self.subject.cases[NOMINATIVE] if subject is None else subject
        return self.english_statement(), _words(first, self.middle, self.last, self.prefix + self.finite)

    def asked(self) -> Pair:
        finite, rest = self.question or self.english
        return _words(finite, self.subject.english, rest), self.inverted()

    def without_subject(self) -> Pair:
        return _words(*self.english), self._verb_first()

    def _verb_first(self) -> str:
        return _words(self.finite, self.middle, self.prefix, self.last)


def _words(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _written(pair: Pair, end: str) -> Pair:
    """Start with a capital, end with a mark, tidy the commas and say "an" where it belongs."""
    english, german = (re.sub(r" +,", ",", text) for text in pair)
    english, german = (re.sub(r",+(?=[,.?!]|$)", "", text.strip()) for text in (english, german))
    english = _BEFORE_VOWEL.sub(r"\1n", english)
    return english[0].upper() + english[1:] + end, german[0].upper() + german[1:] + end


# Tables

NOUNS = {kind: _nouns(getattr(lexicon, kind)) for kind in lexicon.KINDS}
NOUNS |= {kind: tuple(map(_person, NOUNS[kind])) for kind in ("PEOPLE", "RELATIVES")}
ADJECTIVES = {kind: _entries(getattr(lexicon, group)) for kind, (group, _) in lexicon.KINDS.items()}
COLORED = {kind for kind, (_, colored) in lexicon.KINDS.items() if colored}
COMPOUNDS = {kind: _entries(text) for kind, text in lexicon.COMPOUNDS.items()}
COLORS, DEGREES, GAMES = _entries(lexicon.COLORS), _entries(lexicon.DEGREES), _entries(lexicon.GAMES)
CITIES, MEANS, MANNERS = _entries(lexicon.CITIES), _entries(lexicon.MEANS), _entries(lexicon.MANNERS)
FREQUENCIES, PRESENT, HABITS = _entries(lexicon.FREQUENCIES), _entries(lexicon.PRESENT), _entries(lexicon.HABITS)
PAST, FUTURE, PERIODS = _entries(lexicon.PAST), _entries(lexicon.FUTURE), _entries(lexicon.PERIODS)
NUMBERS, FEATURES = _entries(lexicon.NUMBERS), _entries(lexicon.FEATURES)
WOMEN = [
    replace(noun, german=noun.female, german_plural=noun.female + "nen", gender="f", pronoun="she", weak=False)
    for noun in NOUNS["PEOPLE"]
    if noun.female
]
OWNED = ("CLOTHES", "HATS", "LYING", "STANDING", "TOYS", "ANIMALS", "VEHICLES", "READING")
DESCRIBED = ("PEOPLE", "PARTS", "CLOTHES", "ANIMALS", "STANDING", "LYING", "VEHICLES", "READING", "BUILDINGS", "PLANTS")
OWNERS = [("my", "mein"), ("our", "unser"), ("his", "sein"), ("her", "ihr"), ("your", "dein")]
QUANTITIES = [("some", "einige"), ("many", "viele"), ("three", "drei"), ("two", "zwei")]
NEEDS = _verbs("!need=brauchen,braucht,gebraucht; !like=mögen,mag,gemocht; !love=lieben,liebt,geliebt")
NEAR = [("on", "auf"), ("under", "unter"), ("next to", "neben"), ("behind", "hinter"), ("in front of", "vor")]
PRONOUNS = [("he", "er", "m"), ("she", "sie", "f"), ("I", "ich", "m"), ("they", "sie", "p"), ("we", "wir", "p")]
COMPARISONS = {kind: _entries(text) for kind, text in lexicon.COMPARISONS.items()}
NAMES = [tuple(entry.split()) for entry in lexicon.NAMES.split("; ")]
MODALS = [(english, german.split(",")) for english, german in _entries(lexicon.MODALS)]
FRAMES = [(_verbs(verbs), kinds, where) for verbs, kinds, where in lexicon.FRAMES]
BEAST_FRAMES = [(_verbs(verbs), kinds, "") for verbs, kinds in lexicon.BEAST_FRAMES]
ALONE, WAKING, OF_BEASTS = _verbs(lexicon.ALONE), _verbs(lexicon.WAKING), _verbs(lexicon.OF_BEASTS)
GIVING, GOING, TRAVELING, TRYING = map(_verbs, (lexicon.GIVING, lexicon.GOING, lexicon.TRAVELING, lexicon.TRYING))
PLAY = _verbs(lexicon.PLAY)[0]
KNOW_A_THING, KNOW_A_FACT = (_verb(*_entries(text)[0]) for text in lexicon.KNOWING)
LIE = {kind: (_verb("lie", be), _verb("put,put", put)) for kind, (be, put) in lexicon.POSTURES.items()}


def _place(entry: Pair) -> Pair:
    """Read "in=in the park:m Park" into "in the park", "im Park"; a goal names the case as well."""
    preposition, _, rest = entry[1].partition(" the ")
    english, german = rest.split(":")
    return f"{entry[0]} the {english}", _of_definite(preposition, german, DATIVE)


def _goal(entry: Pair) -> Pair:
    preposition, german = entry[1].split(":")
    case = ACCUSATIVE if preposition.endswith("A") else DATIVE
    return f"to the {entry[0]}", _of_definite(preposition[:-2], german, case)


def _of_definite(preposition: str, german: str, case: int) -> str:
    gender, word = german.split(" ")
    word += "n" if gender == "p" and word[-1] not in "ns" else ""
    words = f"{preposition} {DEFINITE[gender][case]}"
    return f"{CONTRACTED.get(words, words)} {word}"


PLACES = {where: [_place(entry) for entry in _entries(text)] for where, text in lexicon.PLACES.items()}
GOALS = [_goal(entry) for entry in _entries(lexicon.GOALS)]


def _weather(entry: str) -> Clause:
    english, german = (side.split("|") for side in entry.split("="))
    last = german[2]
    middle, prefix = (last, "") if german[1] == "gibt" else ("", last if last == "zu" else "")
    subject = NounPhrase(english[0], (german[0],), "n", "it")
    return Clause(subject, (english[1], english[2]), german[1], middle, prefix, "" if middle or prefix else last)


WEATHER = [_weather(entry.strip()) for entry in lexicon.WEATHER.split(";")]


class Writer:
    """Draws sentences; everything drawn is a pair of English and German."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.kinds: list[tuple[Callable[[], Pair], str, int]] = [
            (self.caption, ".", 20),
            (self.fronted, ".", 10),
            (self.past, ".", 10),
            (self.planned, ".", 8),
            (self.habit, ".", 6),
            (self.two_clauses, ".", 12),
            (self.because_of_a_thing, ".", 4),
            (self.relative, ".", 8),
            (self.put, ".", 5),
            (self.located, ".", 5),
            (self.there_is, ".", 4),
            (self.described, ".", 8),
            (self.compared, ".", 3),
            (self.given, ".", 6),
            (self.travel, ".", 6),
            (self.attempt, ".", 6),
            (self.liking, ".", 3),
            (self.known, ".", 4),
            (self.asked, "?", 5),
            (self.asked_of_you, "?", 4),
            (self.request, "!", 3),
        ]
        self.weights = [weight for _, _, weight in self.kinds]

    def sentence(self) -> Pair:
        draw, end, _ = self.rng.choices(self.kinds, self.weights)[0]
        return _written(draw(), end)

    # Draws

    def one_of(self, choices: Sequence[T]) -> T:
        """Choose one; the k-th as often as Zipf has it, about 1/k."""
        return choices[min(int((len(choices) + 1) ** self.rng.random()), len(choices)) - 1]

    def happens(self, share: float) -> bool:
        return self.rng.random() < share

    def noun(self, kind: str) -> Noun:
        noun = self.one_of(NOUNS[kind])
        if kind in COMPOUNDS and " " not in noun.english and self.happens(COMPOUND_SHARE):
            english, german = self.one_of(COMPOUNDS[kind])
            noun = replace(
                noun,
                english=f"{english} {noun.english}",
                english_plural=f"{english} {noun.english_plural}",
                german=german + noun.german.lower(),
                german_plural=german + noun.german_plural.lower(),
            )
        return noun

    def adjectives(self, kind: str, share: float = ADJECTIVE_SHARE) -> list[Pair]:
        if not self.happens(share):
            return []
        drawn = [self.one_of(ADJECTIVES[kind])]
        if kind in COLORED:
            color = self.one_of(COLORS)
            drawn = self.rng.choice([drawn, [color], [color], [*drawn, color]])
        return drawn

    # Noun phrases

    def phrase(
        self, kind: str, *, owner: NounPhrase | None = None, definite: float = 0.4, plain: bool = False
    ) -> NounPhrase:
        """Draw a noun phrase of a kind; its owner may show in a possessive, a plain one is "the ..." without more."""
        noun = self.noun(kind)
        adjectives = [] if plain else self.adjectives(kind)
        if plain:
            return self.declined(noun, ("the", "der"), [], plural=False)
        if owner is not None and self.happens(0.8 if owner.woman else 0.3):
            plural = bool(noun.german_plural) and not noun.pair and self.happens(0.15)
            return self.declined(noun, owner.possessive, adjectives, plural=plural)
        if not noun.german_plural:
            bare = not self.happens(0.25)
            return self.declined(noun, NOTHING if bare else ("the", "der"), adjectives, plural=False)
        if noun.pair or not self.happens(0.2):
            determiner = ("the", "der") if self.happens(definite) else ("" if noun.pair else "a", "ein")
            if not noun.pair and self.happens(0.06):
                determiner = self.rng.choice([("this", "dies"), ("this", "dies"), ("every", "jed")])
            return self.declined(noun, determiner, adjectives, plural=False)
        choices = [("the", "der"), self.one_of(NUMBERS), self.one_of(NUMBERS), ("some", "einig"), ("many", "viel")]
        choices += [("these", "dies"), ("several", "mehrer"), NOTHING]
        if self.happens(0.06):
            english, german = self.one_of(NUMBERS)
            return self.declined(noun, (f"the {english}", f"der {german}"), adjectives, plural=True)
        return self.declined(noun, self.rng.choice(choices), adjectives, plural=True)

    def declined(self, noun: Noun, determiner: Pair, adjectives: list[Pair], *, plural: bool) -> NounPhrase:
        """Decline determiner, adjectives and noun in the German cases."""
        english, german = determiner
        gender = "p" if plural else noun.gender
        stem, _, number = german.partition(" ")
        if stem == "der":
            articles, endings = tuple(_words(article, number) for article in DEFINITE[gender]), WEAK
        elif stem in ("dies", "jed"):
            articles, endings = tuple(stem + ending for ending in DER_ENDINGS[gender]), WEAK
        elif stem in ("ein", "sein", "ihr", "mein", "unser", "dein"):
            articles, endings = tuple(stem + ending for ending in EIN_ENDINGS[gender]), MIXED
        elif stem in ("einig", "viel", "mehrer"):
            articles, endings = tuple(stem + ending for ending in DER_ENDINGS[gender]), STRONG
        else:
            articles, endings = (stem,) * 4, STRONG
        cases = tuple(
            _words(article, *(_inflect(adjective, endings[gender][case]) for _, adjective in adjectives), word)
            for case, (article, word) in enumerate(zip(articles, noun.forms(plural), strict=True))
        )
        english_plural = plural or noun.pair
        word = noun.english_plural if english_plural else noun.english
        return NounPhrase(
            _words(english, *(adjective for adjective, _ in adjectives), word),
            cases,
            gender,
            "they" if english_plural else noun.pronoun,
            definite=stem in ("der", "sein", "ihr", "mein", "unser", "dein", "dies"),
        )

    def somebody(self, *, may_be_woman: bool = False) -> NounPhrase:
        """Draw a person or people; where the clause will say "her", the teacher may be "die Lehrerin"."""
        draw = self.rng.random()
        if draw < 0.08:
            pronoun, name = self.one_of(NAMES)
            return NounPhrase(name, (name,) * 4, "m" if pronoun == "he" else "f", pronoun)
        if draw < 0.13:
            english, german = self.one_of(QUANTITIES)
            cases = tuple(f"{german} {case}" for case in ("Leute", "Leute", "Leuten", "Leute"))
            return NounPhrase(f"{english} people", cases, definite=False)
        if draw < 0.19:
            noun, owner = self.noun("RELATIVES"), self.one_of(OWNERS)
            return self.declined(noun, owner, self.adjectives("RELATIVES", 0.2), plural=False)
        if draw < 0.24:
            first, second = self.phrase("PEOPLE"), self.phrase("PEOPLE")
            cases = tuple(f"{one} und {other}" for one, other in zip(first.cases, second.cases, strict=True))
            return NounPhrase(f"{first.english} and {second.english}", cases, definite=first.definite)
        if may_be_woman and draw < 0.3:
            noun = self.one_of(WOMEN)
            determiner = self.rng.choice([("the", "der"), ("a", "ein")])
            return replace(self.declined(noun, determiner, self.adjectives("PEOPLE"), plural=False), woman=True)
        phrase = self.phrase("PEOPLE")
        return phrase.followed_by(self.one_of(FEATURES)) if self.happens(0.08) else phrase

    def pronoun(self) -> NounPhrase:
        english, german, gender = self.one_of(PRONOUNS)
        return NounPhrase(english, (german,), gender, english)

    # Clauses

    def conjugated(
        self, subject: NounPhrase, verb: Verb, tense: str, rest: Pair, *, adverb: Pair = NOTHING, negated: bool = False
    ) -> Clause:
        """Conjugate in both languages; `rest` is what follows the English verb and the middle of the German clause."""
        person, german_person = subject.english_person, subject.german_person
        tail, middle = rest
        if verb.reflexive:
            ours = {"I": "mich", "we": "uns", "you": "dich"}.get(subject.pronoun, "sich")
            middle = _words(ours, adverb[1], middle)
        else:
            middle = _words(adverb[1], middle)
        adverbs = _words("not" if negated else "", adverb[0])
        infinitive = verb.prefix + verb.infinitive
        if tense == "progressive" and verb.stative:
            tense = "present"
        if tense == "progressive":
            english = BE[person], _words(adverbs, _with_ing(verb.english) + verb.particle, tail)
            return Clause(subject, english, _finite(verb, german_person), middle, verb.prefix)
        base = verb.english + verb.particle
        if tense == "present":
            finite = (_with_s(verb.english) if person == "he" else verb.english) + verb.particle
            english = finite, tail
            question = DO[person], _words(adverbs, base, tail)
            if negated:
                english = question
            elif adverb[0]:
                english = adverb[0], _words(finite, tail)
            return Clause(subject, english, _finite(verb, german_person), middle, verb.prefix, question=question)
        if tense == "past":
            english = verb.past + verb.particle, tail
            question = "did", _words(base, tail)
            auxiliary = AUXILIARIES[verb.auxiliary][german_person]
            return Clause(subject, english, auxiliary, middle, last=verb.participle, question=question)
        if tense == "infinitive":
            words = verb.prefix + "zu" + verb.infinitive if verb.prefix else "zu " + verb.infinitive
            return Clause(subject, ("to", _words(base, tail)), "", middle, last=words)
        if tense == "liking":
            english = ("likes to" if person == "he" else "like to"), _words(base, tail)
            return Clause(subject, english, _finite(verb, german_person), middle, verb.prefix)
        if tense == "imperative":
            return Clause(subject, (base, tail), _first_person(verb), middle, verb.prefix)
        if tense == "future":
            english = "will", _words(adverbs, base, tail)
            return Clause(subject, english, AUXILIARIES["werden"][german_person], middle, last=infinitive)
        modal, forms = self.one_of([one for one in MODALS if " " not in one[0] or subject.pronoun != "you"])
        german = forms[("ich", "du", "er", "wir").index(german_person)]
        if modal == "want to" and person == "he":
            modal = "wants to"
        first, _, more = modal.partition(" ")
        return Clause(subject, (first, _words(more, base, tail)), german, middle, last=infinitive)

    def clause(
        self,
        tense: str = "progressive",
        subject: NounPhrase | None = None,
        *,
        time: Pair = NOTHING,
        place: float = PLACE_SHARE,
        adverb: Pair = NOTHING,
    ) -> Clause:
        """Draw a verb and what it takes; the time is said behind the English verb and before the German object."""
        beast = subject is None and self.happens(BEAST_SHARE)
        if subject is None:
            subject = self.phrase("ANIMALS") if beast else self.somebody(may_be_woman=True)
        while True:
            clause = self.clause_of(subject, tense, time, place, adverb, beast=beast)
            if not subject.woman or re.search(r"\bher\b", clause.english[1]):
                return clause

    def clause_of(
        self, subject: NounPhrase, tense: str, time: Pair, place: float, adverb: Pair, *, beast: bool
    ) -> Clause:
        if tense != "imperative" and self.happens(0.4 if beast else 0.22):
            return self.clause_alone(tense, subject, time, place, adverb, beast=beast)
        if not beast and self.happens(0.06):
            game, where = self.one_of(GAMES), self.place("OUTSIDE", place)
            rest = _words(game[0], where[0], time[0]), _words(time[1], where[1], game[1])
            return self.conjugated(subject, PLAY, tense, rest, adverb=adverb)
        frames = BEAST_FRAMES if beast else FRAMES
        verbs, kinds, spot = frames[int(len(frames) * self.rng.random() ** 1.4)]
        verb, kind = self.one_of(verbs), self.rng.choice(kinds)
        while (tense == "imperative" and not verb.has_regular_imperative) or (
            verb.stative and tense in ("imperative", "infinitive", "liking")
        ):
            verbs, kinds, spot = self.rng.choice(FRAMES)
            verb, kind = self.one_of(verbs), self.rng.choice(kinds)
        thing = self.phrase(kind, owner=subject if kind in OWNED and not beast else None)
        negated = tense == "progressive" and not adverb[0] and self.happens(0.06)
        where = NOTHING if negated else self.place(spot, place)
        rest = self.complement(verb, thing, where, time, negated)
        return self.conjugated(subject, verb, tense, rest, adverb=adverb, negated=negated)

    def clause_alone(
        self, tense: str, subject: NounPhrase, time: Pair, place: float, adverb: Pair, *, beast: bool
    ) -> Clause:
        """A clause without an object."""
        if not beast and self.happens(0.2) and (time[0] or tense != "progressive"):
            return self.conjugated(subject, self.one_of(WAKING), tense, time, adverb=adverb)
        verb = self.one_of(OF_BEASTS if beast else ALONE)
        where = self.place("OUTSIDE" if self.happens(0.7) or beast else "INSIDE", 2 * place)
        manner = self.one_of(MANNERS) if not beast and self.happens(0.12) else NOTHING
        rest = _words(manner[0], where[0], time[0]), _words(time[1], manner[1], where[1])
        return self.conjugated(subject, verb, tense, rest, adverb=adverb)

    def complement(self, verb: Verb, thing: NounPhrase, where: Pair, time: Pair, negated: bool) -> Pair:
        """The object, the place and the time: German puts a known object before the place, a new one behind it."""
        english = _words(thing.english, where[0], time[0])
        if verb.preposition:
            what = _prepositional(verb.preposition, thing, verb.case)
            return english, _words(time[1], where[1], "nicht" if negated else "", what)
        what = thing.cases[verb.case]
        if negated and what.startswith("ein") and not what.startswith("einig"):
            return english, _words(time[1], "k" + what)
        if thing.definite:
            return english, _words(time[1], what, where[1], "nicht" if negated else "")
        return english, _words(time[1], where[1], "nicht" if negated else "", what)

    def place(self, spot: str, share: float) -> Pair:
        return self.one_of(PLACES[spot]) if spot and self.happens(share) else NOTHING

    # Kinds of sentence

    def caption(self) -> Pair:
        return self.clause().statement()

    def fronted(self) -> Pair:
        """Place or time in front: in German the verb follows at once."""
        if self.happens(0.6):
            front = self.one_of(PLACES[self.rng.choice(("OUTSIDE", "OUTSIDE", "INSIDE"))])
            clause = self.clause(place=0)
            return f"{front[0]}, {clause.english_statement()}", f"{front[1]} {clause.inverted()}"
        tense, times = self.rng.choice([("past", PAST), ("future", FUTURE), ("progressive", PRESENT[1:4])])
        front = self.one_of(times)
        clause = self.clause(tense)
        return f"{front[0]} {clause.english_statement()}", f"{front[1]} {clause.inverted()}"

    def past(self) -> Pair:
        return self.clause("past", self.agent(), time=self.past_time()).statement()

    def past_time(self) -> Pair:
        if self.happens(0.75):
            return self.one_of(PAST)
        number, period = self.one_of(NUMBERS), self.one_of(PERIODS)
        return f"{number[0]} {period[0]} ago", f"vor {number[1]} {period[1]}"

    def agent(self) -> NounPhrase | None:
        return self.pronoun() if self.happens(0.35) else None

    def planned(self) -> Pair:
        """With a modal verb or in the future: the infinitive ends the German clause."""
        if self.happens(0.5):
            return self.clause("future", self.agent(), time=self.one_of(FUTURE)).statement()
        time = self.one_of(FUTURE) if self.happens(0.4) else NOTHING
        return self.clause("modal", self.agent() or self.somebody(), time=time).statement()

    def habit(self) -> Pair:
        if self.happens(0.5):
            return self.clause("present", self.agent(), time=self.one_of(HABITS)).statement()
        return self.clause("present", self.agent(), adverb=self.one_of(FREQUENCIES)).statement()

    def weather_or_clause(self) -> Clause:
        return self.one_of(WEATHER) if self.happens(0.3) else self.clause(place=0.1)

    def two_clauses(self) -> Pair:
        """One clause beside or under another."""
        if self.happens(0.2):
            first, second = self.clause(place=0.1).statement(), self.clause(place=0.1).statement()
            english, german = self.rng.choice([("and", "und"), ("but", "aber")])
            return f"{first[0]}, {english} {second[0]}", f"{first[1]}, {german} {second[1]}"
        if self.happens(0.35):
            main = self.clause(place=0.2)
            predicate = self.one_of(ADJECTIVES["PEOPLE" if main.subject.pronoun != "it" else "ANIMALS"])
            reason = self.copula(main.subject.as_pronoun(), predicate).subordinate()
            conjunction = self.one_of([("because", "weil"), ("although", "obwohl")])
            return self.under(main, conjunction, reason)
        if self.happens(0.4):
            weather = self.one_of(WEATHER)
            english, german = self.one_of(
                [("when", "wenn"), ("because", "weil"), ("if", "wenn"), ("as soon as", "sobald")]
            )
            tense = "future" if english == "as soon as" else "progressive" if english == "because" else "modal"
            clause, (below, under) = self.clause(tense, place=0.2), weather.subordinate()
            if self.happens(0.5):
                return f"{english} {below}, {clause.english_statement()}", f"{german} {under}, {clause.inverted()}"
            return self.under(clause, (english, german), (below, under))
        main, other = self.clause(place=0.1), self.weather_or_clause()
        conjunction = self.one_of([("while", "während"), ("because", "weil"), ("although", "obwohl")])
        return self.under(main, conjunction, other.subordinate())

    def under(self, main: Clause, conjunction: Pair, below: Pair) -> Pair:
        english, german = main.statement()
        return f"{english} {conjunction[0]} {below[0]}", f"{german}, {conjunction[1]} {below[1]}"

    def because_of_a_thing(self) -> Pair:
        """A pronoun for a thing, whose gender German keeps."""
        kind, verbs = self.rng.choice(
            [
                (kind, verbs)
                for verbs, kinds, _ in FRAMES
                for kind in kinds
                if kind in COLORED and kind not in ("HATS", "TRANSPORT")
            ]
        )
        verb, subject = self.one_of(verbs), self.somebody()
        thing = self.phrase(kind, definite=0.7)
        while subject.pronoun == thing.pronoun:  # nobody could tell which one the pronoun means
            subject = self.somebody()
        main = self.conjugated(subject, verb, "progressive", self.complement(verb, thing, NOTHING, NOTHING, False))
        conjunction = self.one_of([("because", "weil"), ("although", "obwohl")])
        reference = thing.as_pronoun()
        if self.happens(0.5):
            return self.under(main, conjunction, self.copula(reference, self.one_of(ADJECTIVES[kind])).subordinate())
        need = self.one_of(NEEDS)
        reason = self.conjugated(
            subject.as_pronoun() if subject.pronoun != "it" else subject,
            need,
            "present",
            (OBJECTIVE[thing.pronoun], reference.cases[ACCUSATIVE]),
        )
        return self.under(main, conjunction, reason.subordinate())

    def relative(self) -> Pair:
        """A subject with a relative clause: the verb of the German one stands at its end."""
        kind = "PEOPLE" if self.happens(0.8) else "ANIMALS"
        subject = self.phrase(kind)
        inner = self.clause(subject=subject, place=0.1) if kind == "PEOPLE" else self.of_beast(subject)
        below = inner.subordinate(DEFINITE[subject.gender][NOMINATIVE])[1]
        who = "who" if kind == "PEOPLE" else "that"
        longer = subject.followed_by((f"{who} {_words(*inner.english)}", f", {below},"))
        main = self.clause(subject=longer, place=0.2) if kind == "PEOPLE" else self.of_beast(longer)
        return main.statement()

    def of_beast(self, subject: NounPhrase) -> Clause:
        if self.happens(0.5):
            return self.clause_alone("progressive", subject, NOTHING, 0.2, NOTHING, beast=True)
        verbs, kinds, _ = self.rng.choice(BEAST_FRAMES)
        verb, thing = self.one_of(verbs), self.phrase(self.rng.choice(kinds))
        return self.conjugated(subject, verb, "progressive", self.complement(verb, thing, NOTHING, NOTHING, False))

    def spot(self) -> tuple[Pair, NounPhrase]:
        """A preposition with either case, and what it is about."""
        if self.happens(0.35):
            return ("in", "in"), self.phrase("CONTAINERS", definite=0.8)
        return self.one_of(NEAR), self.phrase("SURFACES", definite=0.8)

    def put(self) -> Pair:
        """Stellen or legen, by what is put; where to is in the accusative."""
        kind = self.one_of(("STANDING", "LYING", "CLOTHES", "TOYS"))
        subject = self.pronoun() if self.happens(0.3) else self.somebody()
        thing, ((english, german), goal) = self.phrase(kind, owner=subject, definite=0.6), self.spot()
        tense, time = self.rng.choice([("progressive", NOTHING), ("modal", NOTHING), ("past", self.one_of(PAST))])
        where = _prepositional(german, goal, ACCUSATIVE)
        rest = _words(thing.english, english, goal.english, time[0]), _words(time[1], thing.cases[ACCUSATIVE], where)
        return self.conjugated(subject, LIE[kind][1], tense, rest).statement()

    def located(self) -> Pair:
        """Stehen, liegen or hängen, by what it is; where is in the dative."""
        if self.happens(0.15):
            thing = self.phrase("PICTURES", definite=0.6)
            verb = "hängt" if thing.german_person == "er" else "hängen"
            return Clause(thing, (BE[thing.english_person], "on the wall"), verb, "an der Wand").statement()
        clause = self.lying()
        if self.happens(0.3):
            english = f"{clause.english[1]} {clause.english[0]} {clause.subject.english}"
            return english, f"{clause.middle} {clause.finite} {clause.subject.cases[NOMINATIVE]}"
        return clause.statement()

    def lying(self) -> Clause:
        kind = self.one_of(("LYING", "STANDING", "TOYS", "CLOTHES"))
        thing, ((english, german), spot) = self.phrase(kind, definite=0.7), self.spot()
        where = _prepositional(german, spot, DATIVE)
        rest = _words(english, spot.english)
        return Clause(thing, (BE[thing.english_person], rest), _finite(LIE[kind][0], thing.german_person), where)

    def there_is(self) -> Pair:
        kind, where = self.one_of(
            [("PEOPLE", "OUTSIDE"), ("BUILDINGS", "OUTSIDE"), ("ANIMALS", "OUTSIDE"), ("DEVICES", "INSIDE")]
        )
        thing = self.phrase(kind, definite=0)
        while thing.definite or thing.english.startswith("every "):
            thing = self.phrase(kind, definite=0)
        place = self.one_of(PLACES[where])
        english = f"there {BE[thing.english_person]} {thing.english} {place[0]}"
        return english, f"{place[1]} gibt es {thing.cases[ACCUSATIVE]}"

    def copula(self, subject: NounPhrase, predicate: Pair, *, past: bool = False) -> Clause:
        verb = (WAS if past else BE)[subject.english_person]
        german = AUXILIARIES["war" if past else "sein"][subject.german_person]
        return Clause(subject, (verb, predicate[0]), german, "", last=predicate[1])

    def described(self) -> Pair:
        """An adjective behind "be" has no ending in German; what somebody or a building has is in the genitive."""
        kind = self.one_of(DESCRIBED)
        adjective = self.one_of(ADJECTIVES[kind])
        if self.happens(0.5) and adjective[0] not in ("empty", "broken", "dead", "ruined"):
            degree = self.one_of(DEGREES)
            adjective = f"{degree[0]} {adjective[0]}", f"{degree[1]} {adjective[1]}"
        if kind == "PARTS":
            subject = self.phrase(kind, plain=True)
            owner = self.declined(self.noun("BUILDINGS"), ("the", "der"), self.adjectives("BUILDINGS"), plural=False)
            subject = subject.followed_by((f"of {owner.english}", owner.cases[GENITIVE]))
        elif self.happens(0.25) and kind not in ("BUILDINGS", "PLANTS", "PEOPLE"):
            owner = self.declined(self.noun("PEOPLE"), ("the", "der"), self.adjectives("PEOPLE", 0.2), plural=False)
            thing = self.declined(self.noun(kind), ("the", "der"), [], plural=False)
            cases = tuple(f"{case} {owner.cases[GENITIVE]}" for case in thing.cases)
            subject = replace(thing, english=f"{owner.english}'s {thing.english.removeprefix('the ')}", cases=cases)
        else:
            subject = self.phrase(kind, definite=1, plain=self.happens(0.6))
        return self.copula(subject, adjective, past=self.happens(0.3)).statement()

    def compared(self) -> Pair:
        kind = self.one_of(tuple(COMPARISONS))
        subject, other = self.phrase(kind, definite=0.9), self.phrase(kind, definite=0.9)
        while not subject.definite or not other.definite or subject.english == other.english:
            subject, other = self.phrase(kind, definite=0.9), self.phrase(kind, definite=0.9)
        english, german = self.one_of(COMPARISONS[kind])
        return self.copula(subject, (f"{english} {other.english}", f"{german} {other.cases[NOMINATIVE]}")).statement()

    def given(self) -> Pair:
        """Somebody in the dative, something in the accusative."""
        subject = self.pronoun() if self.happens(0.3) else self.somebody()
        verb, receiver = self.one_of(GIVING), self.phrase("PEOPLE", definite=0.6)
        thing = self.phrase(self.one_of(("TOYS", "READING", "FOOD", "LYING", "PLANTS")), definite=0.3)
        tense, time = self.rng.choice([("progressive", NOTHING), ("past", self.past_time()), ("modal", NOTHING)])
        german = _words(time[1], receiver.cases[DATIVE], thing.cases[ACCUSATIVE])
        if self.happens(0.5) and not verb.particle:
            english = _words(receiver.english, thing.english, time[0])
        else:
            english = _words(thing.english, "to", receiver.english, time[0])
        return self.conjugated(subject, verb, tense, (english, german)).statement()

    def travel(self) -> Pair:
        """Where to: English says the place before means and time, German behind them."""
        subject = self.pronoun() if self.happens(0.4) else self.somebody()
        tense, time = self.rng.choice(
            [("progressive", NOTHING), ("past", self.past_time()), ("future", self.one_of(FUTURE)), ("modal", NOTHING)]
        )
        if self.happens(0.45):
            goal, verb, means = self.one_of(GOALS), self.one_of(GOING), NOTHING
        else:
            city = self.one_of(CITIES)
            goal, verb, means = (f"to {city[0]}", f"nach {city[1]}"), self.one_of(TRAVELING), self.one_of(MEANS)
        rest = _words(goal[0], means[0], time[0]), _words(time[1], means[1], goal[1])
        return self.conjugated(subject, verb, tense, rest).statement()

    def attempt(self) -> Pair:
        """An infinitive with "zu", which stands inside a separable verb, or "um ... zu"."""
        subject = self.somebody()
        english, german = self.clause("infinitive", subject, place=0.1).without_subject()
        if self.happens(0.4):
            goal = self.one_of(GOALS)
            rest = f"{goal[0]} {english}", f"{goal[1]}, um {german}"
            return self.conjugated(subject, self.one_of(GOING), "progressive", rest).statement()
        return self.conjugated(subject, self.one_of(TRYING), "progressive", (english, f", {german}")).statement()

    def liking(self) -> Pair:
        """What English says with a verb is an adverb in German: "likes to sing", "singt gern"."""
        subject = self.pronoun() if self.happens(0.4) else self.somebody()
        return self.clause("liking", subject, place=0.1, adverb=("", "gern")).statement()

    def known(self) -> Pair:
        """Kennen or wissen, by what is known."""
        subject = self.pronoun() if self.happens(0.4) else self.somebody()
        return self.knowing(subject).statement()

    def knowing(self, subject: NounPhrase) -> Clause:
        if self.happens(0.5):
            thing = self.phrase(self.rng.choice(("PEOPLE", "BUILDINGS")), definite=0.9)
            while not thing.definite:
                thing = self.phrase(self.rng.choice(("PEOPLE", "BUILDINGS")), definite=0.9)
            return self.conjugated(subject, KNOW_A_THING, "present", (thing.english, thing.cases[ACCUSATIVE]))
        if self.happens(0.4):
            lying = self.lying()
            fact = (
                f"where {lying.subject.english} {lying.english[0]}",
                f", wo {lying.subject.cases[NOMINATIVE]} {lying.finite}",
            )
        else:
            english, german = self.clause(place=0.2).subordinate()
            fact = f"that {english}", f", dass {german}"
        return self.conjugated(subject, KNOW_A_FACT, "present", fact)

    def asked(self) -> Pair:
        if self.happens(0.3):
            lying = self.lying()
            return (
                f"where {lying.english[0]} {lying.subject.english}",
                f"wo {lying.finite} {lying.subject.cases[NOMINATIVE]}",
            )
        if self.happens(0.3):
            return self.clause("past", self.agent(), time=self.one_of(PAST), place=0.1).asked()
        english, german = self.clause(place=0.2).asked()
        if self.happens(0.4):
            return f"why {english}", f"warum {german}"
        return english, german

    def asked_of_you(self) -> Pair:
        you = NounPhrase("you", ("du",), "m", "you")
        return self.knowing(you).asked() if self.happens(0.4) else self.clause("modal", you, place=0.1).asked()

    def request(self) -> Pair:
        you = NounPhrase("", ("",), "m", "you")
        english, german = self.clause("imperative", you, place=0.1).without_subject()
        return (f"please {english}", f"bitte {german}") if self.happens(0.5) else (english, german)
