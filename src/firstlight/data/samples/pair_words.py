"""The words of the sample pairs, and how English and German inflect them; the words are in pair_words.toml."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from firstlight.data.samples import english
from firstlight.data.samples.grammar import items, load

Pair = tuple[str, str]  # English, German

CASES = ("nom", "acc", "dat", "gen")
COLUMNS = ("ich", "du", "er", "wir")  # of verb forms
GENDERS = "mfnp"  # p is the plural


@dataclass(frozen=True)
class Noun:
    """A noun in both languages; without a German plural it is a name or cannot be counted."""

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: str
    pronoun: str  # he, she or it
    is_weak: bool
    is_pair: bool  # trousers: plural in English only

    def compounded(self, english_word: str, german_word: str) -> "Noun":
        """Put a word before the English noun, and together with the German one."""
        return Noun(
            f"{english_word} {self.english}",
            f"{english_word} {self.english_plural}",
            german_word + self.german.lower(),
            german_word + self.german_plural.lower(),
            *(self.gender, self.pronoun, self.is_weak, self.is_pair),
        )

    def cases(self, *, is_plural: bool) -> tuple[str, ...]:
        """Return the nominative, accusative, dative and genitive in German."""
        if is_plural:
            word = self.german_plural
            return word, word, word if word[-1] in "ns" else word + "n", word
        if self.is_weak:
            return self.german, *[self.german_plural] * 3
        genitive = self.german
        if self.gender != "f":
            is_short = len(re.findall("[aeiouyäöü]+", genitive.lower())) == 1
            genitive += "es" if is_short or genitive[-1] in "sßxz" else "s"
        return self.german, self.german, self.german, genitive


@dataclass(frozen=True)
class Verb:
    """A verb in both languages, with the case or the preposition that it governs in German."""

    english: str
    particle: str  # the rest of a phrasal verb
    is_stative: bool  # English knows no progressive of it
    infinitive: str
    prefix: str
    third: str
    participle: str
    auxiliary: str
    preposition: str
    case: str
    is_reflexive: bool

    def fits(self, tense: str) -> bool:
        """Whether it is said in a tense: an imperative keeps the vowel ("trage", but not "wirf")."""
        stem = re.sub("e?n$", "", self.infinitive)
        return not (self.is_stative and tense in ("imperative", "infinitive", "liking")) and (
            tense != "imperative" or self.third in (stem + "t", stem + "et")
        )


@dataclass(frozen=True)
class Kind:
    """A kind of noun: the adjectives that fit, whether colors fit and possessives do, the first parts of compounds."""

    nouns: tuple[Noun, ...]
    adjectives: tuple[Pair, ...]
    has_colors: bool
    is_owned: bool
    compounds: tuple[Pair, ...]


def entry(text: str) -> Pair:
    """Split "English = German"."""
    first, _, second = text.partition("=")
    return first.strip(), second.strip()


def _noun(text: str, *, is_person: bool) -> Noun:
    singular, german = entry(text)
    gender, _, words = german.partition(" ")
    word, plural, pronoun, *_ = [*words.split(", "), "", ""]
    is_pair = singular[0] == "+"
    singular = singular.lstrip("+")
    return Noun(
        singular,
        singular if is_pair else english.plural(singular),
        word.rstrip("*"),
        plural,
        gender,
        pronoun or ({"m": "he", "f": "she"}.get(gender, "it") if is_person else "it"),
        is_weak=word[-1] == "*",
        is_pair=is_pair,
    )


def _verb(text: str) -> Verb:
    base, german = entry(text)
    government, _, forms = german.rpartition(": ")
    words = f"{government}: {forms}".replace("sich ", "")  # wherever it stands
    government, forms = words.split(": ")
    infinitive, third, participle = forms.split(", ")
    prefix, _, stem = infinitive.rpartition("|")
    preposition, _, case = government.rpartition(" ")
    base_word, _, particle = base.lstrip("!").partition(" ")
    return Verb(
        base_word,
        particle,
        is_stative=base[0] == "!",
        infinitive=stem,
        prefix=prefix,
        third=third,
        participle=participle.lstrip("+"),
        auxiliary="sein" if participle[0] == "+" else "haben",
        preposition=preposition,
        case="dat" if case == "D" else "acc",
        is_reflexive="sich " in german,
    )


def _kind(table: dict[str, Any]) -> Kind:
    return Kind(
        tuple(_noun(text, is_person="persons" in table) for text in table["nouns"]),
        LISTS[table["adjectives"][0]],
        "colors" in table,
        "owned" in table,
        tuple(map(entry, table.get("compounds", ()))),
    )


@cache
def verbs(name_or_text: str) -> tuple[Verb, ...]:
    """Return the verbs of the list of that name, or of a text."""
    return tuple(map(_verb, _DATA["verbs"].get(name_or_text) or items(name_or_text)))


@cache
def determiners(name: str, number: str) -> tuple[tuple[Pair, ...], tuple[int, ...]]:
    """Return the determiners of a list with their weights; the number is singular, plural or mass."""
    table = _DATA["determiners"][name]
    found = [re.fullmatch(r"(.*?)(?: x(\d+))?", text) for text in table.get(number) or next(iter(table.values()))]
    return tuple(entry(each[1]) for each in found if each), tuple(int(each[2] or 1) for each in found if each)


_DATA = load("pair_words")
LISTS: dict[str, tuple[Pair, ...]] = {name: tuple(map(entry, texts)) for name, texts in _DATA["lists"].items()}
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
ENGLISH_PRONOUNS = {
    pronoun: dict(zip(("object", "possessive", "be", "was", "do"), text.split(), strict=True))
    for pronoun, (text,) in _DATA["english_pronouns"].items()
}
GERMAN_PRONOUNS = {
    key: dict(zip((*CASES[:3], "possessive", "reflexive", "column"), text.split(), strict=True))
    for key, (text,) in _DATA["german_pronouns"].items()
}
_FINITE = {infinitive: text.split() for infinitive, (text,) in _DATA["finite"].items()}


def declined(noun: Noun, determiner: str, adjectives: list[str], *, is_plural: bool) -> dict[str, str]:
    """Return the German cases of a determiner, given by its stem, adjectives and a noun."""
    stem, _, number = determiner.partition(" ")
    own, of_adjectives = _PARADIGMS.get(stem, ("none", "strong"))
    gender = "p" if is_plural else noun.gender
    rows = zip(
        CASES, _ENDINGS[own][gender], _ENDINGS[of_adjectives][gender], noun.cases(is_plural=is_plural), strict=True
    )
    return {
        case: spaced(
            stem + ending, number, *(_inflected(adjective, adjectives_ending) for adjective in adjectives), word
        )
        for case, ending, adjectives_ending, word in rows
    }


@cache
def _inflected(adjective: str, ending: str) -> str:
    """Add an ending to an adjective: dunkel, dunkle; teuer, teure; hoch, hohe; müde, müde."""
    stem = re.sub(r"el$", "l", re.sub(r"(eu|au)er$", r"\1r", adjective)).removesuffix("e")
    return ("hoh" if adjective == "hoch" else stem) + ending


def english_verb(
    verb: Verb, tense: str, pronoun: str, adverb: str, modal: str, *, is_negated: bool = False
) -> tuple[Pair, Pair]:
    """Return the finite verb and the rest, first as a question has them, then as a statement has them."""
    forms, is_third = ENGLISH_PRONOUNS[pronoun], pronoun in ("he", "she", "it")
    base = spaced(verb.english, verb.particle)
    if verb.english == "be":
        return ((forms["was" if tense == "past" else "be"], ""),) * 2
    if tense == "progressive" and not verb.is_stative:
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
    """Return the finite verb, its prefix where that is apart, and the participle or infinitive that ends the clause."""
    if tense == "past":
        if verb.infinitive == "sein":
            return _finite("war", "", column), "", ""
        return _finite(verb.auxiliary, "", column), "", verb.participle
    if tense == "infinitive":
        return "", "", f"{verb.prefix}zu{verb.infinitive}" if verb.prefix else f"zu {verb.infinitive}"
    if tense == "imperative":
        return _finite(verb.infinitive, verb.third, "ich"), verb.prefix, ""
    if tense == "future":
        return _finite("werden", "", column), "", verb.prefix + verb.infinitive
    if tense == "modal":
        return modal.split(", ")[COLUMNS.index(column)], "", verb.prefix + verb.infinitive
    return _finite(verb.infinitive, verb.third, column), verb.prefix, ""


@cache
def _finite(infinitive: str, third: str, column: str) -> str:
    if infinitive in _FINITE:
        return _FINITE[infinitive][COLUMNS.index(column)]
    if column == "ich":
        stem = re.sub("eln$", "l", infinitive)
        return (infinitive if infinitive.endswith("ern") else stem).removesuffix("n").removesuffix("e") + "e"
    return {"du": re.sub("(?<![sßxz])t$", "st", third), "er": third, "wir": infinitive}[column]


def spaced(*parts: str) -> str:
    """Join what is not empty with spaces."""
    return " ".join(part for part in parts if part)
