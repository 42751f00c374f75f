"""Writing a translation: the likeliest token each time, or the best of several beginnings kept side by side."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from firstlight.decoding.bare import bare

WIDEST_BEAM = 100


class Network(Protocol):
    """What is needed of an encoder-decoder."""

    context_length: int

    def encode(self, source_ids: Tensor, source_mask: Tensor | None = None) -> Tensor: ...

    def decode(
        self,
        token_ids: Tensor,
        memory: Tensor,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        cache: Any = None,
    ) -> Tensor: ...

    def new_cache(self) -> Any: ...


@dataclass(frozen=True)
class Search:
    """How a translation is looked for.

    begin_id, end_id: the marks of a target; beam_size: how many beginnings are kept, 1 being greedy; length_penalty:
    alpha of ((5 + length) / 6)^alpha, which a translation's log probability is divided by (Wu et al. 2016), 0 prefers
    short ones; never: ids that are not written; max_tokens: where a translation ends at the latest, None: where the
    context does.
    """

    begin_id: int
    end_id: int
    beam_size: int = 1
    length_penalty: float = 1.0
    never: tuple[int, ...] = ()
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for a number that finds nothing."""
        if self.beam_size < 1:
            raise ValueError(f"beam_size={self.beam_size} must be at least 1")
        if self.beam_size > WIDEST_BEAM:
            raise ValueError(f"beam_size={self.beam_size} must be at most {WIDEST_BEAM}; more than 10 are of no use")
        if not 0 <= self.length_penalty < 10:
            raise ValueError(f"length_penalty={self.length_penalty:g} must be at least 0 and below 10")
        if self.end_id in self.never:
            raise ValueError(f"end_id={self.end_id} is among never, so that no translation could end")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens={self.max_tokens} must be at least 1")

    def score(self, log_probability: float, length: int) -> float:
        """What translations of different lengths are compared by; the end counts as a token."""
        return log_probability / ((5 + length) / 6) ** self.length_penalty


class Translation(NamedTuple):
    """The ids of a translation, without marks, and its score."""

    token_ids: list[int]
    score: float


@dataclass
class _Sentence:
    """A source whose translation is being written: which one it is, and the translations that have come to an end."""

    number: int
    finished: list[Translation] = field(default_factory=list)


@torch.inference_mode()
def translate(
    network: Network, source_ids: Tensor, source_mask: Tensor | None, search: Search
) -> list[list[Translation]]:
    """The best translations of each source, the best first: at least one, at most beam_size.

    source_ids: (batch, sources) int; source_mask: bool of that shape, True where a token is real. A sentence is done
    when beam_size translations of it have ended and the best of them beats every one that goes on, as it is. Raises
    ValueError for a network whose scores are no numbers.
    """
    if isinstance(network, nn.Module):
        network = bare(network)
    beam, device = search.beam_size, source_ids.device
    limit = min(search.max_tokens or network.context_length, network.context_length)
    memory = network.encode(source_ids, source_mask).repeat_interleave(beam, dim=0)  # (batch * beam, sources, dim)
    mask = None if source_mask is None else source_mask.repeat_interleave(beam, dim=0)
    cache = network.new_cache()
    results: list[list[Translation]] = [[] for _ in source_ids]
    open_ones = [_Sentence(number) for number in range(len(source_ids))]
    written = torch.full((len(source_ids) * beam, 1), search.begin_id, device=device)
    scores = torch.full((len(source_ids), beam), -torch.inf, device=device)
    scores[:, 0] = 0.0  # all beginnings are the same at first: only one of them counts
    for length in range(1, limit + 1):
        logits = network.decode(written[:, -1:], memory, mask, cache=cache)[:, -1]  # (batch * beam, vocab_size)
        log_probabilities = logits.float().log_softmax(dim=1)
        log_probabilities[:, list(search.never)] = -torch.inf
        if length == limit:  # what has no end yet is ended here
            log_probabilities[:, torch.arange(logits.shape[1], device=device) != search.end_id] = -torch.inf
        rows, token_ids, scores = _best_beginnings(log_probabilities, scores, written, open_ones, search, length)
        going_on = scores.max(dim=1).values.tolist()  # all at once: each look at a device takes its time
        is_done = [_is_done(each, best, search, length) for each, best in zip(open_ones, going_on, strict=True)]
        for sentence, done in zip(open_ones, is_done, strict=True):
            if done or length == limit:
                results[sentence.number] = _ranked(sentence, beam)
        still_open = [i for i, done in enumerate(is_done) if not done]
        if not still_open or length == limit:
            break
        kept = torch.tensor(still_open, device=device)
        all_kept = len(still_open) == len(open_ones)
        open_ones = [open_ones[i] for i in still_open]
        rows, token_ids, scores = rows[kept].flatten(), token_ids[kept].flatten(), scores[kept]
        written = torch.cat((written[rows], token_ids[:, None]), dim=1)
        if beam > 1 or not all_kept:
            cache.select(rows, same_memory=all_kept)
        if not all_kept:
            memory, mask = memory[rows], None if mask is None else mask[rows]
    return results


def _best_beginnings(
    log_probabilities: Tensor,
    scores: Tensor,
    written: Tensor,
    sentences: list[_Sentence],
    search: Search,
    length: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Move what ends now to the sentences' finished translations, and choose what goes on.

    log_probabilities: (batch * beam, vocab_size); scores: (batch, beam). Returns for each of the beams that go on the
    row that it continues, the new token and the score: (batch, beam) each; -inf where nothing goes on.
    """
    num_sentences, beam = scores.shape
    vocab_size = log_probabilities.shape[1]
    totals = (scores.flatten()[:, None] + log_probabilities).view(num_sentences, beam * vocab_size)
    # twice as many candidates as beams: even if each beam ends once among them, enough go on
    best, places = totals.topk(2 * beam, dim=1)
    first_rows = torch.arange(num_sentences, device=scores.device)[:, None] * beam
    rows, token_ids = first_rows + places // vocab_size, places % vocab_size  # (batch, candidates)
    ends = token_ids == search.end_id
    for i, rank in ((ends & (best > -torch.inf))[:, :beam]).nonzero().tolist():  # an end counts among the best only
        ids = written[rows[i, rank], 1:].tolist()
        score = search.score(float(best[i, rank]), length)
        sentences[i].finished.append(Translation(ids, score))
    going_on = best.masked_fill(ends, -torch.inf)
    chosen_scores, chosen = going_on.topk(beam, dim=1)
    return rows.gather(1, chosen), token_ids.gather(1, chosen), chosen_scores


def _is_done(sentence: _Sentence, best_going_on: float, search: Search, length: int) -> bool:
    """Whether the best that has ended beats the best that goes on, with as many ended as there are beams."""
    if best_going_on == -torch.inf:
        return True
    if len(sentence.finished) < search.beam_size:
        return False
    return max(t.score for t in sentence.finished) >= search.score(best_going_on, length)


def _ranked(sentence: _Sentence, beam_size: int) -> list[Translation]:
    """The translations of a sentence, the best first. Raises ValueError if there is none."""
    if not sentence.finished:
        raise ValueError("the network's scores are no numbers, so that it writes nothing")
    return sorted(sentence.finished, key=lambda translation: -translation.score)[:beam_size]
