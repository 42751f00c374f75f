"""Data of one run for a report. Imports no heavy library."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

SAMPLE_MARK = "GENERATED SAMPLE"


def number(value: float) -> str:
    """Return a number as text, with four significant digits."""
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


Value = str | int | float | bool | None
Item = TypeVar("Item")
Key = TypeVar("Key")

KEYS = ("task", "model", "experiment", "dropout", "context_length", "seed")  # keys of every record
SEED = "seed"
SAMPLE = "sample"
COUNTED, PRUNED = "finished", "pruned"
LONGEST_NUMBER = 8  # characters


@dataclass(frozen=True)
class Curve:
    """Logged values of a metric. The three sequences have the same length. seconds: time since the start of the fit."""

    steps: Sequence[int]
    seconds: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Confusion:
    """Confusion matrix. counts: one row for each true class."""

    classes: Sequence[str]
    counts: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Run:
    """One run, which may be damaged.

    why: the reason why it is not counted; "" if it is counted. fingerprint: the hash of its data. sizes: the rows or
    tokens of each split. is_of_classes: whether each row has one class. has_groups: whether the training names groups
    of rows. split: the settings that decide which texts are validated. apart: the reasons why it cannot be ranked among
    runs without them, by the key that causes each. command: the one that repeats it. files: those of its folder to
    which the page links. note, tags: those of its configuration, or as they were changed after the training.
    """

    folder: str
    status: str
    why: str = ""
    keys: dict[str, Value] = field(default_factory=dict)
    is_baseline: bool = False
    source: str | None = None
    data_path: str | None = None
    fingerprint: str | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    is_of_classes: bool = False
    has_groups: bool = False
    split: dict[str, Value] = field(default_factory=dict)
    apart: dict[str, str] = field(default_factory=dict)
    optimized_metric: str | None = None
    optimized_mode: str | None = None
    host: str | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    parameters: int | None = None
    steps: int | None = None
    total_steps: int | None = None
    tokens: int | None = None
    flops: int | None = None
    tokens_per_second: float | None = None
    fit_seconds: float | None = None
    curves: dict[str, Curve] = field(default_factory=dict)
    confusion: Confusion | None = None
    texts: str | None = None
    note: str = ""
    tags: Sequence[str] = ()
    command: str = ""
    files: Sequence[str] = ()

    @property
    def task(self) -> str | None:
        task = self.keys.get("task")
        return None if task is None else shown(task)

    def values(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return the values of some keys as text."""
        return tuple(shown(self.keys.get(key)) for key in keys)

    @property
    def notes(self) -> dict[str, str]:
        """The tags and the note, as far as there are any."""
        return {name: text for name, text in (("tags", " ".join(self.tags)), ("note", self.note)) if text}

    @property
    def is_sample(self) -> bool:
        return self.source == SAMPLE

    @property
    def is_counted(self) -> bool:
        return self.status == COUNTED and not self.why

    @property
    def compute(self) -> tuple[float, str] | None:
        """The floating-point operations of the training and the source of the number, or None if they are unknown."""
        if self.flops:
            return float(self.flops), "counted by the run"
        if self.parameters and self.tokens:
            return 6.0 * self.parameters * self.tokens, "6 × parameters × tokens"
        if self.parameters and self.fit_seconds and self.tokens_per_second:
            tokens = self.fit_seconds * self.tokens_per_second
            return 6.0 * self.parameters * tokens, "6 × parameters × fit seconds × tokens per second"
        return None


def brief(value: Value) -> str:
    """Return a value as `shown` does, but a number of many digits, such as one that a search has drawn, with four."""
    text = shown(value)
    return f"{value:.4g}" if isinstance(value, float) and len(text) > LONGEST_NUMBER else text


def shown(value: Value) -> str:
    """Return a value as it is written on the command line, or – if there is none."""
    match value:
        case None:
            return "–"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}" if float(f"{value:g}") == value else repr(value)
        case _:
            return str(value)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items of each key, in their order."""
    found: dict[Key, list[Item]] = {}
    for each in items:
        found.setdefault(key(each), []).append(each)
    return found
