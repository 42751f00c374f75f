"""What a report knows of one run. Imports nothing heavy."""

from collections.abc import Sequence
from dataclasses import dataclass, field

Value = str | int | float | bool | None

KEYS = ("task", "model", "experiment", "dropout", "context_length", "seed")  # what every record has
SAMPLE = "sample"
COUNTED = "finished"


@dataclass(frozen=True)
class Curve:
    """A metric as it was logged; the three are equally long. seconds count from the start of the fit."""

    steps: Sequence[int]
    seconds: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True)
class Confusion:
    """counts: a row for each true class."""

    classes: Sequence[str]
    counts: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Run:
    """One run, whole or damaged. why: what keeps it from being counted; "" for a run that is."""

    folder: str
    status: str
    why: str = ""
    keys: dict[str, Value] = field(default_factory=dict)
    is_baseline: bool = False
    source: str | None = None
    optimized_metric: str | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    parameters: int | None = None
    steps: int | None = None
    tokens: int | None = None
    flops: int | None = None
    tokens_per_second: float | None = None
    fit_seconds: float | None = None
    curves: dict[str, Curve] = field(default_factory=dict)
    confusion: Confusion | None = None
    texts: str | None = None

    @property
    def task(self) -> str | None:
        task = self.keys.get("task")
        return None if task is None else shown(task)

    @property
    def is_sample(self) -> bool:
        return self.source == SAMPLE

    @property
    def is_counted(self) -> bool:
        return self.status == COUNTED and not self.why

    @property
    def compute(self) -> tuple[float, str] | None:
        """Floating-point operations of the training, and where the number is from; None where nothing is known."""
        if self.flops:
            return float(self.flops), "counted by the run"
        if self.parameters and self.tokens:
            return 6.0 * self.parameters * self.tokens, "6 × parameters × tokens"
        if self.parameters and self.fit_seconds and self.tokens_per_second:
            tokens = self.fit_seconds * self.tokens_per_second
            return 6.0 * self.parameters * tokens, "6 × parameters × fit seconds × tokens per second"
        return None


def shown(value: Value) -> str:
    """A value of a key as one would type it; – where a run has none."""
    match value:
        case None:
            return "–"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}" if float(f"{value:g}") == value else repr(value)
        case _:
            return str(value)
