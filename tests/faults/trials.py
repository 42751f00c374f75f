"""Trials: many small attempts in one test. Each is counted, limited, and described so that it can be repeated."""

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
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.strategies import SearchStrategy

SEED = int(os.environ.get("FAULTS_SEED", "1"))
SHARE = float(os.environ.get("FAULTS_SHARE", "1"))  # the share of each test's trials that are run
SECONDS = 30  # the limit for a trial in the tests' process; trials with separate processes have their own limits
MEMORY = 4 * 2**30  # bytes that a trial may allocate in addition to those of the process
LONGEST_REASON = 1500  # characters
GENERATED = settings(deadline=None, database=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck])
EXAMPLES_SHOWN = 4  # the number of shown trials that failed at the same place

Example = TypeVar("Example")
Item = TypeVar("Item")


class TooSlowError(Exception):
    """Error if a trial takes longer than its limit."""


@dataclass
class Trials:
    """Counter of the trials of a test. A failed trial is recorded, and the next trials are still run."""

    kind: str
    tried: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)  # the description of a trial, and its error

    @property
    def passed(self) -> int:
        return self.tried - len(self.failures)

    @contextmanager
    def one(self, what: str, seconds: float = SECONDS, memory: int | None = MEMORY) -> Iterator[None]:
        """Count one trial. An error is recorded with `what`, the description that allows to repeat the trial.

        seconds, memory: the limits of the trial in seconds and bytes; None: no limit.
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
        """Return a text with the failures, grouped by place, with some examples of each."""
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
        """Run `check` with `count` examples of a strategy. They depend only on FAULTS_SEED and `what`.

        Hypothesis also draws the constants of all imported modules of a project, so that the examples would depend on
        the tests that have run before. That is switched off.
        """

        @seed(number_of(what))
        @settings(GENERATED, max_examples=scaled(count))
        @given(strategy)
        def run(example: Example) -> None:
            with self.one(f"{what}: {shortened(repr(example))}"):
                check(example)

        with patch.object(HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None):
            run()


def scaled(count: int) -> int:
    """Return the number of trials, multiplied by FAULTS_SHARE."""
    return max(1, round(count * SHARE))


def drawn(items: Sequence[Item], what: str, count: int | None = None) -> list[Item]:
    """Return `count` of the items, by default all, in their order. FAULTS_SHARE reduces the number."""
    size = min(len(items), scaled(len(items) if count is None else count))
    chosen = random.Random(number_of(what)).sample(range(len(items)), size)
    return [items[index] for index in sorted(chosen)]


def number_of(what: str) -> int:
    """Return a seed that depends on a description and FAULTS_SEED."""
    return int.from_bytes(hashlib.sha256(f"{SEED} {what}".encode()).digest()[:8])


def shortened(text: str, most: int = 400) -> str:
    """Return a text, or only its beginning and end if it has more than `most` characters."""
    return text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]} ({len(text)} characters)"


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooSlowError in the main thread after `seconds`. The test's own limit continues after the block."""

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
    """Limit the memory that the block may allocate to `size` bytes. None: no limit. It works only on Linux."""
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
