"""Sample of pairs of sentences: whether a premise entails a hypothesis, contradicts it, or neither.

A premise has two of three facets of a scene (what somebody does, where, and when), each in words of one of four
classes. A hypothesis states one class of one facet. It is neutral if the premise does not have that facet. Neither
sentence has any information about the label: the hypothesis is drawn independently of the label, and every premise is
as likely with each label. Therefore a network must compare the two sentences.
"""

import random
from collections.abc import Iterator

from firstlight.data.samples.grammar import capitalized, load

VERSION = 2  # increased when the generated text changes, so that caches are not reused
SPLITS = {"train": 6_000, "validation": 600, "test": 600}
LABELS = ("contradiction", "entailment", "neutral")
FACETS = ("doing", "place", "time")

Pair = dict[str, str]

_DATA = load("entailment")


def splits(seed: int = 0) -> dict[str, list[Pair]]:
    """Return train, validation and test pairs. No premise occurs twice, within a split or across splits."""
    written: set[str] = set()
    return {
        name: list(_pairs(num_pairs, random.Random(f"entailment {seed} {name}"), written))
        for name, num_pairs in SPLITS.items()
    }


def _pairs(num_pairs: int, rng: random.Random, written: set[str]) -> Iterator[Pair]:
    """Yield pairs {"premise", "hypothesis", "label"} with equally many of each label."""
    labels = [LABELS[index % len(LABELS)] for index in range(num_pairs)]
    rng.shuffle(labels)
    for label in labels:
        pair = _pair(label, rng)
        while pair["premise"] in written:
            pair = _pair(label, rng)
        written.add(pair["premise"])
        yield pair


def _pair(label: str, rng: random.Random) -> Pair:
    facet = rng.choice(FACETS)
    stated = rng.choice(list(_DATA[facet]))
    others = [name for name in FACETS if name != facet]
    classes = {name: rng.choice(list(_DATA[name])) for name in others}
    if label != "neutral":
        del classes[rng.choice(others)]
        different = [name for name in _DATA[facet] if name != stated]
        classes[facet] = stated if label == "entailment" else rng.choice(different)
    return {"premise": _premise(classes, rng), "hypothesis": _hypothesis(facet, stated, rng), "label": label}


def _premise(classes: dict[str, str], rng: random.Random) -> str:
    """Return a sentence about a scene. classes: the class of each facet that it names."""
    subject = rng.choice(_DATA["subjects"])
    parts = {facet: rng.choice(_DATA[facet][name]["premise"]) for facet, name in classes.items()}
    doing = parts.pop("doing", "is seen")
    around = [parts[facet] for facet in FACETS if facet in parts]
    rng.shuffle(around)
    is_first = rng.random() < 0.3  # "At dawn, a baker plays the guitar."
    opening = f"{around.pop(0)}, " if is_first else ""
    return capitalized(f"{opening}{' '.join([subject, doing, *around])}.")


def _hypothesis(facet: str, stated: str, rng: random.Random) -> str:
    """Return a sentence that states one class of a facet."""
    claim = rng.choice(_DATA[facet][stated]["hypothesis"])
    verb = "" if facet == "doing" else "is " if facet == "place" else "does this "
    return f"The person {verb}{claim}."
