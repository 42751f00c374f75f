"""How a trained generator writes: prompts, sampling, and the text that comes of it."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from firstlight.decoding.generate import Window, generate
from firstlight.decoding.sampling import Sampling
from firstlight.errors import UserError
from firstlight.networks.generator import Generator
from firstlight.text.plays import clean
from firstlight.text.text_tokenizers import TextTokenizer, first_id

log = logging.getLogger(__name__)

MOST_TOKENS = 100_000_000  # a day of a fast network, and a text that fits into memory


@dataclass(frozen=True)
class Writing:
    """How a text is written.

    tokens: at most so many, a document ends earlier; temperature, top_k, top_p, greedy: as in decoding/sampling.py;
    seed: the same text again; window: as in decoding/generate.py; context_length: a shorter view than the network's.
    """

    tokens: int = 500
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    greedy: bool = False
    seed: int | None = None
    window: Literal["half", "slide"] = "half"
    context_length: int | None = None

    def __post_init__(self) -> None:
        """Raises UserError for a number that writes nothing."""
        if self.tokens < 1:
            raise UserError(f"tokens={self.tokens} must be at least 1")
        if self.tokens > MOST_TOKENS:
            raise UserError(f"tokens={self.tokens} must be at most {MOST_TOKENS:,}; continue a text by a prompt")
        if self.seed is not None and not 0 <= self.seed < 2**63:
            raise UserError(f"seed={self.seed} must be at least 0 and below 2^63")
        if self.window not in Window.__members__:
            raise UserError(f"window={self.window} must be one of {', '.join(Window.__members__)}")
        self.sampling()

    def sampling(self, never: Sequence[int] = ()) -> Sampling:
        """How each token is drawn."""
        try:
            return Sampling(self.temperature, self.top_k, self.top_p, self.greedy, never)
        except ValueError as error:
            raise UserError(str(error)) from error


class Prompt(NamedTuple):
    """A prompt as the network reads it: (1, length) ids, the text, and what had to be done to it."""

    token_ids: Tensor
    text: str
    notes: list[str]


@dataclass(frozen=True)
class Writer:
    """A generator with what it reads and writes text with.

    separator_id: what stands between documents, None for one long text; is_of_plays: prompts are prepared as plays are.
    """

    network: Generator
    tokenizer: TextTokenizer
    separator_id: int | None
    is_of_plays: bool = False

    def generate_many(self, prompt: str = "", num_samples: int = 1, **writing: Any) -> list[str]:
        """Several continuations of one prompt, written at once."""
        read = self.read(prompt, Writing(**writing))
        for note in read.notes:
            log.warning("%s", note)
        texts = [read.text] * num_samples
        for pieces in self.stream(read, num_samples, Writing(**writing)):
            texts = [text + piece for text, piece in zip(texts, pieces, strict=True)]
        return texts

    def read(self, prompt: str, writing: Writing) -> Prompt:
        """A prompt, prepared as the training text was, with what there is to say of it. Raises UserError."""
        length = self.seen(writing.context_length)
        if any("\ud800" <= character <= "\udfff" for character in prompt):
            raise UserError("the prompt is no valid UTF-8; write it in UTF-8")
        text = clean(prompt) if self.is_of_plays else prompt
        notes = [f"the prompt was prepared as the plays were: {text!r}"] if text != prompt else []
        ids = self.tokenizer.encode_batch([text])[0].tolist()
        if self.tokenizer.unknown_id is not None:
            unknown = [i for i, token_id in enumerate(ids) if token_id == self.tokenizer.unknown_id]
            if unknown:
                notes.append(f"unknown to the run, and read as {self.tokenizer.words[ids[unknown[0]]]}: {len(unknown)}")
        if not ids:
            beginning = "a document" if self.separator_id is not None else "a new line"
            notes.append(f"the prompt is empty; the text begins as {beginning} does")
        if self.separator_id is not None or not ids:
            ids = [first_id(self.tokenizer, self.separator_id), *ids]
        if len(ids) > length:
            notes.append(f"the prompt has {len(ids)} tokens, of which the network sees the last {length}")
        return Prompt(torch.tensor([ids]), text, notes)

    def stream(
        self,
        prompt: Prompt,
        num_samples: int,
        writing: Writing,
        watch: Callable[[Tensor, Tensor], object] | None = None,
    ) -> Iterator[list[str]]:
        """Yield, for each token, the new piece of text of each sample; stop when all samples have ended.

        watch: called for each token with the logits, (samples, vocabulary), and the ids that were drawn, (samples,).
        Raises UserError for a value that is out of range.
        """
        sampling = writing.sampling(self.tokenizer.unwritten)
        random = torch.Generator()
        if writing.seed is None:
            random.seed()
        else:
            random.manual_seed(writing.seed)

        def choose(logits: Tensor) -> Tensor:
            chosen = sampling.choose(logits, random)
            if watch is not None:
                watch(logits, chosen)
            return chosen

        decoders = [self.tokenizer.stream() for _ in range(num_samples)]
        is_over = [False] * num_samples
        steps = generate(
            self.network,
            prompt.token_ids.expand(num_samples, -1),
            writing.tokens,
            choose,
            window=Window[writing.window],
            context_length=self.seen(writing.context_length),
        )
        for token_ids in steps:
            pieces = []
            for i, token_id in enumerate(token_ids.tolist()):
                is_over[i] = is_over[i] or token_id == self.separator_id
                pieces.append("" if is_over[i] else decoders[i].write(token_id))
            yield pieces
            if all(is_over):
                break
        yield [decoder.end() for decoder in decoders]

    def seen(self, asked: int | None) -> int:
        """How many tokens are seen: all that the network can, or as many as are asked for. Raises UserError."""
        own = self.network.context_length
        if asked is not None and not 1 <= asked <= own:
            raise UserError(
                f"context_length={asked} must lie between 1 and {own}, the positions that the run was trained with"
            )
        return asked or own
