"""The generated pairs are reproducible, have correct German agreement, and need more than a dictionary."""

import hashlib
import random
import re
from collections import Counter, defaultdict
from typing import Any
from unittest.mock import patch

import pytest
from sacrebleu.metrics import BLEU

from firstlight.data.samples import pairs
from firstlight.data.samples.pairs import MAX_WORDS, MIN_WORDS, SPLITS, VERSION, Writer, splits

# An independent list, which finds a wrong gender in the lexicon
MASCULINE = (
    "Mann Junge Jungen Lehrer Freund Spieler Arzt Vater Hund Vogel Bär Affe Ball Apfel Kuchen Rock Mantel Hut Helm "
)
MASCULINE += "Tisch Stuhl Schlüssel Brief Löffel Koffer Eimer Baum Turm Zug Bus Park Garten Strand Computer Kaffee Korb"
FEMININE = (
    "Frau Mutter Schwester Ärztin Lehrerin Katze Kuh Ente Maus Jacke Hose Bluse Mütze Brille Zeitung Flasche Tasse "
)
FEMININE += "Tasche Vase Puppe Banane Suppe Milch Tür Lampe Blume Gitarre Kirche Brücke Bank Küche Straße Stadt Gabel"
NEUTER = "Mädchen Kind Baby Pferd Schaf Kaninchen Hemd Kleid Kissen Messer Handtuch Ei Brot Wasser Auto Fahrrad Boot "
NEUTER += "Fenster Haus Schloss Bett Sofa Regal Buch Gedicht Bild Foto Klavier Radio Sandwich Telefon Hotel"
GENDERS = {"m": set(MASCULINE.split()), "f": set(FEMININE.split()), "n": set(NEUTER.split())}

PREFIXES = {"hört": "zu auf", "steigt": "ein aus auf", "hebt": "auf", "schaltet": "ein aus", "bereitet": "zu"}
PREFIXES |= {"ruht": "aus", "räumt": "auf"}


PART = {"train": 1_800, "validation": 150, "test": 150}  # 0.4 s instead of 2.8 s


@pytest.fixture(scope="module", params=[PART, pytest.param(SPLITS, marks=pytest.mark.slow)], ids=["part", "whole"])
def parts(request: pytest.FixtureRequest) -> dict[str, list[dict[str, Any]]]:
    with patch.object(pairs, "SPLITS", request.param):
        return splits()


@pytest.fixture(scope="module")
def rows(parts) -> list[dict[str, Any]]:
    return [row for part in parts.values() for row in part]


# It can change only with the text whose digest is pinned below.
of_the_whole_text = pytest.mark.parametrize(
    "parts", [pytest.param(SPLITS, marks=pytest.mark.slow)], ids=["whole"], indirect=True
)


def tokens(text: str) -> list[str]:
    return re.findall(r"[\w'-]+|[^\w\s]", text)


@pytest.mark.slow  # 0.8 s; the text of seed 0 is pinned below
def test_the_same_seed_gives_the_same_pairs_and_another_seed_others(monkeypatch):
    monkeypatch.setattr(pairs, "SPLITS", {"train": 1_201, "validation": 101, "test": 101})
    first, again, others = (splits(seed) for seed in (0, 0, 1))
    assert first == again
    sentences, other_sentences = ({row["en"] for row in each["train"]} for each in (first, others))
    assert len(other_sentences - sentences) > 0.9 * 1_201


def test_text_that_changes_needs_a_new_version(parts, rows):
    digest = hashlib.sha256(repr(rows).encode()).hexdigest()[:16]
    expected = "7cd2065f090510ac" if len(parts["train"]) == SPLITS["train"] else "d6c5049b714e800e"
    assert (VERSION, digest) == (3, expected), (
        "raise VERSION, so that no cache keeps the old text, then pin both digests"
    )


