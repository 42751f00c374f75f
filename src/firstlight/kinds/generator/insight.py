"""What a generator makes of one text, as numbers: what may follow it, and how surprising it is."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.errors import UserError
from firstlight.kinds.generator.loaded import LoadedGenerator
from firstlight.lit.writing import Writing
from firstlight.text.readable import readable
from firstlight.text.text_tokenizers import first_id

WINDOWS_AT_ONCE = 256


class NextTokens(NamedTuple):
    """What may follow a prompt, the likeliest first.

    prompt: as the network reads it; tokens: for people; probabilities: (count,), as a sampler draws at temperature 1.
    """

    prompt: str
    tokens: list[str]
    probabilities: NDArray[np.float64]
    notes: list[str]


class Surprise(NamedTuple):
    """How little a generator expected each piece of a text, given what stands before it.

    pieces: the text cut into tokens, characters where the run reads characters; bits: (pieces,), -log2 of the
    probability of each.
    """

    pieces: list[str]
    bits: NDArray[np.float64]
    notes: list[str]

    @property
    def bits_per_character(self) -> NDArray[np.float64]:
        """The bits of each piece, shared by its characters: (pieces,)."""
        return self.bits / np.array([max(len(piece), 1) for piece in self.pieces])


def next_tokens(run: LoadedGenerator, prompt: str, count: int = 15) -> NextTokens:
    """The likeliest tokens after a prompt, at most `count`. Raises UserError."""
    if count < 1:
        raise UserError(f"count={count} must be at least 1")
    read = run.read(prompt, Writing())
    with torch.inference_mode():
        logits = run.network(read.token_ids[:, -run.network.context_length :])[0, -1].double()  # (vocabulary,)
        logits[list(run.tokenizer.unwritten)] = -torch.inf
    probabilities, ids = logits.softmax(dim=0).topk(min(count, len(logits) - len(run.tokenizer.unwritten)))
    names = [readable(run.tokenizer, i, run.separator_id) for i in ids.tolist()]
    return NextTokens(read.text, names, probabilities.numpy(), read.notes)


def surprise(run: LoadedGenerator, text: str) -> Surprise:
    """How surprised a generator is by every token of a text, which it reads with as many before it as it can see.

    The first token follows what a text without a beginning begins after. Raises UserError for an empty text.
    """
    if not text.strip():
        raise UserError("the text is empty; write one")
    read = run.read(text, Writing())
    notes = [note for note in read.notes if "of which the network sees" not in note]  # all is read, in windows
    ids = read.token_ids[0]
    if run.separator_id is None:
        ids = torch.cat((torch.tensor([first_id(run.tokenizer, None)]), ids))
    decoder = run.tokenizer.stream()
    pieces = [decoder.write(i) for i in ids[1:].tolist()]
    if len(pieces) > run.network.context_length:
        notes.append(f"each of the {len(pieces)} tokens is given at most {run.network.context_length} before it")
    return Surprise(pieces, _bits(run, ids), notes)


@torch.inference_mode()
def _bits(run: LoadedGenerator, ids: Tensor) -> NDArray[np.float64]:
    """-log2 of the probability of every token but the first, given at most a context before it: (length - 1,)."""
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
