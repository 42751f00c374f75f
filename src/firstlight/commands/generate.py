"""`generate`: text of a trained generator, printed token by token."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal

from firstlight.command_options import RunOptions, parse, refuse_text_after_run
from firstlight.errors import UserError
from firstlight.kind.load import opened
from firstlight.terminal_text import note, say, write_out

if TYPE_CHECKING:
    from firstlight.generator.run import GeneratorRun
    from firstlight.generator.writing import Prompt, Writing

MARK = "*"
SAMPLES_AT_ONCE = 256
TOKENS_AT_ONCE = 2**24  # of all samples that are written together; their texts are kept in memory
MOST_SAMPLES = 1_000_000  # a small network takes a day for so many samples of 500 tokens


@dataclass
class GenerateOptions(RunOptions):
    """Write text with a trained generator.

    A run of task=names writes one name per line and marks with * the names that are not in its training data.

    Args:
        prompt: The beginning of the text. If it is longer than the context, the network reads its end.
        tokens: The largest number of tokens to write. Names and other documents usually end earlier.
        temperature: The temperature of sampling: below 1 likely tokens are preferred, above 1 the text varies more.
        top_k: Sample only from the k likeliest tokens.
        top_p: Sample only from the likeliest tokens that together reach this probability.
        greedy: Choose the likeliest token each time.
        num_samples: The number of texts.
        seed: The seed of sampling. The same seed writes the same text; without a seed, each call writes another.
        window: The tokens that the network sees of a text longer than the context. half: when the context is full, its
            first half is dropped, which is fast. slide: always the last tokens, as in the 2024 post, which is slow.
            roll: the same with a cache, which is fast, for model.positions=rotary, relative or none.
        context_length: The number of tokens that the network sees, at most that of the training.
    """

    prompt: str = ""
    tokens: int = 500
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    greedy: bool = False
    num_samples: int = 1
    seed: int | None = None
    window: Literal["half", "slide", "roll"] = "half"
    context_length: int | None = None


def main() -> None:
    """Parse the command line and write."""
    refuse_text_after_run("generate", "--prompt")
    options = parse(GenerateOptions, "generate")
    if not 1 <= options.num_samples <= MOST_SAMPLES:
        raise UserError(f"num_samples={options.num_samples} must be from 1 to {MOST_SAMPLES:,}")
    generator: GeneratorRun = opened("generate", options)
    from firstlight.generator.writing import Writing

    names = [each.name for each in fields(Writing) if each.name != "never"]
    writing = Writing(**{name: getattr(options, name) for name in names})
    prompt = generator.read(options.prompt, writing)
    for each in prompt.notes:
        note(each)
    if generator.separator_id is not None:
        write_documents(generator, prompt, writing, options.num_samples)
    elif options.num_samples == 1:
        write_one(generator, prompt, writing)
    else:
        write_many(generator, prompt, writing, options.num_samples)


def write_one(generator: "GeneratorRun", prompt: "Prompt", writing: "Writing") -> None:
    """Print one text, each token as soon as it is written."""
    write_out(prompt.text, end="", flush=True)
    for pieces in generator.stream(prompt, 1, writing):
        write_out(pieces[0], end="", flush=True)
    write_out("")


def write_many(generator: "GeneratorRun", prompt: "Prompt", writing: "Writing", num_samples: int) -> None:
    """Print several texts, each below its number."""
    for number, text in enumerate(texts(generator, prompt, writing, num_samples), start=1):
        say(f"--- {number}")
        write_out(text, flush=True)


def write_documents(generator: "GeneratorRun", prompt: "Prompt", writing: "Writing", num_samples: int) -> None:
    """Print one document per line. Mark documents that are not in the training data if the run has stored these."""
    known = generator.known_documents()
    for text in texts(generator, prompt, writing, num_samples):
        line = " ".join(text.split())
        write_out(f"{line} {MARK}" if known and line and line not in known else line, flush=True)
    if known:
        note(f"{MARK} not among the {len(known):,} training documents")


def texts(generator: "GeneratorRun", prompt: "Prompt", writing: "Writing", num_samples: int) -> Iterator[str]:
    """Yield the samples, each with its prompt. Up to SAMPLES_AT_ONCE are written together, fewer if they are long."""
    from firstlight.kind.run import chunks  # imports torch

    at_once = max(1, min(SAMPLES_AT_ONCE, TOKENS_AT_ONCE // writing.tokens))
    for number, chunk in enumerate(chunks(range(num_samples), at_once)):
        seed = writing.seed if number == 0 or writing.seed is None else another_seed(writing.seed, number)
        yield from generator.write(prompt, len(chunk), replace(writing, seed=seed))


def another_seed(seed: int, number: int) -> int:
    """Return the seed of the samples that are written in a later step; neighboring seeds share none."""
    import numpy as np  # imported late: --help answers without it

    (drawn,) = np.random.SeedSequence([seed % 2**64, number]).generate_state(1, np.uint64)
    return int(drawn) % 2**63
