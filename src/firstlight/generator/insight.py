"""Probabilities of the next token, and the surprise of each token, of a generator for one text."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.errors import UserError
from firstlight.generator.run import GeneratorRun
from firstlight.generator.writing import Writing, cut_note
from firstlight.text.text_tokenizers import first_id

WINDOWS_AT_ONCE = 256


class NextTokens(NamedTuple):
    """Most likely tokens after a prompt, in descending order of probability.

    prompt: the prompt as the network reads it. tokens: readable names. probabilities: (count,), at temperature 1.
    """

    prompt: str
    tokens: list[str]
    probabilities: NDArray[np.float64]
    notes: list[str]


class Surprise(NamedTuple):
    """Surprise of each piece of a text, given the text before it.

    pieces: the tokens of the text, or its characters if the run reads characters. bits: (pieces,), -log2 of the
    probability of each piece.
    """

    pieces: list[str]
    bits: NDArray[np.float64]
    notes: list[str]

    @property
    def bits_per_character(self) -> NDArray[np.float64]:
        """The bits of each piece, divided by its number of characters: (pieces,)."""
        return self.bits / np.array([max(len(piece), 1) for piece in self.pieces])


def next_tokens(run: GeneratorRun, prompt: str, count: int = 15) -> NextTokens:
    """Return the `count` most likely tokens after a prompt. Raises UserError if `count` is below 1."""
    if count < 1:
        raise UserError(f"count={count} must be at least 1")
    read = run.read(prompt, Writing())
    with torch.inference_mode():
        logits = run.network(read.token_ids[:, -run.network.context_length :])[0, -1].double()  # (vocabulary,)
        logits[list(run.tokenizer.unwritten)] = -torch.inf
    probabilities, ids = logits.softmax(dim=0).topk(min(count, len(logits) - len(run.tokenizer.unwritten)))
    names = [run.readable(i) for i in ids.tolist()]
    return NextTokens(read.text, names, probabilities.numpy(), read.notes)


def surprise(run: GeneratorRun, text: str) -> Surprise:
    """Return the surprise of every token of a text, given as many tokens before it as the context allows.

    The first token is predicted from the token that starts every text. Raises UserError for an empty text.
    """
    if not text.strip():
        raise UserError("the text is empty; pass a text with at least one word")
    read = run.read(text, Writing())
    cut = cut_note(read.token_ids.shape[1], run.network.context_length)  # does not apply: windows read the whole text
    notes = [note for note in read.notes if note != cut]
    ids = read.token_ids[0]
    if run.separator_id is None:
        ids = torch.cat((torch.tensor([first_id(run.tokenizer, None)]), ids))
    decoder = run.tokenizer.stream()
    pieces = [decoder.write(i) for i in ids[1:].tolist()]
    if len(pieces) > run.network.context_length:
        context = f"at most {run.network.context_length} tokens before it"
        notes.append(f"each of the {len(pieces)} tokens is predicted from {context}")
    return Surprise(pieces, _bits(run, ids), notes)


@torch.inference_mode()
def _bits(run: GeneratorRun, ids: Tensor) -> NDArray[np.float64]:
    """Return -log2 of the probability of every token except the first, (length - 1,), given the context before it."""
    context_length = run.network.context_length
    head = run.network(ids[None, :-1][:, :context_length])[0]  # the first window predicts all its tokens at once
    logits = [head.double().log_softmax(dim=1).gather(1, ids[1 : len(head) + 1, None])[:, 0]]
    starts = range(1, len(ids) - context_length)
    for first in range(0, len(starts), WINDOWS_AT_ONCE):
        chosen = torch.tensor(starts[first : first + WINDOWS_AT_ONCE])
        windows = ids[chosen[:, None] + torch.arange(context_length)]  # (windows, context_length)
        last = run.network(windows)[:, -1].double().log_softmax(dim=1)
        logits.append(last.gather(1, ids[chosen + context_length][:, None])[:, 0])
    return -torch.cat(logits).numpy() / np.log(2)