def test_no_english_sentence_occurs_twice_within_or_across_splits(parts, rows):
    assert {name: len(part) for name, part in parts.items()} in (PART, SPLITS)
    assert SPLITS == {"train": 12_000, "validation": 1_000, "test": 1_000}
    assert len({row["en"] for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("num_seeds", "num_draws", "num_repeated"),
    [
        (1, 3_000, 5),
        *(  # more draws from the same rules
            pytest.param(num_seeds, 10_000, num_repeated, marks=pytest.mark.slow)
            for num_seeds, num_repeated in ((1, 50), (3, 300))
        ),
    ],
)
def test_an_english_sentence_has_one_translation(num_seeds, num_draws, num_repeated):
    """The draws repeat many sentences, and all repetitions must have the same translation."""
    translations = defaultdict(set)
    for seed in range(num_seeds):
        writer = Writer(random.Random(seed))
        for _ in range(num_draws):
            english, german = writer.sentence()
            translations[english].add(german)
    assert len(translations) < num_draws * num_seeds - num_repeated
    assert not [item for item in translations.items() if len(item[1]) > 1]


def test_sentences_start_with_a_capital_end_with_a_mark_and_have_3_to_20_words(rows):
    texts = [row[language] for row in rows for language in ("en", "de")]
    assert not [text for text in texts if not re.fullmatch(r"[A-ZÄÖÜ][\w ,'-]*\w[.?!]", text)]
    assert not [text for text in texts if re.search(r"  | ,|,,|,\S", text)]
    lengths = sorted(len(text.split()) for text in texts)
    assert lengths[0] >= MIN_WORDS == 3
    assert lengths[-1] <= MAX_WORDS == 20
    assert 6 <= lengths[len(lengths) // 2] <= 10
    assert all(row["en"][-1] == row["de"][-1] for row in rows)
    assert {row["en"][-1] for row in rows} == set(".?!")


def test_english_articles_and_verbs_agree(rows):
    wrong = re.compile(
        r"\b[Aa] [aeio]|\b[Aa]n [^aeiou]|\bI (?:is|are|has)\b|\b(?:[Hh]e|[Ss]he) (?:am|are|want|like|know)\b"
        r"|\b(?:[Tt]hey|[Ww]e) (?:am|is|wants|likes|knows)\b|^(?:An?|Every) \w+ (?:are|were)\b"
        r"|^(?:Two|Many|Some) \w+ (?:is|was)\b"
    )
    assert not [row["en"] for row in rows if wrong.search(row["en"])]


# The determiner, the ending of its adjectives, and the possible genders
AGREEMENT = [
    (r"(?:[ms]?einen|ihren|unseren|diesen) (?:\w+en )*", "m"),
    (r"Jeder (?:[a-zäöüß]+e )*", "m"),
    (r"(?:[Ee]in|[MSms]ein|[Ii]hr|[Uu]nser) (?:[a-zäöüß]+er )+", "m"),
    (r"(?:[Ee]in|[MSms]ein|[Ii]hr|[Uu]nser) (?:[a-zäöüß]+es )+", "n"),
    (r"(?:Das|[Dd]ieses|[Jj]edes) (?:[a-zäöüß]+e )*", "n"),
    (r"[Ee]ine (?:[a-zäöüß]+e )*", "f"),
    (r"(?:im|am|zum|einem|diesem) (?:[a-zäöüß]+en )*", "mn"),
    (r"(?:zur|einer) (?:[a-zäöüß]+en )*", "f"),
]


@of_the_whole_text
@pytest.mark.parametrize(("determiner", "genders"), AGREEMENT)
def test_german_determiners_and_adjectives_agree_with_the_gender_of_the_noun(rows, determiner, genders):
    """Nouns that are not in a list are not checked, and plurals are not in the lists."""
    nouns = [noun for row in rows for noun in re.findall(rf"\b{determiner}([A-ZÄÖÜ]\w+)", row["de"])]
    known = [noun for noun in nouns if any(noun in group for group in GENDERS.values())]
    assert len(known) > 30
    allowed = set().union(*(GENDERS[gender] for gender in genders))
    assert not [noun for noun in known if noun not in allowed]


@pytest.mark.parametrize(
    "wrong",
    [
        r"\bein(?:en|em|er|e)? [a-zäöüß]+(?:tt|ng|in|ld|ut|ot|au|oß|lt) [A-ZÄÖÜ]",  # no ending
        r"\beinem [a-zäöüß]+(?:e|er|es) [A-ZÄÖÜ]",
        r"^(?:Eine?|Er|Sie) (?:[a-zA-Zäöüß]+ )?(?:trägt|wirft|hält|sucht|kauft|isst|öffnet|repariert|wäscht) der\b",
        r"\b(?:mit|von|aus|zu|nach) (?:die|das|ein|eine|einen) [A-ZÄÖÜ]",  # these take the dative
        r"\b(?:in|an|zu|bei|von) dem\b|\b(?:in|an) das\b|\bzu der\b",  # these merge
        r"\b(?:hilft|helfen|folgt|folgen|dankt|danken) (?:den|das|die|einen|eine|ein) \w+[^n][.]",
        r"\b(?:einen|dem|den|des) (?:Junge|Student|Bär|Affe|Löwe|Polizist)\b",  # weak nouns
        r"\b(?:mit|von|zu) (?:zwei|drei|vier|einigen|vielen) [A-ZÄÖÜ]\w*[^ns\W]\b",  # the dative plural
    ],
)
def test_no_german_sentence_breaks_a_rule(rows, wrong):
    assert not [row["de"] for row in rows if re.search(wrong, row["de"])]


@of_the_whole_text
def test_the_prefix_of_a_separable_verb_ends_the_clause(rows):
    found = Counter()
    for row in rows:
        for verb, ending in re.findall(rf"\b({'|'.join(PREFIXES)})\b([^.?!]*)", row["de"]):
            words = re.split(r", (?:aber|und|weil|während|obwohl|wenn|dass|sobald|wo)\b|$", ending)[0].split()
            found[verb] += bool(words) and words[-1].strip(",") in PREFIXES[verb].split()
            found["all " + verb] += 1
    assert all(found["all " + verb] > 5 for verb in PREFIXES)
    kept = {verb: found[verb] / found["all " + verb] for verb in PREFIXES}
    assert min(kept.values()) == 1, kept


@of_the_whole_text
@pytest.mark.parametrize("conjunction", ["weil", "während", "obwohl", "dass"])
def test_the_verb_ends_a_subordinate_clause(rows, conjunction):
    clauses = [row["de"][:-1].split(f" {conjunction} ")[1] for row in rows if f", {conjunction} " in row["de"]]
    assert len(clauses) > 100
    assert not [clause for clause in clauses if not re.search(r"(?:t|en|n|d|ß|ag|kann|muss|soll)$", clause)]
    assert not [clause for clause in clauses if re.search(r"\b(?:ist|sind|wirft|trägt|isst) [a-zäöüß]+$", clause)]


@of_the_whole_text
@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("put the bottle", "stell"),
        ("put the book", "leg"),
        ("putting (?:a|the) (?:mug|bottle|box)", "stell"),
        ("know the", "[Kk]enn"),
        ("know that", "[Ww]eiß|wissen"),
        ("know where", "[Ww]eiß|wissen"),
        ("wearing her [a-z ]*jacket", "ihre .*[Jj]acke"),
        ("her helmet", "ihren .*Helm"),
        ("his trousers", "seine .*Hose"),
        ("(?:man|boy) is eating", "isst"),
        ("(?:dog|cat) is eating", "frisst"),
        ("tall (?:tower|house)", "h[oö][hc]"),
        ("tall (?:man|woman)", "groß"),
        ("light (?:box|bag|table|ball|doll|book)", "leicht"),
        ("because they are", "sie .*(?:ist|sind)"),
        ("likes to", "gern"),
    ],
)
def test_what_a_word_means_depends_on_its_neighbors(rows, english, german):
    found = [row["de"] for row in rows if re.search(rf"\b{english}\b", row["en"])]
    assert len(found) > 2
    assert not [text for text in found if not re.search(german, text)]


