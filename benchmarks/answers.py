"""Measure how fast the playground answers: python benchmarks/answers.py RUN… (--help lists all options).

The playground runs in a separate process and answers over HTTP. The requests are a review of 50 words, a stream of
generated text, and 20 requests at once.
"""

import json
import signal
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Annotated, Any

import tyro

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from firstlight.commands.frame import run  # noqa: E402
from firstlight.runs.folder import RunFolder  # noqa: E402

WORDS = 50
REVIEW = " ".join(
    ("I thought the battery is not great but the rest works and I love how it looks " * 4).split()[:WORDS]
)


@dataclass
class Options:
    """Options of the measurement."""

    runs: Annotated[list[str], tyro.conf.Positional]
    """Folders of classifiers, generators and translators."""
    repeats: int = 20
    """Number of times that a review is judged."""
    tokens: int = 1000
    """Number of generated tokens."""


def main() -> None:
    """Print a line for each measurement."""
    options = tyro.cli(Options)
    command = [sys.executable, str(ROOT / "src" / "playground.py"), *options.runs, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        address = process.stdout.readline().partition(" ")[0].removeprefix("http://")
        try:
            paths = [
                measure(address, number, RunFolder(Path(each)), options) for number, each in enumerate(options.runs)
            ]
            at_once(address, paths)
        finally:
            process.send_signal(signal.SIGINT)


def measure(address: str, number: int, folder: RunFolder, options: Options) -> str:
    """Measure the answers of one run, and return the path of its requests."""
    record = folder.read()
    name = f"{record['task']}, {record['model']}"
    status, body, _ = ask(address, f"/runs/{number}/write", {"text": "The", "tokens": options.tokens})
    if status == 200:
        events = [json.loads(line) for line in body.splitlines()]
        end = events[-1]["end"]
        print(
            f"{name}: {end['characters']} characters in {end['seconds']} s, {end['characters'] / end['seconds']:.0f}/s"
        )
        return f"/runs/{number}/write"
    for what, quick in (("only classes", 1), ("everything", 0)):  # a translator has one answer
        asked = {"text": REVIEW, "quick": quick}
        times = [1000 * ask(address, f"/runs/{number}/answer", asked)[2] for _ in range(options.repeats)]
        median = statistics.median(times)
        print(f"{name}: {WORDS} words, {what}, in {median:.0f} ms, {min(times):.0f} to {max(times):.0f}")
    return f"/runs/{number}/answer"


def at_once(address: str, paths: list[str]) -> None:
    """Send twenty requests at once, distributed over all runs."""
    asked = {"text": REVIEW, "tokens": 100}
    started = time.perf_counter()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda i: ask(address, paths[i % len(paths)], asked), range(20)))
    seconds = time.perf_counter() - started
    answered = sum(status == 200 for status, _, _ in answers)
    slowest = max(each[2] for each in answers)
    print(f"20 at once: {answered} answered in {seconds:.2f} s, the slowest in {slowest:.2f} s")


def ask(address: str, path: str, asked: dict[str, Any]) -> tuple[int, str, float]:
    """Send a POST request, and return the status, the body and the seconds."""
    started = time.perf_counter()
    connection = HTTPConnection(address, timeout=120)
    connection.request("POST", path, json.dumps(asked), {"Content-Type": "application/json"})
    response = connection.getresponse()
    body = response.read().decode()
    return response.status, body, time.perf_counter() - started


if __name__ == "__main__":
    run(main)
