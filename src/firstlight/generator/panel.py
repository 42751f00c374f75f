"""Panel of a generator in the playground: the text as it is written, and the candidates for each token."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from firstlight.decoding.generate import Sampling
from firstlight.errors import UserError
from firstlight.generator.network import Generator
from firstlight.generator.options import Preparation
from firstlight.generator.run import GeneratorRun
from firstlight.generator.writing import Writing
from firstlight.kind.panel import Event, Inputs, Panel, end_of
from firstlight.text.text_tokenizers import first_id
from firstlight.text.tokenizers import Tokenizer

PLAYS = ("ROMEO.", "The king", "To be, or not to be")
LONGEST_NAME = 40  # tokens of a document whose beginning is an example
WORDS = ("this is the best", "do not", "it broke after")
CHUNK_SECONDS = 0.05  # interval at which new text is sent
MOST_TOKENS = 2000
MOST_DOCUMENTS = 20  # documents, such as names, in one answer
NUM_CANDIDATES = 10
LARGEST_SEED = 2**53 - 1  # largest exact integer in JavaScript


class GeneratorPanel(Panel):
    """Panel that continues a prompt piece by piece."""

    kind = "generator"
    title = "Continue a text"
    streams: ClassVar[bool] = True
    network = Generator
    run: GeneratorRun

    def __init__(self, run: GeneratorRun) -> None:
        super().__init__(run)
        self._name = cache(run.readable)

    def examples(self) -> tuple[str, ...]:
        """Return prompts; for a run of short documents, no text and the beginnings of two that the run writes."""
        if self.run.config["data"].get("preparation") == Preparation.lines.name:
            options = Writing(tokens=LONGEST_NAME, seed=1)
            written = self.run.write(self.run.read("", options), 2, options)
            texts = ("", *(text[: text.find(" ") + 1 or -(-len(text) // 2)] for text in written))
        else:
            texts = WORDS if isinstance(self.run.tokenizer, Tokenizer) else PLAYS
        spelled = (next(filter(self._can_read, (text, text.lower())), None) for text in texts)
        return tuple(text for text in spelled if text is not None) or ("",)

    def page_data(self) -> dict[str, Any]:
        run = self.run
        return super().page_data() | {
            "separator_id": run.separator_id,
            "first_id": first_id(run.tokenizer, run.separator_id),
            "is_of_plays": run.is_of_plays,
        }

    def _can_read(self, text: str) -> bool:
        """Return whether the run's vocabulary has all tokens of a text."""
        try:
            prompt = self.run.read(text, Writing())
        except UserError:
            return False
        return self.run.tokenizer.unknown_id not in prompt.token_ids[0].tolist()

    def writing(self, asked: Inputs) -> Writing:
        """Return the sampling settings. asked: tokens, temperature (0: greedy), top_k, top_p, seed."""
        temperature = asked.number("temperature", 0, 5, 1.0) or 0.0
        top_p = asked.number("top_p", 0.01, 1, 1.0)
        return Writing(
            tokens=asked.integer("tokens", 1, MOST_TOKENS, 300) or 1,
            temperature=max(temperature, 0.01),
            top_k=asked.integer("top_k", 1, 1_000_000),
            top_p=None if top_p == 1 else top_p,
            greedy=temperature == 0,
            seed=asked.integer("seed", 0, LARGEST_SEED, 1),
        )

    def write(self, asked: Inputs) -> Iterator[Event]:
        """Return the events of a request. asked: text (the prompt), and the fields that `writing` reads."""
        return self.events(asked.text("text"), self.writing(asked))

    def warm_up(self) -> None:
        list(self.write(Inputs({"tokens": 2})))

    def events(self, text: str, writing: Writing) -> Iterator[Event]:
        """Yield the prompt as the run reads it, then the new text about 20 times per second, then the totals.

        A run of documents, such as names, writes several of them. Raises UserError for an invalid prompt.
        """
        text, notes = end_of(text)
        prompt = self.run.read(text, writing)
        notes += prompt.notes
        assert writing.seed is not None
        started, characters, tokens, documents = time.monotonic(), 0, 0, 0
        while not documents or (self.run.separator_id is not None and documents < MOST_DOCUMENTS):
            left = writing.tokens - tokens
            if left < 1:
                break
            yield {"begin": ("\n" if documents else "") + prompt.text, "notes": [] if documents else notes}
            one = replace(writing, tokens=left, seed=(writing.seed + documents) % (LARGEST_SEED + 1))
            for written in self._stream(prompt, one):
                characters += sum(len(token["text"]) for token in written)
                tokens += sum(bool(token["candidates"]) for token in written)
                yield {"tokens": written}
            documents += 1
        yield {"end": {"characters": characters, "seconds": round(time.monotonic() - started, 2)}}

    def _stream(self, prompt: Any, writing: Writing) -> Iterator[list[Event]]:
        """Yield one text in the pieces that are written within CHUNK_SECONDS."""
        seen: list[tuple[Tensor, Tensor]] = []  # logits and ids, (1, vocabulary) and (1,)
        pieces: list[str] = []
        until = time.monotonic() + CHUNK_SECONDS
        for (piece,) in self.run.stream(prompt, 1, writing, watch=lambda *step: seen.append(step)):
            pieces.append(piece)
            if time.monotonic() >= until and len(seen) == len(pieces):
                yield self._tokens(pieces, seen, writing)
                pieces.clear()
                seen.clear()
                until = time.monotonic() + CHUNK_SECONDS
        if seen or any(pieces):
            yield self._tokens(pieces, seen, writing)

    def _tokens(self, pieces: Sequence[str], seen: Sequence[tuple[Tensor, Tensor]], writing: Writing) -> list[Event]:
        """Return each piece with its candidates. Text that the decoder buffers until the end has no candidates."""
        tokens: list[Event] = []
        if seen:
            logits, ids = torch.cat([step[0] for step in seen]), torch.cat([step[1] for step in seen])
            found = candidates(logits, ids, replace(writing, never=self.run.tokenizer.unwritten))
            for piece, token_id, rows in zip(pieces, ids.tolist(), found, strict=False):
                shown = [[self._name(i), model, drawn, i == token_id] for i, model, drawn in rows]
                mark = "" if piece else self._name(token_id) if token_id == self.run.separator_id else "·"
                tokens.append({"text": piece, "mark": mark, "candidates": shown})
        rest = "".join(pieces[len(seen) :])
        return tokens + [{"text": rest, "mark": "", "candidates": []}] * bool(rest)


@torch.inference_mode()
def candidates(logits: Tensor, ids: Tensor, sampling: Sampling) -> list[list[tuple[int, float, float]]]:
    """Return the most likely tokens of each step, and the one that was sampled.

    logits: (steps, vocabulary); ids: (steps,) sampled ids. Each candidate is its id, its probability according to the
    network, and its probability after temperature, top-k and top-p.
    """
    allowed = logits.double()
    allowed[:, list(sampling.never)] = -torch.inf
    model = allowed.softmax(dim=1)
    if sampling.greedy:
        drawn = torch.zeros_like(model).scatter(1, ids[:, None], 1.0)
    else:
        drawn = sampling.probabilities(logits).double()
    best = model.topk(min(NUM_CANDIDATES, model.shape[1] - len(sampling.never)), dim=1).indices  # (steps, candidates)
    best = torch.cat((best, ids[:, None]), dim=1)
    rows = zip(best.tolist(), model.gather(1, best).tolist(), drawn.gather(1, best).tolist(), strict=True)
    each = ([(i, round(p, 5), round(q, 5)) for i, p, q in zip(*row, strict=True)] for row in rows)
    return [list({found[0]: found for found in row}.values()) for row in each]
