"""What a table of groups says, in one sentence: which values of each swept key are better, worse or undecided."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from firstlight.choices import listed
from firstlight.lab.reports.boards import Board, Group, board_of, last_part, named, short_name
from firstlight.lab.reports.tables import spread_text
from firstlight.lab.reports.verdicts import Comparison, Load, Verdict, by_unit, compare, difference_text, verdicts
from firstlight.runs.summary import SEED, Run, Value, grouped, shown

WORK = {"parameters": "parameters", "tokens": "tokens", "flops": "FLOP"}
UNEQUAL = 1.1  # times the work of the other side, from which a comparison says so
MOST_VALUES = 12  # of a key that are compared with the best one
MOST_CLAUSES = 5
MOST_NAMED = 2  # values of a key with their own differences
MOST_GROUPS = 30  # that are compared with the best one, because each comparison takes a tenth of a second


def judged(board: Board, load: Load, reference: int | None = None, most: int | None = MOST_GROUPS) -> Board:
    """Return the board with its finding and with the verdicts on its groups.

    The finding does not depend on the keys of the groups. Groups that are the values of one key of the sweep have its
    verdicts, which are estimated from all pairs of runs.

    load: returns the saved predictions of a run, or None. reference: the place of the group with which the others are
    compared; None: the best that has several seeds, since one seed may be lucky. most: the number of groups, from the
    best, that are compared; None: all.
    """
    counted = [place for place, group in enumerate(board.groups) if group.counted]
    if not counted or board.metric is None:
        return board
    whole = board
    if set(board.keys) != set(board.swept):
        whole = board_of(board.runs, lambda _: board.falls, board.metric, note=board.note)
    effects, against = effects_of(whole, load)
    of_key = {shown(effect.other): effect.verdict.reversed() for effect in effects if board.keys == (effect.key,)}
    if reference is None and of_key and len(of_key) == len(counted) - 1:
        values = {each: shown(board.groups[each].keys[board.keys[0]]) for each in counted}
        (place,) = (each for each, value in values.items() if value not in of_key)  # the best one
        by_place = {each: of_key[value] for each, value in values.items() if each != place}
    else:
        place = _reference(board.groups) if reference is None else reference
        others = [each for each in counted[:most] if each != place]
        compared = [_against(board, board.groups[each], board.groups[place], load, len(others)) for each in others]
        by_place = dict(zip(others, verdicts(compared, falls=board.falls), strict=True))
    if whole is board:
        against = [(group, _of_table(board, group, verdict, place, by_place)) for group, verdict in against]
    of_groups = tuple(by_place.get(each) for each in range(len(board.groups)))
    return replace(board, finding=finding(whole, effects, against), reference=place, verdicts=of_groups)


def _of_table(board: Board, baseline: Group, verdict: Verdict, reference: int, by_place: dict[int, Verdict]) -> Verdict:
    """Return the verdict of the table on the best trained group against a baseline; the given one if it has none."""
    best, other = board.groups.index(_best_trained(board)), board.groups.index(baseline)
    if reference == best and other in by_place:
        return by_place[other].reversed()
    return by_place[best] if reference == other and best in by_place else verdict


class Effect(NamedTuple):
    """The verdict on the best value of a key against another one, over all runs that differ only in it."""

    key: str
    best: Value
    other: Value
    verdict: Verdict
    work: str  # how much more tokens, parameters or operations one of them had; "" if they are equal


def effects_of(board: Board, load: Load) -> tuple[list[Effect], list[tuple[Group, Verdict]]]:
    """Return the effects of all swept keys, and the verdicts on the best trained group against each baseline.

    The best value of each key is that of the best trained group that has several seeds. It is compared with each other
    value over the runs that are equal in all other keys and the seed. All comparisons are corrected together.
    """
    counted = [group for group in board.groups if group.counted]
    trained = [group for group in counted if not _is_baseline(group)]
    if not trained:
        return [], []
    baselines = [group for group in counted if _is_baseline(group)]
    best = _best_trained(board)
    pairs = [(key, *pair) for key in board.swept for pair in _compared(board, best, trained, key, load)]
    against = [_against(board, best, group, load) for group in baselines]
    found = verdicts([comparison for *_, comparison in pairs] + against, falls=board.falls)
    effects = [
        Effect(key, best.keys.get(key), other, verdict, work)
        for (key, other, work, _), verdict in zip(pairs, found, strict=False)
    ]
    return effects, list(zip(baselines, found[len(effects) :], strict=True))


def finding(board: Board, effects: Sequence[Effect], against: Sequence[tuple[Group, Verdict]]) -> str:
    """Return the result of a board with counted runs as a sentence. effects, against: those of the board."""
    best, metric, clauses = _best_trained(board), str(board.metric), list[str]()
    for key, of_key in grouped(effects, lambda effect: effect.key).items():
        is_of_numbers = isinstance(best.keys.get(key), int | float) and len(of_key) > 1
        is_alone = len(board.swept) == 1 and is_of_numbers
        clauses.append(_clause(of_key, metric, spread_text(best.spreads.get(metric)) if is_alone else ""))
    clauses += [_against_baseline(best, group, verdict, metric) for group, verdict in against]
    if not clauses:
        return _alone(best, board)
    more = f"; {len(clauses) - MOST_CLAUSES} more in the table" if len(clauses) > MOST_CLAUSES else ""
    return f"{board.name}: {'; '.join(clauses[:MOST_CLAUSES])}{more}."


def _reference(groups: Sequence[Group]) -> int:
    """Return the place of the first counted group with several seeds; that of the first counted one without any."""
    counted = [place for place, group in enumerate(groups) if group.counted]
    return next((place for place in counted if groups[place].seeds > 1 or _is_baseline(groups[place])), counted[0])


def _best_trained(board: Board) -> Group:
    """Return the best trained group with several seeds; without one the best trained group, or the best baseline."""
    counted = [group for group in board.groups if group.counted]
    trained = [group for group in counted if not _is_baseline(group)] or counted
    return trained[_reference(trained)]


def _is_baseline(group: Group) -> bool:
    return all(run.is_baseline for run in group.counted)


def _against(board: Board, best: Group, other: Group, load: Load, num_tests: int = 1) -> Comparison:
    hidden = [key for key in board.swept if key not in board.keys]
    one, two = (by_unit(group.counted, hidden) for group in (best, other))
    return compare(one, two, board.metric or "", load, num_tests)


def _compared(
    board: Board, best_group: Group, trained: Sequence[Group], key: str, load: Load
) -> Iterator[tuple[Value, str, Comparison]]:
    """Yield the other values of a key with the difference in work, and the comparison with the best group's value."""
    runs = [run for group in trained for run in group.counted]
    best, rest = shown(best_group.keys.get(key)), [each for each in board.swept if each != key]
    others = dict.fromkeys(shown(group.keys.get(key)) for group in trained)
    others.pop(best, None)
    for other in list(others)[:MOST_VALUES]:
        first, second = _matched(runs, key, best, other, board)
        if first:
            comparison = compare(by_unit(first, rest), by_unit(second, rest), board.metric or "", load)
            yield second[0].keys.get(key), _more_work(first, second), comparison


