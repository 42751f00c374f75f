"""What a trained generator writes, on the terminal as it is written."""

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from firstlight.errors import UserError
from firstlight.invocation import parse
from firstlight.runs.chunks import chunks

if TYPE_CHECKING:
    from firstlight.lit.writing import Prompt, Writing
    from firstlight.runs.loaded_generator import LoadedGenerator

MARK = "*"
SAMPLES_AT_ONCE = 256


@dataclass
class GenerateOptions:
    """Let a trained run write. A run of names writes one a line, and marks with * those it has not read."""

    run: Annotated[str, tyro.conf.Positional]
    """The run's folder, `latest`, or `best:<metric>`."""
    prompt: str = ""
    """What the text begins with; of a prompt longer than the context, the network sees the end."""
    tokens: int = 500
    """How many to write; names and other documents end by themselves before."""
    temperature: float = 1.0
    """Below 1 plays safe, above 1 takes risks."""
    top_k: int | None = None
    """Choose among the k likeliest tokens only."""
    top_p: float | None = None
    """Choose among the likeliest tokens that together reach this probability only."""
    greedy: bool = False
    """Always the likeliest token."""
    num_samples: int = 1
    """How many texts."""
    seed: int | None = None
    """The same seed writes the same text; without one, each call another."""
    window: Literal["half", "slide"] = "half"
    """What is seen of a text beyond the context. half: when it is full, the first half is forgotten and the rest read
    anew, which is fast; slide: always the last tokens, all read anew for each new one, as in the 2024 post."""
    context_length: int | None = None
    """See fewer tokens than the network could."""
    checkpoint: Literal["best", "last"] = "best"
    """Which of the run's checkpoints."""
    log_dir: Path = field(default_factory=lambda: Path("logs"))
    """Where `latest` and `best:<metric>` are looked for."""


def main() -> None:
    """Parse the command line and write."""
    options = parse(GenerateOptions, "generate")
    if options.num_samples < 1:
        raise UserError(f"num_samples={options.num_samples} must be at least 1")
    from firstlight.lit.writing import Writing
    from firstlight.runs.load import load_generator

    generator = load_generator(options.run, checkpoint=options.checkpoint, log_dir=options.log_dir)
    writing = Writing(
        options.tokens,
        options.temperature,
        options.top_k,
        options.top_p,
        options.greedy,
        options.seed,
        options.window,
        options.context_length,
    )
    prompt = generator.read(options.prompt, writing)
    notes = list(prompt.notes)
    if generator.data_source == "sample":
        notes.append("this run was trained on a GENERATED SAMPLE, not on real data")
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if generator.separator_id is not None:
        write_documents(generator, prompt, writing, options.num_samples)
    elif options.num_samples == 1:
        write_one(generator, prompt, writing)
    else:
        write_many(generator, prompt, writing, options.num_samples)


def write_one(generator: "LoadedGenerator", prompt: "Prompt", writing: "Writing") -> None:
    """One text, each token as soon as there is one."""
    print(prompt.text, end="", flush=True)
    for pieces in generator.stream(prompt, 1, writing):
        print(pieces[0], end="", flush=True)
    print()


def write_many(generator: "LoadedGenerator", prompt: "Prompt", writing: "Writing", num_samples: int) -> None:
    """Several texts, each under its number."""
    for number, text in enumerate(texts(generator, prompt, writing, num_samples), start=1):
        print(f"--- {number}\n{text}")


def write_documents(generator: "LoadedGenerator", prompt: "Prompt", writing: "Writing", num_samples: int) -> None:
    """One document a line; those that the run was not trained on are marked, where it knows them."""
    known = generator.known_documents()
    for text in texts(generator, prompt, writing, num_samples):
        line = " ".join(text.split())
        print(f"{line} {MARK}" if known and line and line not in known else line)
    if known:
        print(f"note: {MARK} not among the {len(known):,} of the training", file=sys.stderr)


def texts(generator: "LoadedGenerator", prompt: "Prompt", writing: "Writing", num_samples: int) -> list[str]:
    """The prompt and what follows, some hundred samples at a time."""
    written: list[str] = []
    for number, chunk in enumerate(chunks(range(num_samples), SAMPLES_AT_ONCE)):
        seed = None if writing.seed is None else writing.seed + number
        together = [prompt.text] * len(chunk)
        for pieces in generator.stream(prompt, len(chunk), replace(writing, seed=seed)):
            together = [text + piece for text, piece in zip(together, pieces, strict=True)]
        written += together
    return written
