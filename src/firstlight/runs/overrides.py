"""The command line of a resumed run, made from its old command line and the one that is typed now."""

from collections.abc import Collection, Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import OverrideParseException

SWEEP_NAME = "sweep.name"
# Keys of a sweep that are not repeated in a command that trains other seeds.
NOT_REPEATED = {"seed", "resume", "dry_run", "quiet", "hparams_search", "hydra.mode"}


def merged(old: list[str], typed: list[str]) -> list[str]:
    """Return the overrides of a run with those typed now, which replace the old ones of the same key.

    Hydra applies the result from left to right to the configuration without overrides. A typed `key=2` after an old
    `+key=1` therefore becomes `+key=2`, and a typed `~key` removes that line. `~key` that is typed again appears once.

    old, typed: overrides of Hydra's grammar, such as `task=stars`, `+group/x@package=y` or `~callbacks.bar`.
    """
    result = [[argument] for argument in old]
    for key in dict.fromkeys(map(key_of, typed)):
        news = [argument for argument in typed if key_of(argument) == key]
        places = [place for place, lines in enumerate(result) if lines and key_of(lines[0]) == key]
        if not places:
            result.append(news)
            continue
        olds = [result[place][0] for place in places]
        for place in places:
            result[place] = []
        result[places[0]] = _replacement(olds, news)
        if prefix_of(news[0]) == "~":  # removing a key removes what was set below it
            result = [lines for lines in result if not (lines and key_of(lines[0]).startswith(f"{key}."))]
    return [argument for lines in result for argument in lines]


def key_of(argument: str) -> str:
    """Return `key` of `+key=value`; a group with its package, as in `group@package`."""
    return argument.partition("=")[0].lstrip("+~")


def prefix_of(argument: str) -> str:
    """Return the prefix that says how a key is changed: `+`, `++`, `~` or ""."""
    return argument[: len(argument) - len(argument.lstrip("+~"))]


def with_seeds(given: list[str], runs: list[list[str]], seeds: Sequence[int], done: Collection[int]) -> list[str]:
    """Return the command line that trains some jobs of a sweep with other seeds, in the same sweep.

    given: the overrides of the sweep; runs: those of each of these jobs; done: their seeds, which are left out if the
    sweep has no list of seeds. Another key with a list keeps one, even of a single value, because these keys name the
    folders of the jobs.
    """
    parsed = zip(given, OverridesParser.create().parse_overrides(given), strict=True)
    swept = {key_of(each) for each, override in parsed if override.is_sweep_override()}
    kept = [each for each in given if key_of(each) not in swept | NOT_REPEATED]
    if swept and SWEEP_NAME not in map(key_of, kept):
        kept.append(f"{SWEEP_NAME}={value_of(SWEEP_NAME, runs[0])}")
    lists = [[each for run in runs for each in run if key_of(each) == key] for key in sorted(swept - {"seed"})]
    lists.append([f"seed={seed}" for seed in seeds if "seed" in swept or seed not in done])
    return [*kept, *map(_as_list, lists)]


def _as_list(overrides: Sequence[str]) -> str:
    """Return `key=1,2` for `key=1` and `key=2`, and `key=choice(1)` for `key=1` alone."""
    key = overrides[0].partition("=")[0]
    values = list(dict.fromkeys(each.partition("=")[2] for each in overrides))
    return f"{key}={','.join(values)}" if len(values) > 1 else f"{key}=choice({values[0]})"


def _replacement(olds: list[str], news: list[str]) -> list[str]:
    """Return the new lines of one key, with the prefixes that they need once the old lines are gone."""
    first, *more = news
    match prefix_of(olds[0]), prefix_of(first):
        case ("+" | "++") as was, "":  # without the prefix Hydra refuses a key that the configuration does not have
            return [was + first, *more]
        case "++", "+":
            return ["+" + first, *more]
        case "+", "~":
            return more
        case ("++", "~") | ("~", "+"):
            return [olds[0], *news]
        case _:
            return news


def value_of(key: str, arguments: list[str]) -> str | None:
    """Return the last value that the command line gives to a key; None if there is none."""
    values = [argument for argument in arguments if key_of(argument) == key and "=" in argument]
    if not values:
        return None
    (override,) = OverridesParser.create().parse_overrides([values[-1]])
    value = override.value()
    return None if value is None else str(value)


def parsed_value(text: str) -> Any:
    """Return a value of Hydra's grammar, such as `'a b'` or `a\\ b`; the text itself if it is not in the grammar."""
    try:
        (override,) = OverridesParser.create().parse_overrides([f"key={text}"])
    except (OverrideParseException, RecursionError, ValueError):  # such as 1,000 brackets, or 5,000 digits
        return text
    return override.value()
