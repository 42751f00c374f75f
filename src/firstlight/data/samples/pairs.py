"""Sample sentences in English and German, generated from the grammar in pairs.toml and the words in pair_words.toml.

The content of a sentence is drawn once and then expressed by two grammars. German has genders, cases and endings, moves
the verb and separates its prefix, has another order of time and place, and chooses words by their context. Therefore a
translation word by word is mostly wrong. The German sentence is a function of the English one.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from firstlight.data.samples import pair_words as words
from firstlight.data.samples.grammar import capitalized, items, read, with_articles
from firstlight.data.samples.pair_words import CASES, Pair, spaced

VERSION = 3  # increased when the generated text changes, so that caches are not reused
SPLITS = {"train": 12_000, "validation": 1_000, "test": 1_000}
MIN_WORDS, MAX_WORDS = 3, 20  # of each side

COMPOUND_SHARE = 0.1
OWNED_SHARE, WOMANS_SHARE = 0.3, 0.8  # of objects that may have a possessive; of those where only "her" shows a woman

Spec = dict[str, Any]  # an alternative in pairs.toml
T = TypeVar("T")

RULES: dict[str, Any] = read("pairs")


def splits(seed: int = 0) -> dict[str, list[dict[str, Any]]]:
    """Return train, validation and test rows {"en", "de"}. No English sentence occurs twice."""
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


class Forms(dict[str, str]):
    """The forms of a part: `{thing:acc}` reads "acc", `{thing}` reads "". A missing form is the form ""."""

    def __missing__(self, form: str) -> str:
        return self[""]


@dataclass(frozen=True)
class Part:
    """The words of a slot in both languages, with their grammatical properties."""

    en: Forms
    de: Forms
    pronoun: str = "they"  # I, you, he, she, it, we or they
    gender: str = "p"  # the gender in German, p for the plural
    kind: str = ""  # the kind of noun
    is_definite: bool = True
    is_woman: bool = False  # which only a later "her" shows in English
    slots: "Mapping[str, Part]" = field(default_factory=dict)

    @property
    def row(self) -> dict[str, str]:
        """The row of its pronoun in German. The pronoun of a girl, a neuter noun in German, is "sie"."""
        natural = {"he": "m", "she": "f"}.get(self.pronoun, self.gender)
        return words.GERMAN_PRONOUNS.get(self.pronoun) or words.GERMAN_PRONOUNS[natural]


class Slots(dict[str, Part]):
    """The slots of one alternative, drawn when first read. A slot may name another one, here or in the outer slots."""

    def __init__(self, writer: "Writer", spec: Spec, around: "Slots | None") -> None:
        super().__init__()
        self.writer, self.spec, self.around = writer, spec, around

    def __missing__(self, slot: str) -> Part:
        spec = self.spec.get(slot, slot)
        part = self.find(spec, asking=slot) if isinstance(spec, str) else None
        if part is None:
            part = self.writer.draw(spec, self)
            while part.kind and part.en in [other.en for other in self.values()]:  # "the man is older than the man"
                part = self.writer.draw(spec, self)
        self[slot] = part
        return part

    def find(self, name: str, asking: str = "") -> Part | None:
        """Return the part with that name, here or in the outer slots. "main.thing" is the thing of the main clause."""
        first, _, inner = name.partition(".")
        if first != asking and (first in self or first in self.spec):
            return self[first].slots[inner] if inner else self[first]
        return self.around.find(name) if self.around is not None else None

    def found(self, name: str) -> Part:
        part = self.find(name)
        assert part is not None, f"no slot {name} in or around {self.spec}"
        return part

    def fill(self, pattern: str) -> Pair:
        """Return both sides of a pattern "English | German", filled."""
        english, german = pattern.split("|")
        return self.fill_one("en", english), self.fill_one("de", german)

    def fill_one(self, language: str, pattern: str) -> str:
        filled = _SLOT.sub(lambda slot: getattr(self[slot[1]], language)[slot[2]], pattern)
        return spaced(*filled.split())


_SLOT = re.compile(r"\{(\w+):?(\w*)\}")


def _part(english: str, german: str) -> Part:
    return Part(Forms({"": english}), Forms({"": german}))


_NOTHING = _part("", "")


class Writer:
    """Generator of sentences from the rules."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def sentence(self, rule: str = "sentence") -> Pair:
        """Return a sentence, or a part of one, drawn by its rule."""
        part = self.draw(rule, None)
        return _tidied(with_articles(part.en[""])), _tidied(_MERGING.sub(lambda found: _MERGED[found[0]], part.de[""]))

    def one_of(self, choices: Sequence[T]) -> T:
        """Return a random choice. The k-th has a frequency of about 1/k, as in Zipf's law."""
        return choices[min(int((len(choices) + 1) ** self.rng.random()), len(choices)) - 1]

    def happens(self, share: float) -> bool:
        return self.rng.random() < share

    def draw(self, spec: Spec | str, around: Slots | None) -> Part:
        """Return a part drawn from an alternative, a list or a rule. Parts that do not fit are drawn again."""
        if spec == "":
            return _NOTHING
        if isinstance(spec, str):
            if spec in words.LISTS:
                return _part(*self.one_of(words.LISTS[spec]))
            spec = {"of": spec}
        part = None
        while part is None:
            chosen = spec
            while "of" in chosen:
                alternatives = RULES[chosen["of"]]
                (alternative,) = self.rng.choices(alternatives, [each["weight"] for each in alternatives])
                chosen = alternative | {key: value for key, value in chosen.items() if key not in ("of", "weight")}
            part = self._built(chosen, around)
        return part

    def _built(self, spec: Spec, around: Slots | None) -> Part | None:
        if "verbs" in spec:
            return self._clause(Slots(self, RULES["clause"] | spec, around))
        slots = Slots(self, spec, around)
        if "nouns" in spec:
            return self._noun_phrase(RULES["noun_phrase"] | spec, slots)
        if "whole" in spec:
            return _whole_clause(*self.one_of(words.LISTS[spec["whole"]]))
        if "pronoun" in spec:
            pronoun, gender = spec["pronoun"].split()
            return _pronoun(Part(Forms(), Forms(), pronoun, gender, "people"))
        if "it" in spec:
            return _pronoun(slots.found(spec["it"]))
        if "trait_of" in spec:
            traits = words.KINDS[slots.found(spec["trait_of"]).kind]["adjectives"]
            english, german = self.one_of([each for each in traits if "gradable" not in spec or each[0][0] != "!"])
            return _part(english.lstrip("!"), german)
        return _composed(spec, slots)

    # Noun phrases

    def _noun_phrase(self, spec: Spec, slots: Slots) -> Part:
        name = self.rng.choice(spec["nouns"].split())
        kind = words.KINDS[name]
        noun = self.one_of(kind["nouns"])
        if kind["compounds"] and " " not in noun.english and self.happens(COMPOUND_SHARE):
            noun = noun.compounded(*self.one_of(kind["compounds"]))
        is_plural = noun.german_plural and not noun.pair and self.happens(spec["plural"])
        number = "plural" if is_plural else "singular" if noun.german_plural else "mass"
        owner = slots.find(spec["owner"]) if "owner" in spec and "owned" in kind else None
        if owner and owner.kind != "animals" and self.happens(WOMANS_SHARE if owner.is_woman else OWNED_SHARE):
            english, german = words.ENGLISH_PRONOUNS[owner.pronoun]["possessive"], owner.row["possessive"]
        else:
            english, german = self._determiner(words.determiners(spec["determiners"], number))
        if noun.pair and english == "a":
            english = ""
        if "negated" in spec and german in ("ein", ""):
            german = "kein"
        adjectives = self._adjectives(kind, spec["adjectives"])
        gender, pronoun = ("p", "they") if is_plural else (noun.gender, "they" if noun.pair else noun.pronoun)
        bare = spaced(*(one for one, _ in adjectives), noun.english_plural if is_plural else noun.english)
        cases = words.declined(noun, german, [one for _, one in adjectives], gender)
        return Part(
            Forms({"": spaced(english, bare), "bare": bare, "is": words.ENGLISH_PRONOUNS[pronoun]["be"]}),
            Forms({**cases, "": cases["nom"], "who": words.DEFINITE[gender][0]}),
            *(pronoun, gender, name),
            is_definite=german.partition(" ")[0] in words.DEFINITE_STEMS,
            is_woman="woman" in spec,
        )

    def _determiner(self, choices: Sequence[Pair]) -> Pair:
        english, german = self.rng.choice(choices)
        number = self.one_of(words.LISTS["numbers"]) if "#" in german else ("", "")
        return english.replace("#", number[0]), german.replace("#", number[1])

    def _adjectives(self, kind: Spec, share: float) -> list[Pair]:
        if not self.happens(share):
            return []
        english, german = self.one_of(kind["adjectives"])
        drawn = [(english.lstrip("!"), german)]
        if "colors" in kind:
            color = self.one_of(words.LISTS["colors"])
            drawn = self.rng.choice([drawn, [color], [color], [*drawn, color]])
        return drawn

    # Clauses

    def _clause(self, slots: Slots) -> Part | None:
        spec = slots.spec
        tense, _, time = self.rng.choice(items(spec["tense"])).partition(" ")
        spec["time"] = time or spec["time"]
        verb = self.one_of(words.verbs(spec["verbs"]))
        subject, adverb = slots["subject"], slots["adverb"]
        is_negated = tense == "progressive" and "object" in spec and self.happens(spec["negation"])
        if is_negated or not self.happens(spec["place"]):
            slots["where"] = _NOTHING
        slots["not"] = _NOTHING
        if "object" in spec:
            thing = {"nouns": spec["object"], "determiners": spec["determiners"], "owner": "subject"}
            slots["thing"] = _governed(self.draw(thing | {"negated": True} if is_negated else thing, slots), verb)
            if is_negated and not slots["thing"].de["acc"].startswith("kein"):
                slots["not"] = _part("", "nicht")
        tail, middle = slots.fill(spec["says"])
        if not verb.fits(tense) or (subject.is_woman and not re.search(r"\bher\b", tail)):
            return None
        modals = [modal for modal in words.LISTS["modals"] if subject.pronoun != "you" or " " not in modal[0]]
        modal = self.one_of(modals)
        row, pronoun = subject.row, subject.pronoun
        english = words.english_verb(verb, tense, pronoun, adverb.en[""], modal[0], is_negated=is_negated)
        finite, prefix, last = words.german_verb(verb, tense, row["column"], modal[1])
        middle = spaced(row["reflexive"] if verb.reflexive else "", adverb.de[""], middle)
        return _arranged(subject, *english, tail, (finite, middle, prefix, last), slots)


