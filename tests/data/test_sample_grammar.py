"""The data files of the samples: their notation and their references."""

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from firstlight.data.samples import english, pair_words, pairs
from firstlight.data.samples.grammar import Words, front_first, items, load, with_articles

SLOT = re.compile(r"\{(\w+)")


def texts(value: Any) -> Iterator[str]:
    """Yield every text of a data file."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


def specs(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every alternative of the rules of the pairs, and those inside of it."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from specs(inner)


def test_items_are_split_at_lines_and_at_spaced_slashes():
    assert items("a / b c\n d/e,\nf") == ("a", "b c", "d/e,", "f")
    assert items("x") == ("x",)


def test_a_slot_is_filled_anew_unless_it_is_given():
    words = Words(random.Random(0), {"n": ("cat", "dog", "{a} cow"), "a": ("red",)}, {"who": "Ann"})
    assert {words.fill("{who} sees the {n}") for _ in range(100)} == {
        "Ann sees the cat",
        "Ann sees the dog",
        "Ann sees the red cow",
    }


def test_the_front_of_a_list_is_drawn_most():
    rng = random.Random(0)
    drawn = [front_first(("a", "b", "c"), rng, 2) for _ in range(1_000)]
    assert drawn.count("a") > drawn.count("b") > drawn.count("c") > 100


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a apple", "an apple"),
        ("a honest man", "an honest man"),
        ("a useful egg", "a useful egg"),
        ("A old horse", "An old horse"),
        ("a jar of honey, a honey", "a jar of honey, a honey"),
        ("a uniform", "a uniform"),
    ],
)
def test_an_stands_before_a_vowel(text, written):
    assert with_articles(text) == written


@pytest.mark.parametrize(
    ("noun", "plural"),
    [
        ("lady", "ladies"),
        ("toy", "toys"),
        ("kitchen knife", "kitchen knives"),
        ("tomato", "tomatoes"),
        ("box", "boxes"),
    ],
)
def test_plurals(noun, plural):
    assert english.plural(noun) == plural


@pytest.mark.parametrize(
    ("verb", "third", "past", "ing"),
    [
        ("carry", "carries", "carried", "carrying"),
        ("beg", "begs", "begged", "begging"),
        ("write", "writes", "wrote", "writing"),
        ("flee", "flees", "fled", "fleeing"),
        ("lie", "lies", "lay", "lying"),
    ],
)
def test_verbs(verb, third, past, ing):
    assert (english.third(verb), english.past(verb)[0], english.ended(verb, "ing")) == (third, past, ing)


def test_every_slot_of_the_reviews_names_a_list():
    data = load("reviews")
    slots = {slot for text in texts(data) for slot in SLOT.findall(text)}
    for product in data["products"]:
        assert slots <= data["words"].keys() | product.keys() | {"aspect", "statement", "concession"}


def test_whatever_the_rules_of_the_pairs_name_exists():
    rules = [spec for spec in specs(pairs.RULES) if spec is not pairs.RULES]
    names = pairs.RULES.keys() | pair_words.LISTS.keys()
    slots = {key for spec in rules for key in spec}
    assert {spec["of"] for spec in rules if "of" in spec} <= pairs.RULES.keys()
    assert {kind for spec in rules for kind in spec.get("nouns", "").split()} <= pair_words.KINDS.keys()
    assert {kind for spec in rules for kind in spec.get("object", "").split()} <= pair_words.KINDS.keys()
    assert {spec["whole"] for spec in rules if "whole" in spec} <= pair_words.LISTS.keys()
    assert {slot for spec in rules for slot in SLOT.findall(spec.get("says", ""))} <= names | slots | {"not"}
    times = {entry.partition(" ")[2] for spec in rules for entry in items(spec.get("tense", ""))}
    assert times - {""} <= names
    assert all(spec["says"].count("|") == 1 for spec in rules if "says" in spec)
    found = [pair_words.verbs(spec["verbs"]) for spec in rules if "verbs" in spec]
    assert sum(map(len, found)) > 150


@pytest.mark.parametrize("entry", ["throw = werfen, geworfen", "throw = mit D werfen, wirft, geworfen", "throw"])
def test_a_verb_in_another_notation_is_named(entry):
    with pytest.raises(AssertionError, match="is not in the notation"):
        pair_words.verbs(entry)


def test_every_rule_of_the_pairs_is_used():
    used = {spec.get("of") for spec in specs(pairs.RULES)} | {
        value for spec in specs(pairs.RULES) for value in spec.values() if isinstance(value, str)
    }
    used |= {entry.partition(" ")[2] for spec in specs(pairs.RULES) for entry in items(spec.get("tense", ""))}
    used |= {slot for text in texts(pairs.RULES) for slot in SLOT.findall(text)}
    assert pairs.RULES.keys() - used == {"sentence", "clause", "noun_phrase"}
