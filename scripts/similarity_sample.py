"""Write the generated sample `similarity`: pairs of sentences about the same occupation, or about two.

  python scripts/similarity_sample.py src/firstlight/data/samples/similarity

A sentence says who does what to which thing, when and where. What is done to which thing belongs to one of six
occupations. The sentences of a similar pair belong to the same one, in different words as often as in the same.
Neither sentence alone tells the label, and persons, times and places say nothing.
"""

import bz2
import json
import random
import sys
from pathlib import Path

OCCUPATIONS = {
    "cooking": (("stirs", "tastes", "serves", "salts"), ("soup", "stew", "sauce", "dough")),
    "gardening": (("waters", "plants", "prunes", "picks"), ("roses", "beans", "apple trees", "tulips")),
    "music": (("tunes", "plays", "practises on", "strums"), ("guitar", "piano", "violin", "cello")),
    "crafts": (("saws", "sands", "nails together", "varnishes"), ("table", "shelf", "bench", "stool")),
    "sewing": (("hems", "stitches", "irons", "patches"), ("skirt", "coat", "shirt", "scarf")),
    "reading": (("opens", "borrows", "quotes from", "reads"), ("novel", "diary", "poem", "atlas")),
}
PEOPLE = ["Anna", "Ben", "Clara", "David", "Emma", "Felix", "My aunt", "Our neighbor", "The boy", "An old friend"]
ENDS = ["", " in the morning", " at noon", " after work", " at home", " outside", " with great care", " once more"]
SPLITS = {"train": 4_000, "validation": 500, "test": 500}


def sentence(occupation: str, chance: random.Random) -> str:
    actions, things = OCCUPATIONS[occupation]
    return f"{chance.choice(PEOPLE)} {chance.choice(actions)} the {chance.choice(things)}{chance.choice(ENDS)}."


def main(folder: Path) -> None:
    chance, seen = random.Random(1), set()  # noqa: S311  (not cryptography)
    for split, count in SPLITS.items():
        rows = []
        while len(rows) < count:
            is_similar = len(rows) % 2 == 1
            one = chance.choice(list(OCCUPATIONS))
            other = one if is_similar else chance.choice([name for name in OCCUPATIONS if name != one])
            first, second = sentence(one, chance), sentence(other, chance)
            if first not in seen and first != second:
                seen.add(first)
                rows.append({"first": first, "second": second, "label": "similar" if is_similar else "different"})
        chance.shuffle(rows)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{split}.jsonl.bz2").write_bytes(bz2.compress(lines.encode()))


main(Path(sys.argv[1]))
