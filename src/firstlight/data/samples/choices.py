"""Sample of multiple choice: a short story and four possible endings, of which one is correct.

A story tells what somebody works on and what the weather is like. The endings combine two kinds of work with two kinds
of weather, and the correct one has both of the story. Any of the four is equally likely to be correct, so the endings
alone say nothing about the answer. A network that understands one of the two facts chooses among two endings.
"""

import random
from collections.abc import Iterator

from firstlight.data.samples.grammar import load

VERSION = 1  # increased when the generated text changes, so that caches are not reused
SPLITS = {"train": 6_000, "validation": 600, "test": 600}
FACTS = ("work", "weather")
ENDINGS = ("ending_a", "ending_b", "ending_c", "ending_d")

Row = dict[str, str | int]

_DATA = load("choices")


def splits(seed: int = 0) -> dict[str, list[Row]]:
    """Return train, validation and test rows. No story occurs twice, within a split or across splits."""
    written: set[str] = set()
    return {
        name: list(_rows(num_rows, random.Random(f"choices {seed} {name}"), written))
        for name, num_rows in SPLITS.items()
    }


def _rows(num_rows: int, rng: random.Random, written: set[str]) -> Iterator[Row]:
    """Yield rows {"context", "ending_a", …, "label"}. The label is the number of the correct ending, from 0."""
    labels = [index % len(ENDINGS) for index in range(num_rows)]
    rng.shuffle(labels)
    for label in labels:
        row = _row(label, rng)
        while row["context"] in written:
            row = _row(label, rng)
        written.add(str(row["context"]))
        yield row


def _row(label: int, rng: random.Random) -> Row:
    name = rng.choice(_DATA["names"])
    works, weathers = (rng.sample(list(_DATA[fact]), 2) for fact in FACTS)
    offered = [(work, weather) for work in works for weather in weathers]
    rng.shuffle(offered)
    endings = (f"{name} has {_ending(*each, rng)}." for each in offered)
    return {"context": _story(name, *offered[label], rng), **dict(zip(ENDINGS, endings, strict=True)), "label": label}


def _story(name: str, work: str, weather: str, rng: random.Random) -> str:
    """Return sentences about the work, the weather and something else, in any order."""
    sentences = [
        f"{name} {rng.choice(_DATA['work'][work]['context'])}.",
        rng.choice(_DATA["weather"][weather]["context"]),
        rng.choice(_DATA["asides"]),
    ]
    rng.shuffle(sentences)
    return " ".join(sentences)


def _ending(work: str, weather: str, rng: random.Random) -> str:
    """Return the end of an ending, such as "a fresh cake and wet shoes"."""
    return " and ".join(
        rng.choice(_DATA[fact][name]["ending"]) for fact, name in zip(FACTS, (work, weather), strict=True)
    )
