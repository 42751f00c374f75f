"""Greedy decoding and beam search for translations."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from firstlight.choices import require
from firstlight.decoding.generate import for_inference

WIDEST_BEAM = 100


@dataclass(frozen=True)
class Search:
    """Options of the search for a translation.

    begin_id, end_id: the ids of [BEGIN] and [END]; beam_size: number of hypotheses, 1 for greedy decoding;
    length_penalty: alpha of ((5 + length) / 6)^alpha, by which a translation's log probability is divided (Wu et al.
    2016), 0 prefers short translations; never: ids that are never generated.
    """

    begin_id: int
    end_id: int
    beam_size: int = 1
    length_penalty: float = 1.0
    never: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError if a value is out of range or if `end_id` is in `never`."""
        beams, penalty = self.beam_size, self.length_penalty
        require(beams >= 1, f"beam_size={beams} must be at least 1")
        require(beams <= WIDEST_BEAM, f"beam_size={beams} must be at most {WIDEST_BEAM}; more than 10 rarely help")
        require(0 <= penalty < 10, f"length_penalty={penalty:g} must be at least 0 and below 10")
        if self.end_id in self.never:
            raise ValueError(f"end_id={self.end_id} is in never, so no translation could end; remove it from never")

    def score(self, log_probability: float, length: int) -> float:
        """Return the score by which translations are compared. length: number of tokens, [END] included."""
        return log_probability / ((5 + length) / 6) ** self.length_penalty


class Translation(NamedTuple):
    """The token ids of a translation, without [BEGIN] and [END], and its score."""

    token_ids: list[int]
    score: float


@torch.inference_mode()
def translate(network: Any, source_ids: Tensor, source_mask: Tensor | None, search: Search) -> list[list[Translation]]:
    """Return the best translations of each source, the best first: at least one, at most beam_size.

    network: an encoder-decoder with `encode`, `decode`, `new_cache` and `context_length`, as `EncoderDecoder`;
    source_ids: (batch, sources) int; source_mask: bool of that shape, True where a token is real. A translation has at
    most context_length tokens, [END] included. The search for a source ends when beam_size translations are complete
    and the best of them has at least the score of every hypothesis. Raises ValueError if the network's scores are NaN.
    """
    network = for_inference(network)
    beam, device, limit = search.beam_size, source_ids.device, network.context_length
    memory = network.encode(source_ids, source_mask).repeat_interleave(beam, dim=0)  # (batch * beam, sources, dim)
    mask = None if source_mask is None else source_mask.repeat_interleave(beam, dim=0)
    cache = network.new_cache()
    results: list[list[Translation]] = [[] for _ in source_ids]
    open_ones = results  # of the sources whose search is not finished
    written = torch.full((len(source_ids) * beam, 1), search.begin_id, device=device)
    scores = torch.full((len(source_ids), beam), -torch.inf, device=device)
    scores[:, 0] = 0.0  # all hypotheses are equal at first, so only one is used
    for length in range(1, limit + 1):
        logits = network.decode(written[:, -1:], memory, mask, cache=cache)[:, -1]  # (batch * beam, vocab_size)
        log_probabilities = logits.float().log_softmax(dim=1)
        log_probabilities[:, list(search.never)] = -torch.inf
        if length == limit:  # at the limit, every hypothesis gets [END]
            log_probabilities[:, torch.arange(logits.shape[1], device=device) != search.end_id] = -torch.inf
        totals = (scores[..., None] + log_probabilities.unflatten(0, scores.shape)).flatten(1)  # (batch, beam * vocab)
        rows, token_ids, scores = _best_beginnings(totals, written, open_ones, search, length)
        going_on = scores.max(dim=1).values.tolist()  # all at once, because each transfer from a device is slow
        still_open = [i for i, best in enumerate(going_on) if not _is_done(open_ones[i], best, search, length)]
        if not still_open:
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
    if not all(results):
        raise ValueError("the network's scores are NaN, so it cannot generate a translation; use another checkpoint")
    return [sorted(found, key=lambda translation: -translation.score)[:beam] for found in results]


def _best_beginnings(
    totals: Tensor, written: Tensor, finished: list[list[Translation]], search: Search, length: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Choose the next hypotheses, and add those that end with this token to the finished translations of their source.

    totals: (batch, beam * vocab_size), the score of each hypothesis with each token. Returns, for each new hypothesis,
    the row that it extends, its new token and its score: (batch, beam) each. A missing hypothesis has the score -inf.
    """
    beam = search.beam_size
    vocab_size = totals.shape[1] // beam
    # twice as many candidates as beams: at most one candidate per beam ends, so at least `beam` of them do not end
    best, places = totals.topk(2 * beam, dim=1)
    first_rows = torch.arange(len(totals), device=totals.device)[:, None] * beam
    rows, token_ids = first_rows + places // vocab_size, places % vocab_size  # (batch, candidates)
    ends = token_ids == search.end_id
    for i, rank in ((ends & (best > -torch.inf))[:, :beam]).nonzero().tolist():  # an end counts only among the best
        ids = written[rows[i, rank], 1:].tolist()
        finished[i].append(Translation(ids, search.score(float(best[i, rank]), length)))
    chosen_scores, chosen = best.masked_fill(ends, -torch.inf).topk(beam, dim=1)
    return rows.gather(1, chosen), token_ids.gather(1, chosen), chosen_scores


def _is_done(finished: list[Translation], best_going_on: float, search: Search, length: int) -> bool:
    """Return whether beam_size translations are complete and the best of them beats the best hypothesis."""
    is_full = len(finished) >= search.beam_size
    best = max((translation.score for translation in finished), default=-torch.inf)
    return best_going_on == -torch.inf or (is_full and best >= search.score(best_going_on, length))