def _governed(thing: Part, verb: words.Verb) -> Part:
    """Return the object of a verb with the forms "known" and "new"."""
    german = spaced(verb.preposition, thing.de["dat" if verb.government == "D" else "acc"])
    is_known = thing.is_definite and not verb.preposition
    return replace(
        thing, de=Forms({**thing.de, "known" if is_known else "new": german, "new" if is_known else "known": ""})
    )


def _arranged(
    subject: Part, asked: Pair, stated: Pair, tail: str, german: tuple[str, str, str, str], slots: Mapping[str, Part]
) -> Part:
    """Return a clause with the word order of each of its forms."""
    (auxiliary, rest), (verb, more) = asked, stated
    finite, middle, prefix, last = german
    who, wer = subject.en[""], subject.de["nom"]
    english = {
        "": spaced(who, verb, more, tail),
        "asked": spaced(auxiliary, who, rest, tail),
        "rest": spaced(verb, more, tail),
        "front": spaced(tail, verb, who),
    }
    end = spaced(middle, last, prefix + finite)
    orders = {
        "": spaced(wer, finite, middle, prefix, last),
        "inverted": spaced(finite, wer, middle, prefix, last),
        "last": spaced(wer, end),
        "relative": end,
        "rest": spaced(finite, middle, prefix, last),
        "front": spaced(middle, finite, wer),
    }
    return Part(Forms(english), Forms(orders), slots=slots)


