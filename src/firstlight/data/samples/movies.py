"""Sample verdicts, negative or positive: the shorter half of the generated reviews, without those of three stars."""

from firstlight.data.samples import reviews

VERSION = f"{reviews.VERSION}.1"  # raised whenever the generated text changes: caches depend on it
SPLITS = {"train": 6_000, "validation": 600, "test": 600}
MIDDLE = 2  # the label of three stars


def splits(seed: int = 0) -> dict[str, list[reviews.Review]]:
    """The first of each split, with label 0 for 1-2 stars and 1 for 4-5."""
    return {name: _polarised(rows)[: SPLITS[name]] for name, rows in reviews.splits(seed).items()}


def _polarised(rows: list[reviews.Review]) -> list[reviews.Review]:
    lengths = sorted(len(str(row["text"]).split()) for row in rows)
    median = lengths[len(lengths) // 2]
    return [
        {"text": row["text"], "label": int(int(row["label"]) > MIDDLE)}
        for row in rows
        if row["label"] != MIDDLE and len(str(row["text"]).split()) <= median
    ]
