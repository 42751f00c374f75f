"""Figures of the predictions of a generator."""

import re

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from firstlight.data.windows import EveryWindow, WindowBatch
from firstlight.figures import plot_loss_per_position, plot_next_tokens, plot_surprising_text
from firstlight.generator import evaluation, insight
from firstlight.generator.data import StreamData
from firstlight.generator.run import LoadedGenerator
from firstlight.generator.writing import Writing
from firstlight.kind.attention import Attention, collect
from firstlight.kind.drawn import Drawn, NothingToDrawError
from firstlight.kind.exploration import MOST_ROWS, SPLIT, Exploration
from firstlight.kind.subject import Subject
from firstlight.kind.tokens import DrawnTokens, drawn_characters, drawn_words
from firstlight.text.readable import readable
from firstlight.text.text_tokenizers import CharacterTokenizer, decode

LONGEST_PASSAGE = 1200  # tokens of the validation split that are read to choose a text


class GeneratorExploration(Exploration):
    """Exploration of a generator and its text."""

    run: LoadedGenerator
    data_type = StreamData
    choice_note = "the text is the beginning of the validation split"

    def open_data(self) -> StreamData:
        return evaluation.open_data(self.run, self.changes, self.log_dir)

    def some_text(self, data: StreamData) -> str:
        ids = data.ids(data.stream(SPLIT), LONGEST_PASSAGE)
        separator = decode(data.tokenizer, [data.separator_id]) if data.separator_id is not None else ""
        text = decode(data.tokenizer, ids.tolist()).removeprefix(separator)
        _, blank_line, rest = text.partition("\n\n")
        return rest if blank_line and len(rest) > len(text) / 2 else text  # start at the beginning of a passage

    def made_up_text(self) -> tuple[str, str]:
        return self.run.generate(tokens=self.run.network.context_length, seed=0), "the text is written by the run"

    def seen(self, text: str) -> str:
        tokenizer, has_separator = self.run.tokenizer, self.run.separator_id is not None
        ids = tokenizer.encode_batch([text])[0][: self.run.network.context_length - has_separator]
        return decode(tokenizer, ids.tolist())

    @staticmethod
    def attention(run: LoadedGenerator, text: str) -> Attention:  # type: ignore[override]
        read = run.read(text, Writing())
        seen = read.token_ids[:, -run.network.context_length :]
        tokens = [readable(run.tokenizer, i, run.separator_id) for i in seen[0].tolist()]
        notes, loops = list(read.notes), run.config["model"].get("num_loops") or 1
        if loops > 1:
            notes.append(f"the blocks are applied {loops} times; the weights are those of the last time")
        return Attention(collect(run.network, (seen,), tokens, tokens), notes)

    def loss(self, data: StreamData) -> Tensor:
        windows = EveryWindow(data.stream(SPLIT), self.run.network.context_length, MOST_ROWS)
        places = next(iter(windows), None)
        if places is None:
            raise NothingToDrawError(f"{data.source.where}: the {SPLIT} split is shorter than the context")
        batch = data.table(WindowBatch(torch.from_numpy(places)))
        return F.cross_entropy(self.run.network(batch.token_ids).flatten(0, 1), batch.targets.flatten())

    def tokens(self) -> DrawnTokens:
        tokenizer = self.run.tokenizer
        if isinstance(tokenizer, CharacterTokenizer):
            return drawn_characters(tokenizer, self._readable)
        return drawn_words(tokenizer.words[: self.run.network.embedding.num_embeddings], self._readable)

    def _readable(self, token_id: int) -> str:
        return readable(self.run.tokenizer, token_id, self.run.separator_id)


MOST_CHARACTERS = 900  # characters in the figure of a text
PROMPT = 50  # largest number of characters of a prompt that is chosen automatically
LONG_WORD = re.compile(r"\w{5,}(?!\w)")
MOST_TOKENS = 200_000  # tokens for the loss at each position
UNITS = {True: "nats per character", False: "nats per token"}


def next_token(subject: Subject) -> Drawn:
    """Return the figure of the next token after the prompt."""
    prompt, notes = subject.chosen_text()
    if subject.text is None:
        prompt = unfinished(prompt, subject.run)
    found = subject.of_text(prompt, lambda chosen: insight.next_tokens(subject.run, chosen))
    figure = plot_next_tokens(found.tokens, found.probabilities, prompt=found.prompt)
    return Drawn(figure, [*notes, *found.notes])


def unfinished(text: str, run: LoadedGenerator) -> str:
    """Return the beginning of a text up to the middle of a word. For names, return the beginning of one name."""
    if run.separator_id is not None:
        text = next((part for part in text.split(decode(run.tokenizer, [run.separator_id])) if len(part) > 2), text)
        return text[:-2]
    ends = [word.end() for word in LONG_WORD.finditer(text[:PROMPT])]
    return text[: ends[-1] - 1] if ends else text[:PROMPT]


def loss_per_position(subject: Subject) -> Drawn:
    """Return the figure of the loss at each position of windows that do not overlap."""
    run, data = subject.run, subject.data
    context_length = run.network.context_length
    windows = EveryWindow(data.stream(SPLIT), context_length, data.options.evaluation_batch_size)
    losses: list[torch.Tensor] = []
    with torch.inference_mode():
        for places in windows:
            if places.shape[1] == context_length + 1 and sum(map(torch.numel, losses)) < MOST_TOKENS:
                batch = data.table(WindowBatch(torch.from_numpy(places)))
                logits = run.network(batch.token_ids).transpose(1, 2)
                losses.append(F.cross_entropy(logits, batch.targets, reduction="none"))
    if not losses:
        raise NothingToDrawError(f"{data.source.where}: the {SPLIT} split is shorter than the context")
    found = torch.cat(losses).numpy()
    is_characters = isinstance(data.tokenizer, CharacterTokenizer)
    figure = plot_loss_per_position(
        found, title=f"Loss at each position of {len(found):,} {SPLIT} windows", unit=UNITS[is_characters]
    )
    return Drawn(figure)


def surprise(subject: Subject) -> Drawn:
    """Return the figure of a text that is coloured by bits per character."""
    text, notes = subject.chosen_text()
    if len(text) > MOST_CHARACTERS:
        if subject.text is not None:
            notes = [*notes, f"the figure shows the first {MOST_CHARACTERS} of {len(text):,} characters"]
        text = text[:MOST_CHARACTERS]
    found = subject.of_text(text, lambda chosen: insight.surprise(subject.run, chosen))
    characters = max(sum(map(len, found.pieces)), 1)
    mean = float(np.sum(found.bits)) / characters
    figure = plot_surprising_text(
        found.pieces, found.bits_per_character, title=f"Surprise of the text: {mean:.2f} bits per character"
    )
    return Drawn(figure, [*notes, *found.notes])
