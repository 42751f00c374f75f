"""Figures of the predictions of a generator."""

import re

import numpy as np
import torch
import torch.nn.functional as F

from firstlight.data.windows import EveryWindow, WindowBatch
from firstlight.figures import plot_loss_per_position, plot_next_tokens, plot_surprising_text
from firstlight.generator.run import GeneratorRun
from firstlight.kind.kind import Drawn, NothingToDrawError
from firstlight.kind.run import SPLIT
from firstlight.kind.subject import Subject
from firstlight.text.text_tokenizers import CharacterTokenizer, decode

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
    found = subject.of_text(prompt, subject.run.next_tokens)
    figure = plot_next_tokens(found.tokens, found.probabilities, prompt=found.prompt)
    return Drawn(figure, [*notes, *found.notes])


def unfinished(text: str, run: GeneratorRun) -> str:
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
    title = f"Loss at each position of {len(found):,} {SPLIT} windows"
    return Drawn(plot_loss_per_position(found, title=title, unit=UNITS[is_characters]))


def surprise(subject: Subject) -> Drawn:
    """Return the figure of a text that is colored by bits per character."""
    text, notes = subject.chosen_text()
    if len(text) > MOST_CHARACTERS:
        if subject.text is not None:
            notes = [*notes, f"the figure shows the first {MOST_CHARACTERS} of {len(text):,} characters"]
        text = text[:MOST_CHARACTERS]
    found = subject.of_text(text, subject.run.surprise)
    characters = max(sum(map(len, found.pieces)), 1)
    mean = float(np.sum(found.bits)) / characters
    title = f"Surprise of the text: {mean:.2f} bits per character"
    figure = plot_surprising_text(found.pieces, found.bits_per_character, title=title)
    return Drawn(figure, [*notes, *found.notes])
