"""Text generation with a trained generator: prompts, sampling and decoding."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any, NamedTuple

import torch
from torch import Tensor

from firstlight.choices import require
from firstlight.decoding.generate import WINDOWS, Sampling, Window, generate
from firstlight.errors import UserError
from firstlight.generator.network import Generator
from firstlight.generator.plays import clean
from firstlight.text.text_tokenizers import PieceDecoder, TextTokenizer, first_id

log = logging.getLogger(__name__)

MOST_TOKENS = 100_000_000  # takes a day with a fast network, and fits into memory


@dataclass(frozen=True)
class Writing(Sampling):
    """Options of text generation, in addition to those of the sampling in decoding/generate.py.

    tokens: the largest number of tokens, since a document may end earlier; seed: the seed of the sampling, None for a
    random one; window: as in decoding/generate.py; context_length: the number of tokens that the network reads, None
    for all that it supports.
    """

    tokens: int = 500
    seed: int | None = None
    window: Window = "half"
    context_length: int | None = None

    def __post_init__(self) -> None:
        """Raise UserError if a value is out of range."""
        try:
            super().__post_init__()
            tokens, seed = f"tokens={self.tokens}", f"seed={self.seed}"
            require(1 <= self.tokens <= MOST_TOKENS, f"{tokens} must be at least 1 and at most {MOST_TOKENS:,}")
            require(self.seed is None or 0 <= self.seed < 2**63, f"{seed} must be at least 0 and below 2^63")
            require(self.window in WINDOWS, f"window={self.window} must be one of {', '.join(WINDOWS)}")
        except ValueError as error:
            raise UserError(str(error)) from error


class Prompt(NamedTuple):
    """A prompt for a network: the ids, (1, length), the text, and notes about its preparation."""

    token_ids: Tensor
    text: str
    notes: list[str]


def cut_note(num_tokens: int, length: int) -> str:
    """Return the note on a prompt of which the network sees only the last `length` tokens."""
    return f"the prompt has {num_tokens} tokens, but the network sees only the last {length}"


class Writer:
    """A generator with its tokenizer, which continues texts.

    network: the generator; tokenizer: its tokenizer; separator_id: the token between documents, None for one long text;
    is_of_plays: whether prompts are prepared as plays.
    """

    def __init__(
        self, network: Generator, tokenizer: TextTokenizer, separator_id: int | None, *, is_of_plays: bool = False
    ) -> None:
        self.network, self.tokenizer, self.separator_id = network, tokenizer, separator_id
        self.is_of_plays = is_of_plays

    def generate(self, prompt: str = "", **writing: Any) -> str:
        """Return the prompt and the text that the network writes after it.

        The keywords are the fields of `Writing`:
            tokens: maximum number of tokens to write, 500 by default. A run of documents, such as names, stops at the
                end of the document.
            temperature: values below 1 sharpen the distribution of the next token, values above 1 flatten it.
            top_k: sample only from the k most probable tokens.
            top_p: sample only from the most probable tokens that together reach the probability p.
            greedy: always choose the most probable token.
            seed: the same seed gives the same text. By default, each call gives another text.
            window: what the network reads when the text is longer than the context. `half`, the default, drops half of
                the context when it is full. `slide` drops one token at a time, which is slower.
            context_length: number of tokens that the network reads, if fewer than in training.

        Raises UserError for a value that is out of range.

        >>> run.generate("ROMEO.", tokens=200, temperature=0.8, seed=1)
        """
        return self.generate_many(prompt, 1, **writing)[0]

    def generate_many(self, prompt: str = "", num_samples: int = 1, **writing: Any) -> list[str]:
        """Return several continuations of one prompt, computed in one batch. The keywords are those of `generate`.

        >>> run.generate_many("ROMEO.", 3, tokens=50, seed=1)
        """
        options = Writing(**writing)
        read = self.read(prompt, options)
        for note in read.notes:
            log.warning("%s", note)
        return self.write(read, num_samples, options)

    def read(self, prompt: str, writing: Writing) -> Prompt:
        """Return a prompt as the network reads it, with the same preparation as the training text.

        Its `token_ids` have the shape (1, length). Its `notes` list changes and unknown characters. Raises UserError
        for a prompt that is not valid Unicode.

        >>> from firstlight.generator.writing import Writing
        >>> run.read("ROMEO.", Writing()).token_ids.shape
        """
        length = self.seen(writing.context_length)
        if any("\ud800" <= character <= "\udfff" for character in prompt):
            raise UserError("the prompt is not valid UTF-8; encode it in UTF-8")
        text = clean(prompt) if self.is_of_plays else prompt
        notes = [f"the prompt was prepared like the plays: {text!r}"] if text != prompt else []
        ids = self.tokenizer.encode_batch([text])[0].tolist()
        unknown_id = self.tokenizer.unknown_id
        if unknown_id is not None and unknown_id in ids:
            symbol = self.tokenizer.words[unknown_id]
            notes.append(f"tokens unknown to the run, read as {symbol}: {ids.count(unknown_id)}")
        if not ids:
            beginning = "a document" if self.separator_id is not None else "a new line"
            notes.append(f"the prompt is empty; the text begins as {beginning} does")
        if self.separator_id is not None or not ids:
            ids = [first_id(self.tokenizer, self.separator_id), *ids]
        if len(ids) > length:
            notes.append(cut_note(len(ids), length))
        return Prompt(torch.tensor([ids]), text, notes)

    def write(self, prompt: Prompt, num_samples: int, writing: Writing) -> list[str]:
        """Return several continuations of a prompt, each with the prompt. Raises UserError as `stream` does.

        >>> from firstlight.generator.writing import Writing
        >>> writing = Writing(tokens=50, seed=1)
        >>> run.write(run.read("ROMEO.", writing), 3, writing)
        """
        texts = [StringIO() for _ in range(num_samples)]
        for pieces in self.stream(prompt, num_samples, writing):
            for text, piece in zip(texts, pieces, strict=True):
                text.write(piece)
        return [prompt.text + text.getvalue() for text in texts]

    def stream(
        self,
        prompt: Prompt,
        num_samples: int,
        writing: Writing,
        watch: Callable[[Tensor, Tensor], object] | None = None,
    ) -> Iterator[list[str]]:
        """Yield the new piece of text of each sample after each token. Stop when all samples have ended.

        watch: function that is called for each token with the logits, (samples, vocabulary), and the sampled ids,
            (samples,).
        Raises UserError for a value that is out of range.

        >>> from firstlight.generator.writing import Writing
        >>> writing = Writing(tokens=50, seed=1)
        >>> for (piece,) in run.stream(run.read("ROMEO.", writing), 1, writing):
        ...     print(piece, end="")
        """
        if writing.window == "roll" and not getattr(self.network, "moves_positions", False):
            raise UserError("window=roll requires model.positions=rotary, relative or none; use half or slide")
        sampling = replace(writing, never=self.tokenizer.unwritten)
        device = next(self.network.parameters()).device
        random = torch.Generator(device)
        if writing.seed is None:
            random.seed()
        else:
            random.manual_seed(writing.seed)

        def choose(logits: Tensor) -> Tensor:
            chosen = sampling.choose(logits, random)
            if watch is not None:
                watch(logits, chosen)
            return chosen

        decoders = [PieceDecoder() for _ in range(num_samples)]
        is_over = [False] * num_samples
        prompts, length = prompt.token_ids.to(device).expand(num_samples, -1), self.seen(writing.context_length)
        steps = generate(self.network, prompts, writing.tokens, choose, window=writing.window, context_length=length)
        for token_ids in steps:
            pieces = []
            for i, token_id in enumerate(token_ids.tolist()):
                is_over[i] = is_over[i] or token_id == self.separator_id
                pieces.append("" if is_over[i] else decoders[i].decode(self.tokenizer.pieces[token_id]))
            yield pieces
            if all(is_over):
                break
        yield [decoder.decode(b"", final=True) for decoder in decoders]

    def seen(self, asked: int | None) -> int:
        """Return the number of tokens that the network reads: `asked`, or its context length by default.

        Raises UserError if `asked` is greater than the context length.

        >>> run.seen(None)
        """
        own = self.network.context_length
        if asked is not None and not 1 <= asked <= own:
            raise UserError(f"context_length={asked} must lie between 1 and {own}, the positions of the training")
        return asked or own
