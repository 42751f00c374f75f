"""The predictions in which two runs differ, as sentences and tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from firstlight.lab.reports.tables import Table
from firstlight.lab.reports.verdicts import LEVEL
from firstlight.runs.summary import Run

if TYPE_CHECKING:
    from firstlight.runs.predictions import Predictions

A, B = "A", "B"  # the names of the two runs
CHANGE = f"{B} − {A}"
CLASS_HEADERS = ("class", "texts", A, B, CHANGE, f"{B} is")
TEXT_HEADERS = ("row", "true", A, B, f"loss of {A}", f"loss of {B}")
MOST_CONFUSIONS = 8
MOST_TEXTS = 10


def signed(count: int) -> str:
    """Return a change with its sign, such as +1,009 or −7."""
    return f"{count:+,}".replace("-", "−")


def points(share: float) -> str:
    """Return a change of a share in points of a hundred, such as `−4.3 points`."""
    return f"{100 * share:+.1f} points".replace("-", "−")


def _named(classes: Sequence[str], place: int) -> str:
    return classes[place] if place < len(classes) else str(place)


def why_of_classes(one: "Predictions", two: "Predictions", classes: Sequence[str]) -> str:
    """Return how many predictions changed, and which class gains and which one loses most, in texts."""
    assert one.targets is not None and one.predicted is not None
    changed = int((one.predicted != two.predicted).sum())
    change, targets = two.correct - one.correct, one.targets
    gains = {place: int(change[targets == place].sum()) for place in sorted(set(targets.tolist()))}
    best, worst = max(gains, key=lambda place: gains[place]), min(gains, key=lambda place: gains[place])
    parts = []
    if gains[best] > 0:
        parts.append(f"{B} gains most in the class {_named(classes, best)}: +{gains[best]:,} texts")
    if gains[worst] < 0:
        parts.append(f"{B} loses most in the class {_named(classes, worst)}: −{-gains[worst]:,} texts")
    what = "; ".join(parts) or "No class gains or loses"
    return f"{changed:,} of {len(one.rows):,} predictions changed. {what}."


def tables_of_classes(one: "Predictions", two: "Predictions", classes: Sequence[str]) -> list[Table]:
    """Return the tables of two classifiers: hits, classes, mistakes, and the texts that changed most."""
    return [
        Table("Predictions of the validation texts", ("", "texts"), _hits(one, two)),
        Table("Right predictions of each true class", CLASS_HEADERS, _classes(one, two, classes)),
        Table("Mistakes that changed most", ("true", "predicted", A, B, CHANGE), _mistakes(one, two, classes)),
        Table("Texts whose loss changed most", TEXT_HEADERS, _texts(one, two, classes)),
    ]


def _hits(one: "Predictions", two: "Predictions") -> list[list[str]]:
    right, other, is_same = one.correct > 0, two.correct > 0, one.predicted == two.predicted
    counts = {
        "both right": right & other,
        f"only {A} right": right & ~other,
        f"only {B} right": ~right & other,
        "both wrong, the same class": ~right & ~other & is_same,
        "both wrong, another class": ~right & ~other & ~is_same,
    }
    return [[name, f"{int(where.sum()):,}"] for name, where in counts.items()]


def _classes(one: "Predictions", two: "Predictions", classes: Sequence[str]) -> list[list[str]]:
    """Return a row for each true class. McNemar's tests of all classes are corrected together."""
    from firstlight.lab.reports.significance import holm, mcnemar  # imports NumPy

    assert one.targets is not None
    places = sorted(set(one.targets.tolist()))
    members = [one.targets == place for place in places]
    tests = [mcnemar(two.correct[member], one.correct[member]) for member in members]
    rows = []
    for place, member, test, p in zip(places, members, tests, holm([test.p for test in tests]), strict=True):
        word = "undecided" if p >= LEVEL else "better" if test.difference > 0 else "worse"
        shares = (f"{each.correct[member].mean():.1%}" for each in (one, two))
        rows.append([_named(classes, place), f"{test.total:,}", *shares, points(test.difference), word])
    return rows