def _more_work(first: Sequence[Run], second: Sequence[Run]) -> str:
    """Return how many times the tokens, parameters or operations the first runs had; "" if they are about equal."""
    for name, noun in WORK.items():
        one, two = ([number for run in runs if (number := getattr(run, name))] for runs in (first, second))
        if one and two and not 1 / UNEQUAL < (ratio := fmean(one) / fmean(two)) < UNEQUAL:
            return f"with {ratio:.2g} times the {noun}"
    return ""


def _matched(runs: Sequence[Run], key: str, one: str, two: str, board: Board) -> tuple[list[Run], list[Run]]:
    """Return the runs with each of two values of a key that have a partner with equal other keys and an equal seed.

    Without equal seeds, the partners have equal other keys.
    """

    def rest(run: Run, *more: str) -> tuple[str, ...]:
        return run.values(each for each in (*board.swept, *more) if each != key)

    sides = [[run for run in runs if shown(run.keys.get(key)) == value] for value in (one, two)]
    for more in ((SEED,), ()):
        known = [{rest(run, *more) for run in side} for side in sides]
        both = known[0] & known[1]
        if both:
            first, second = ([run for run in side if rest(run, *more) in both] for side in sides)
            return first, second
    return [], []


def _clause(effects: Sequence[Effect], metric: str, mean: str) -> str:
    """Return what the comparisons of a key say, such as `small is better than tiny by 1.9 ± 0.6 points`.

    mean: of the best value with its interval, where it is a number among several and no other key varies; "" elsewhere.
    """
    key = effects[0].key
    by_word = grouped(effects, lambda effect: effect.verdict.word)
    won, lost, undecided = (by_word.get(word, []) for word in ("better", "worse", "undecided"))
    best = named(key, effects[0].best) + (f" ({metric} {mean})" if mean else "")
    parts = [f"{best} is better than {_worse(won, metric)}"] if won else []
    for each in lost:
        size = _size(each.verdict, metric)
        parts.append(f"{named(key, each.other)} is better than {named(key, each.best)} by {size}")
    if undecided:
        start = "" if won else f"{shown(effects[0].best)} against "
        sizes = [
            ("" if won and len(undecided) == 1 else f"{start}{shown(each.other)}: ")
            + _size(each.verdict, metric, each.work)
            for each in undecided[:MOST_NAMED]
        ]
        more = [f"{len(undecided) - MOST_NAMED} more"] if len(undecided) > MOST_NAMED else []
        values = listed([shown(each.other) for each in undecided], "and")
        alone = (f"{best} is the best, but there is " if mean else "") + f"no clear effect of {last_part(key)}"
        parts.append(f"{f'against {values}, it is undecided' if won else alone} ({'; '.join([*sizes, *more])})")
    return "; ".join(parts)