def _whole_clause(english: str, german: str) -> Part:
    (who, verb, rest), (wer, finite, middle) = (
        [part.strip() for part in re.split(r"\*(\S+)", text)] for text in (english, german)
    )
    prefix = middle.removesuffix("-") if middle.endswith("-") else ""
    subject = _part(who, wer)
    order = finite, "" if prefix else middle, prefix, ""
    return _arranged(subject, (verb, rest), (verb, rest), "", order, {})


def _pronoun(of: Part) -> Part:
    """Return the pronoun of a part. German pronouns of things and animals follow the gender of the noun."""
    english, row = words.ENGLISH_PRONOUNS[of.pronoun], of.row
    return replace(
        of,
        en=Forms({"": of.pronoun, "him": english["object"], "is": english["be"]}),
        de=Forms({"": row["nom"], **{case: row[case] for case in CASES[:3]}}),
        is_definite=True,
        is_woman=False,
    )


def _composed(spec: Spec, slots: Slots) -> Part | None:
    """Return a text, or a noun phrase whose slots without a form have its case."""
    if "unlike" in spec:
        one, other = (slots.found(name) for name in spec["unlike"].split())
        if one.pronoun == other.pronoun:
            return None
    text = _part(*slots.fill(spec["says"]))
    if "head" not in spec:
        return replace(text, slots=slots)
    head = slots[spec["head"]]
    _, german = spec["says"].split("|")
    cases = {case: slots.fill_one("de", re.sub(r"\{(\w+)\}", rf"{{\1:{case}}}", german)) for case in CASES}
    return replace(head, en=Forms({**head.en, **text.en}), de=Forms({**head.de, **cases, **text.de}))


# Spelling

_MERGED = {"in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans", "zu dem": "zum", "zu der": "zur"}
_MERGED |= {"bei dem": "beim", "von dem": "vom"}
_MERGING = re.compile(rf"\b(?:{'|'.join(_MERGED)})\b")


def _tidied(text: str) -> str:
    """Return a text with a capital first letter and without superfluous commas."""
    return capitalized(re.sub(r",+(?=[,.?!])", "", re.sub(" +,", ",", text)))
