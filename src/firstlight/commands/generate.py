"""What a trained generator writes, on the terminal as it is written."""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from firstlight.command_options import parse
from firstlight.commands.frame import run_module
from firstlight.errors import UserError
from firstlight.kinds.chunks import chunks
from firstlight.kinds.found import located
from firstlight.terminal_text import note, say, write_out

if TYPE_CHECKING:
    from firstlight.kinds.generator.loaded import LoadedGenerator
    from firstlight.lit.writing import Prompt, Writing

MARK = "*"
SAMPLES_AT_ONCE = 256
TOKENS_AT_ONCE = 2**24  # of all samples that are written together, whose texts are kept in memory
MOST_SAMPLES = 1_000_000  # of 500 tokens a small network writes so many in a day


@dataclass
class GenerateOptions:
    """Let a trained run write. A run of names writes one a line, and marks with * those it has not read."""

    run: Annotated[str, tyro.conf.Positional]
    """The run: its folder, `latest`, `latest:<task>`, `best:<metric>` or `best:<metric>:<task>`, such as
    latest:names or best:val/loss:names."""
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
    """The folder below which `latest` and `best` search runs."""


def main() -> None:
    """Parse the command line and write."""
    options = parse(GenerateOptions, "generate")
    if options.num_samples < 1:
        raise UserError(f"num_samples={options.num_samples} must be at least 1")
    if options.num_samples > MOST_SAMPLES:
        raise UserError(
            f"num_samples={options.num_samples} must be at most {MOST_SAMPLES:,}; write the rest by another call, with "
            "another --seed"
        )
    run = located("generate", options.run, options.log_dir)
    from firstlight.kinds.load import load_for
    from firstlight.lit.writing import Writing

    generator: LoadedGenerator = load_for("generate", run, checkpoint=options.checkpoint)
    writing = Writing(**{each.name: getattr(options, each.name) for each in fields(Writing)})
    prompt = generator.read(options.prompt, writing)
    notes = list(prompt.notes)
    if generator.data_source == "sample":
        notes.append("this run was trained on a GENERATED SAMPLE, not on real data")
    for each in notes:
        note(each)
    if generator.separator_id is not None:
        write_documents(generator, prompt, writing, options.num_samples)
    elif options.num_samples == 1:
        write_one(generator, prompt, writing)
    else:
        write_many(generator, prompt, writing, options.num_samples)


def write_one(generator: "LoadedGenerator", prompt: "Prompt", writing: "Writing") -> None:
    """One text, each token as soon as there is one."""
    write_out(prompt.text, end="", flush=True)
    for pieces in generator.stream(prompt, 1, writing):
        write_out(pieces[0], end="", flush=True)
    write_out("")


def write_many(generator: "LoadedGenerator", prompt: "Prompt", writing: "Writing", num_samples: int) -> None:
    """Several texts, each under its number."""
    for number, text in enumerate(texts(generator, prompt, writing, num_samples), start=1):
        say(f"--- {number}")
        write_out(text, flush=True)


def write_documents(generator: "LoadedGenerator", prompt: "Prompt", writing: "Writing", num_samples: int) -> None:
    """One document a line; those that the run was not trained on are marked, where it knows them."""
    known = generator.known_documents()
    for text in texts(generator, prompt, writing, num_samples):
        line = " ".join(text.split())
        write_out(f"{line} {MARK}" if known and line and line not in known else line, flush=True)
    if known:
        note(f"{MARK} not among the {len(known):,} of the training")


def texts(generator: "LoadedGenerator", prompt: "Prompt", writing: "Writing", num_samples: int) -> Iterator[str]:
    """Yield the samples, each with its prompt; some hundred are written together, fewer if they are long."""
    at_once = max(1, min(SAMPLES_AT_ONCE, TOKENS_AT_ONCE // writing.tokens))
    for number, chunk in enumerate(chunks(range(num_samples), at_once)):
        seed = None if writing.seed is None else (writing.seed + number) % 2**63
        together = [StringIO() for _ in chunk]
        for pieces in generator.stream(prompt, len(chunk), replace(writing, seed=seed)):
            for text, piece in zip(together, pieces, strict=True):
                text.write(piece)
        yield from (prompt.text + text.getvalue() for text in together)


if __name__ == "__main__":
    run_module(__spec__.name)