def _worse(won: Sequence[Effect], metric: str) -> str:
    """Return the values that are worse than the best one, with each difference, or with the smallest of many."""
    if len(won) <= MOST_NAMED:
        return ", and ".join(f"{shown(each.other)} by {_size(each.verdict, metric, each.work)}" for each in won)
    smallest = min((each.verdict for each in won), key=lambda verdict: abs(verdict.value))
    work = next((f", {each.work}" for each in won if each.work), "")
    return f"{listed([shown(each.other) for each in won], 'and')} by {_size(smallest, metric)} or more{work}"


def _size(verdict: Verdict, metric: str, work: str = "") -> str:
    """Return a difference, what makes its two sides unequal, and why it is undecided if it is."""
    size = difference_text(verdict.value, verdict.half_width, metric)
    size = size if size.endswith("points") else f"{size} in {metric}"
    why = verdict.why if verdict.word == "undecided" else ""
    return ", ".join(filter(None, (size, work, why)))


def _against_baseline(best: Group, baseline: Group, verdict: Verdict, metric: str) -> str:
    which = "the best group with several seeds" if best.seeds > 1 else "the best trained group"
    name, size = short_name(baseline.keys), _size(verdict, metric)
    if verdict.word == "undecided":
        return f"{which} against the baseline {name} is undecided ({size})"
    return f"{which} is {verdict.word} than the baseline {name} by {size}"


def _alone(group: Group, board: Board) -> str:
    """Return what is known of the best group if nothing can be compared."""
    seeds = "one seed" if group.seeds == 1 else f"{group.seeds} seeds, 95% interval"
    value = f"{spread_text(group.spreads.get(board.metric or ''))} ({seeds})"
    if sum(bool(each.counted) for each in board.groups) == 1:
        return f"{board.name}: {board.metric} is {value}."
    name = f"{board.name}: the best group is {short_name(group.keys)}, with {board.metric} {value}."
    return f"{name} Single keys are not compared, because no two groups differ in only one key."