def _mistakes(one: "Predictions", two: "Predictions", classes: Sequence[str]) -> list[list[str]]:
    """Return the pairs of a true and another predicted class whose number changed most."""
    assert one.targets is not None
    cells: dict[tuple[int, int], list[int]] = {}
    for side, predictions in enumerate((one, two)):
        assert predictions.predicted is not None
        for cell in zip(one.targets.tolist(), predictions.predicted.tolist(), strict=True):
            cells.setdefault(cell, [0, 0])[side] += 1
    changed = [(cell, a, b) for cell, (a, b) in cells.items() if cell[0] != cell[1] and a != b]
    changed.sort(key=lambda each: (-abs(each[2] - each[1]), each[0]))
    return [
        [_named(classes, true), _named(classes, predicted), f"{a:,}", f"{b:,}", signed(b - a)]
        for (true, predicted), a, b in changed[:MOST_CONFUSIONS]
    ]


def _texts(one: "Predictions", two: "Predictions", classes: Sequence[str]) -> list[list[str]]:
    """Return the rows of the texts that gain and lose most."""
    assert one.targets is not None and one.predicted is not None and two.predicted is not None
    return [
        [
            *(f"{one.rows[place]:,}", _named(classes, int(one.targets[place]))),
            *(_named(classes, int(one.predicted[place])), _named(classes, int(two.predicted[place]))),
            *(f"{one.losses[place]:.2f}", f"{two.losses[place]:.2f}"),
        ]
        for place in _most_changed(one, two)
    ]


def _most_changed(one: "Predictions", two: "Predictions") -> list[int]:
    """Return the places of the units whose mean loss fell most and rose most."""
    change = two.losses / two.tokens - one.losses / one.tokens
    order = change.argsort(kind="stable")
    chosen = [*order[: MOST_TEXTS // 2], *order[::-1][: MOST_TEXTS // 2]]
    return [place for place in dict.fromkeys(map(int, chosen)) if change[place] != 0]


def why_of_tokens(one: "Predictions", two: "Predictions") -> str:
    """Return in how many texts the loss fell, and how many tokens more are predicted correctly."""
    lower = int((two.losses < one.losses).sum())
    hits = int((two.correct - one.correct).sum())
    return (
        f"{B} has the lower loss in {lower:,} of {len(one.rows):,} validation texts, or pieces of a text, and predicts "
        f"{abs(hits):,} of {int(one.tokens.sum()):,} tokens {'more' if hits >= 0 else 'fewer'} correctly than {A}."
    )


def texts_of_tokens(one: "Predictions", two: "Predictions") -> Table:
    """Return the texts, or pieces of a text, whose mean loss per token changed most."""
    rows = [
        [
            *(f"{one.rows[place]:,}", f"{one.tokens[place]:,}"),
            *(f"{each.losses[place] / each.tokens[place]:.3f}" for each in (one, two)),
        ]
        for place in _most_changed(one, two)
    ]
    return Table("Texts whose loss changed most", ("row", "tokens", f"loss of {A}", f"loss of {B}"), rows)


def classes_of_matrices(first: Run, second: Run) -> Table:
    """Return the right predictions of each class from the confusion matrices, where no predictions can be paired."""
    one, two = first.confusion, second.confusion
    rows = []
    if one is not None and two is not None and list(one.classes) == list(two.classes):
        for place, name in enumerate(one.classes):
            totals = [sum(each.counts[place]) for each in (one, two)]
            if all(totals):
                shares = [each.counts[place][place] / total for each, total in zip((one, two), totals, strict=True)]
                percents = (f"{share:.1%}" for share in shares)
                rows.append([name, f"{totals[0]:,}", *percents, points(shares[1] - shares[0])])
    return Table("Right predictions of each true class", CLASS_HEADERS[:-1], rows)
