"""Trials: many small attempts in one test, each counted, each bounded, each described so that it can be repeated."""

import hashlib
import os
import random
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

SEED = int(os.environ.get("FAULTS_SEED", "1"))
SHARE = float(os.environ.get("FAULTS_SHARE", "1"))  # of the trials of each test, to try fewer of them
SECONDS = 30  # for one trial inside the tests' process; those with processes of their own have their own limits
MEMORY = 4 * 2**30  # bytes that a trial may allocate beyond what the process has
LONGEST_REASON = 1500  # characters
EXAMPLES_SHOWN = 4  # of the trials that failed at one place

Example = TypeVar("Example")
Item = TypeVar("Item")


class TooSlowError(Exception):
    """A trial has not ended in its time."""


@dataclass
class Trials:
    """Counts the trials of one test. A trial that fails is noted, and the others are tried all the same."""

    kind: str
    tried: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)  # what was tried, and what came of it

    @property
    def passed(self) -> int:
        return self.tried - len(self.failures)

    @contextmanager
    def one(self, what: str, seconds: float = SECONDS, memory: int | None = MEMORY) -> Iterator[None]:
        """Count one trial. What it raises is noted beside `what`, which says how to repeat it.

        It may take so many seconds and, unless memory is None, allocate so many bytes.
        """
        self.tried += 1
        try:
            with time_limit(seconds), memory_limit(memory):
                yield
        except (Exception, SystemExit) as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            reason = shortened(f"{type(error).__name__}: {error}", LONGEST_REASON)
            self.failures.append((what, f"{reason}\n    at {where.filename}:{where.lineno}"))

    def report(self) -> str:
        """The failures, those at the same place together, with some examples of each."""
        places: dict[str, list[tuple[str, str]]] = {}
        for what, reason in self.failures:
            places.setdefault(reason.rpartition("\n")[2], []).append((what, reason))
        parts = [f"{len(self.failures)} of {self.tried} trials failed"]
        for found in sorted(places.values(), key=len, reverse=True):
            shown = [f"  {what}" for what, _ in found[:EXAMPLES_SHOWN]]
            parts.append("\n".join([f"{len(found)} times, at first: {found[0][1]}", *shown]))
        return "\n\n".join(parts)

    def examples(
        self, strategy: SearchStrategy[Example], check: Callable[[Example], None], count: int, what: str
    ) -> None:
        """Try `check` with so many examples of a strategy, drawn by a seed that depends on FAULTS_SEED and `what`."""

        @seed(number_of(what))
        @settings(
            max_examples=scaled(count),
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def run(example: Example) -> None:
            with self.one(f"{what}: {shortened(repr(example))}"):
                check(example)

        run()


def scaled(count: int) -> int:
    """The number of trials for FAULTS_SHARE."""
    return max(1, round(count * SHARE))


def drawn(items: Sequence[Item], what: str, count: int | None = None) -> list[Item]:
    """So many of the items, by default all, in their order; fewer for FAULTS_SHARE."""
    size = min(len(items), scaled(len(items) if count is None else count))
    chosen = random.Random(number_of(what)).sample(range(len(items)), size)
    return [items[index] for index in sorted(chosen)]


def number_of(what: str) -> int:
    """A seed for what is tried, which FAULTS_SEED changes."""
    return int.from_bytes(hashlib.sha256(f"{SEED} {what}".encode()).digest()[:8])


def shortened(text: str, most: int = 400) -> str:
    """The beginning and the end of a text that is longer than that."""
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]} ({len(text)} characters)"


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooSlowError in the main thread after so many seconds; the test's own limit goes on after that."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlowError(f"it took longer than {seconds:g} s")

    started_at = time.monotonic()
    before = signal.signal(signal.SIGALRM, stop)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)
        remaining = max(0.01, left - (time.monotonic() - started_at)) if left else 0
        signal.setitimer(signal.ITIMER_REAL, remaining)


@contextmanager
def memory_limit(size: int | None) -> Iterator[None]:
    """Let this process allocate so many bytes more; beyond that an allocation fails, on Linux."""
    status = "/proc/self/statm"
    if size is None or not os.path.exists(status):
        yield
        return
    with open(status) as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    _, hard = before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