@pytest.fixture(scope="module")
def of_things() -> list[tuple[str, str]]:
    writer = Writer(random.Random(1))
    return [writer.sentence("because_of_a_thing") for _ in range(4_000)]


@pytest.mark.slow  # 1 s; it can change only with the text that is pinned above
@pytest.mark.parametrize(("thing", "pronoun"), [("key", "er"), ("lamp", "sie"), ("book", "es"), ("jacket", "sie")])
def test_the_pronoun_of_a_thing_follows_its_german_gender(of_things, thing, pronoun):
    found = [german for english, german in of_things if re.search(rf"the {thing} (?:because|although) it is", english)]
    assert len(found) > 2
    assert not [german for german in found if not re.search(rf"(?:weil|obwohl) {pronoun}\b", german)]


def test_words_vary_and_many_are_rare(parts, rows):
    for language, least in (("en", 700), ("de", 1_300)):
        counts = Counter(word for row in rows for word in tokens(row[language].lower()))
        assert len(counts) > least
        assert sum(count < 10 for count in counts.values()) > len(counts) / 4
        known = {word for row in parts["train"] for word in tokens(row[language].lower())}
        unseen = [word for row in parts["test"] for word in tokens(row[language].lower()) if word not in known]
        assert 0 < len(unseen) < 0.02 * sum(len(tokens(row[language])) for row in parts["test"])


# 1.6 s; the text whose difficulty it measures is pinned by test_text_that_changes_needs_a_new_version
@pytest.mark.slow
def test_a_dictionary_translates_badly(parts):
    """The dictionary has the most probable German word of each English one by IBM's first model on 4,000 pairs."""
    pairs = [(tokens(row["en"]), tokens(row["de"])) for row in parts["train"][:4_000]]
    likely: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(lambda: 1.0))
    for _ in range(5):
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for english, german in pairs:
            for target in german:
                total = sum(likely[source][target] for source in english)
                for source in english:
                    counts[source][target] += likely[source][target] / total
        for source, targets in counts.items():
            total = sum(targets.values())
            likely[source] = defaultdict(float, {target: count / total for target, count in targets.items()})
    dictionary = {source: max(targets, key=targets.__getitem__) for source, targets in likely.items()}
    outputs = [" ".join(dictionary.get(word, word) for word in tokens(row["en"])) for row in parts["test"]]
    references = [row["de"] for row in parts["test"]]
    bleu = BLEU().corpus_score(outputs, [references]).score
    assert 5 < bleu < 35, bleu
    assert BLEU().corpus_score(references, [references]).score > 99
