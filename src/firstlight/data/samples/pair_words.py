"""The words of the sample pairs, from pair_words.toml, and their inflection in English and German."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from firstlight.data.samples import english
from firstlight.data.samples.grammar import items, load

Pair = tuple[str, str]  # English, German

CASES = ("nom", "acc", "dat", "gen")
COLUMNS = ("ich", "du", "er", "wir")  # the forms of a verb
GENDERS = "mfnp"  # p is the plural


@dataclass(frozen=True)
class Noun:
    """A noun in both languages, as the groups of _NOUN. A name or an uncountable noun has no German plural."""

    pair: str  # "+" for a noun such as trousers, which is plural in English only
    english: str
    gender: str
    german: str
    weak: str
    german_plural: str
    pronoun: str  # he, she or it

    @property
    def english_plural(self) -> str:
        return self.english if self.pair else english.plural(self.english)

    def compounded(self, english_word: str, german_word: str) -> "Noun":
        """Return a compound: a word before the English noun, and joined with the German noun."""
        german, plural = (german_word + word.lower() for word in (self.german, self.german_plural))
        return replace(self, english=f"{english_word} {self.english}", german=german, german_plural=plural)

    def cases(self, *, is_plural: bool) -> tuple[str, ...]:
        """Return the nominative, accusative, dative and genitive in German."""
        if is_plural:
            word = self.german_plural
            return word, word, word if word[-1] in "ns" else word + "n", word
        if self.weak:
            return self.german, *[self.german_plural] * 3
        genitive = self.german
        if self.gender != "f":
            is_short = len(re.findall("[aeiouyäöü]+", genitive.lower())) == 1
            genitive += "es" if is_short or genitive[-1] in "sßxz" else "s"
        return self.german, self.german, self.german, genitive


@dataclass(frozen=True)
class Verb:
    """A verb in both languages, as the groups of _VERB."""

    stative: str  # "!" if English has no progressive form
    english: str
    particle: str
    preposition: str  # that the German verb governs
    government: str  # A or D if it is not the accusative without a preposition
    reflexive: str
    prefix: str
    infinitive: str
    third: str
    sein: str  # "+" if the auxiliary is "sein"
    participle: str

    def fits(self, tense: str) -> bool:
        """Return whether the verb is used in a tense. An imperative must keep the vowel ("trage", not "wirf")."""
        stem = re.sub("e?n$", "", self.infinitive)
        if self.stative and tense in ("imperative", "infinitive", "liking"):
            return False
        return tense != "imperative" or self.third in (stem + "t", stem + "et")


_NOUN = re.compile(r"(\+?)(.*?) = ([mfn]) ([^,*]+)(\*?)(?:, ([^,]+))?(?:, (\w+))?")
_VERB = re.compile(
    r"(!?)(\S+) ?(.*?) = (?:(?:(\w+) )?([AD]): )?(sich )?(?:(\w+)\|)?(\w+), (\w+), (\+?)(\w+)",
)


def _groups(notation: re.Pattern[str], text: str) -> tuple[str, ...]:
    found = notation.fullmatch(text)
    assert found is not None, f"{text!r} is not in the notation that the file explains"
    return found.groups("")


def _entries(texts: Iterable[str]) -> tuple[Pair, ...]:
    """Return pairs from entries of the form "English = German"."""
    split = (text.partition("=") for text in texts)
    return tuple((first.strip(), second.strip()) for first, _, second in split)


def _kind(table: dict[str, Any]) -> dict[str, Any]:
    """Return a kind with its nouns, its adjectives and the first parts of its compounds."""
    pronouns = {"m": "he", "f": "she"} if "persons" in table else {}
    nouns = [Noun(*_groups(_NOUN, text)) for text in table["nouns"]]
    nouns = [replace(noun, pronoun=noun.pronoun or pronouns.get(noun.gender, "it")) for noun in nouns]
    compounds = _entries(table.get("compounds", ()))
    return table | {"nouns": nouns, "adjectives": LISTS[table["adjectives"][0]], "compounds": compounds}


@cache
def verbs(name_or_text: str) -> tuple[Verb, ...]:
    """Return the verbs of the list with that name, or of a text."""
    return tuple(Verb(*_groups(_VERB, text)) for text in _DATA["verbs"].get(name_or_text) or items(name_or_text))


@cache
def determiners(name: str, number: str) -> tuple[Pair, ...]:
    """Return the determiners of a list, repeated by their weights. number: singular, plural or mass."""
    table = _DATA["determiners"][name]
    texts = (text.partition(" x") for text in table.get(number) or next(iter(table.values())))
    return _entries(entry for entry, _, times in texts for _ in range(int(times or 1)))


def _table(name: str, columns: tuple[str, ...]) -> dict[str, dict[str, str]]:
    return {row: dict(zip(columns, text.split(), strict=True)) for row, (text,) in _DATA[name].items()}


_DATA = load("pair_words")
LISTS: dict[str, tuple[Pair, ...]] = {name: _entries(texts) for name, texts in _DATA["lists"].items()}
KINDS = {name: _kind(table) for name, table in _DATA["kinds"].items()}
_ENDINGS = {
    name: {
        gender: ["" if ending == "-" else ending for ending in row.split()]
        for gender, row in zip(GENDERS, text.split("|"), strict=True)
    }
    for name, (text,) in _DATA["endings"].items()
}
_PARADIGMS = {stem: text.split() for stem, (text,) in _DATA["paradigms"].items()}
DEFINITE = {gender: ["d" + ending for ending in row] for gender, row in _ENDINGS["der"].items()}
DEFINITE_STEMS = ("d", "dies", "mein", "dein", "sein", "ihr", "unser")
ENGLISH_PRONOUNS = _table("english_pronouns", ("object", "possessive", "be", "was", "do"))
GERMAN_PRONOUNS = _table("german_pronouns", (*CASES[:3], "possessive", "reflexive", "column"))
_FINITE = _table("finite", COLUMNS)


def declined(noun: Noun, determiner: str, adjectives: list[str], gender: str) -> dict[str, str]:
    """Return the German cases of a phrase of a determiner (its stem), adjectives and a noun. The gender may be p."""
    stem, _, number = determiner.partition(" ")
    own, other = (_ENDINGS[name][gender] for name in _PARADIGMS.get(stem, ("none", "strong")))
    return {
        case: spaced(stem + own[at], number, *(_inflected(adjective, other[at]) for adjective in adjectives), word)
        for at, (case, word) in enumerate(zip(CASES, noun.cases(is_plural=gender == "p"), strict=True))
    }


@cache
def _inflected(adjective: str, ending: str) -> str:
    """Return an adjective with an ending: dunkel, dunkle; teuer, teure; hoch, hohe; müde, müde."""
    stem = re.sub(r"el$", "l", re.sub(r"(eu|au)er$", r"\1r", adjective)).removesuffix("e")
    return ("hoh" if adjective == "hoch" else stem) + ending


def english_verb(
    verb: Verb, tense: str, pronoun: str, adverb: str, modal: str, *, is_negated: bool = False
) -> tuple[Pair, Pair]:
    """Return the finite verb and the rest, first of a question, then of a statement."""
    forms, is_third = ENGLISH_PRONOUNS[pronoun], pronoun in ("he", "she", "it")
    base = spaced(verb.english, verb.particle)
    if verb.english == "be":
        return ((forms["was" if tense == "past" else "be"], ""),) * 2
    if tense == "progressive" and not verb.stative:
        adverb = "not" if is_negated else adverb
        return ((forms["be"], spaced(adverb, english.ended(verb.english, "ing"), verb.particle)),) * 2
    if tense in ("progressive", "present"):
        if is_negated:
            return ((forms["do"], f"not {base}"),) * 2
        finite = spaced(adverb, english.third(verb.english) if is_third else verb.english, verb.particle)
        return (forms["do"], spaced(adverb, base)), (finite, "")
    if tense == "past":
        return ("did", base), (spaced(english.past(verb.english)[0], verb.particle), "")
    if tense == "imperative":
        return ((base, ""),) * 2
    auxiliary = {"infinitive": "to", "liking": "like to", "future": "will"}.get(tense, modal)
    first, _, more = auxiliary.partition(" ")
    first += "s" if is_third and first in ("like", "want") else ""
    return ((first, spaced(more, base)),) * 2


def german_verb(verb: Verb, tense: str, column: str, modal: str) -> tuple[str, str, str]:
    """Return the finite verb, its separate prefix, and the participle or infinitive at the end of the clause."""
    infinitive = verb.prefix + verb.infinitive
    match tense:
        case "past" if infinitive == "sein":
            return _finite("war", "", column), "", ""
        case "past":
            return _finite("sein" if verb.sein else "haben", "", column), "", verb.participle
        case "future":
            return _finite("werden", "", column), "", infinitive
        case "modal":
            return modal.split(", ")[COLUMNS.index(column)], "", infinitive
        case "infinitive":
            return "", "", f"{verb.prefix}zu{verb.infinitive}" if verb.prefix else f"zu {infinitive}"
    return _finite(verb.infinitive, verb.third, "ich" if tense == "imperative" else column), verb.prefix, ""


@cache
def _finite(infinitive: str, third: str, column: str) -> str:
    if infinitive in _FINITE:
        return _FINITE[infinitive][column]
    if column == "ich":
        stem = re.sub("eln$", "l", infinitive)
        return (infinitive if infinitive.endswith("ern") else stem).removesuffix("n").removesuffix("e") + "e"
    return {"du": re.sub("(?<![sßxz])t$", "st", third), "er": third, "wir": infinitive}[column]


def spaced(*parts: str) -> str:
    """Return the parts that are not empty, joined with spaces."""
    return " ".join(part for part in parts if part)
