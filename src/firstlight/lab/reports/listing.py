"""A list of runs: the values of its columns, the conditions that choose runs, and their order."""

import math
import operator
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from firstlight.choices import nearest
from firstlight.errors import UserError
from firstlight.lab.reports.all_runs import Configuration, direction_of
from firstlight.lab.reports.run_rows import row_of
from firstlight.runs.folder import RunFolder
from firstlight.runs.gather import plain_value
from firstlight.runs.identity import flat
from firstlight.runs.summary import Run, Value, brief, shown

CONDITION = re.compile(r"([^=<>!~]+)(!=|<=|>=|[=<>~])(.*)")
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Listed:
    """A run in a list. when: the time at which it was written last, in seconds since 1970. where: another computer."""

    run: Run
    path: Path
    when: float = 0.0
    where: str = ""

    @cached_property
    def row(self) -> dict[str, Value]:
        """The values of the columns of `report.csv`, and those of the list."""
        run, metric = self.run, self.run.optimized_metric
        value = run.metrics.get(metric) if metric else None
        score = None if value is None else f"{metric} {value:.4f}{' (sample)' if run.is_sample else ''}"
        when = datetime.fromtimestamp(self.when).strftime("%Y-%m-%d %H:%M")
        return row_of(run, metric, run.why) | {"task": run.task, "when": when, "score": score, "where": self.where}

    @cached_property
    def size(self) -> int:
        """The number of bytes of the folder."""
        return RunFolder(self.path).size

    @cached_property
    def configuration(self) -> Configuration:
        """The files of the configuration, which are read when a value is needed."""
        return Configuration(self.path)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings by their complete keys."""
        return flat(self.configuration.config) | self.run.keys

    def value(self, key: str) -> Value:
        """Return the value of a column, a metric or a key of the configuration, complete or its last part, or None."""
        if key == "size":
            return self.size
        if key in self.row:
            return self.row[key]
        found = [value for name, value in self.settings.items() if key in (name, name.rpartition(".")[2])]
        return plain_value(found[0]) if found else self.configuration.value(key)

    def cell(self, key: str) -> str:
        """Return the value of a column as text."""
        value = self.value(key)
        if key == "size":
            from rich.filesize import decimal

            return decimal(self.size)
        return f"{value:.4f}" if key in self.run.metrics else brief(None if value == "" else value)

    def fulfills(self, wanted: "Iterable[Condition]") -> bool:
        """Return whether the run fulfills all of some conditions."""
        return all(condition.holds(self) for condition in wanted)


class Condition(NamedTuple):
    """A condition such as `dropout>0`."""

    key: str
    sign: str
    value: str

    def holds(self, listed: Listed) -> bool:
        """Return whether a run fulfills the condition. A run without the value fulfills only `!=`."""
        own, wanted = listed.value(self.key), plain_value(self.value)
        if self.sign in ("=", "!="):
            same = shown(own).split() if self.key == "tags" else (shown(own), brief(own))
            return (shown(wanted) in same) == (self.sign == "=")
        if self.sign == "~":
            return self.value in shown(own)
        is_comparable = own is not None and isinstance(own, str) == isinstance(wanted, str)
        return is_comparable and bool(SIGNS[self.sign](own, wanted))  # type: ignore[arg-type]


def conditions(option: str, texts: Iterable[str]) -> list[Condition]:
    """Return the conditions of an option, such as `task=names dropout>0`. Raises UserError for another text."""
    try:
        words = [word for text in texts for word in shlex.split(text)]
    except ValueError as error:
        raise UserError(f"{option} {' '.join(texts)}: {error}; close the quote") from None
    for word in words:
        if not CONDITION.fullmatch(word):
            raise UserError(f"{option} {word}: must be a key, one of = != < <= > >= ~ and a value, such as dropout>0")
    return [Condition(*CONDITION.fullmatch(word).groups()) for word in words]  # type: ignore[union-attr]


def in_order(runs: Sequence[Listed], key: str) -> list[Listed]:
    """Return the runs sorted by a column: the best metric first, other values in ascending order, missing ones last."""
    lower_first = direction_of([each.run for each in runs])

    def place(listed: Listed) -> tuple[bool, bool, str, float]:
        value = listed.value(key)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return True, False, "", 0.0
        if isinstance(value, str):
            return False, True, value, 0.0
        return False, False, "", -value if key in listed.run.metrics and not lower_first(key) else value

    return sorted(runs, key=place)


def refuse_unknown(option: str, keys: Iterable[str], runs: Sequence[Listed]) -> None:
    """Raise UserError for a key that no run has."""
    for key in keys:
        if all(key not in each.row and each.value(key) is None for each in runs):
            known = sorted({name for each in runs for name in each.row})
            meant = nearest(key, known)
            hint = f"did you mean {meant}?" if meant else f"there are {', '.join(known)}"
            raise UserError(f"{option} {key}: no run has this key; {hint}")


def lines(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
