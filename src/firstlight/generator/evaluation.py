"""Evaluation of a trained generator on a split, or on the whole of another text."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.callbacks.token_metrics import LastPosition, Perplexity, Ratio, TokenAccuracy, TokenMetric
from firstlight.data.cache import save_array
from firstlight.data.tables import TokenBatch
from firstlight.data.windows import EveryWindow, WindowBatch, overlapping_windows
from firstlight.errors import UserError
from firstlight.generator.bits_per_character import BitsPerCharacter
from firstlight.generator.data import StreamData
from firstlight.kind.results import WHOLE, Measurement
from firstlight.kind.token_metrics import measure_tokens
from firstlight.text.statistics import WORD
from firstlight.text.text_tokenizers import decode

LARGEST_EXPONENT = 700.0  # e to the power of more is not a finite number
LOSSES = "losses.npy"  # the loss of each token after the first, in nats: (tokens - 1,) float32


def measure(run: Any, data: StreamData, split: str, context_length: int, stride: int | None) -> Measurement:
    """Return the metrics of a split, or of the whole text, and write the loss of each token after the first.

    The windows do not overlap, or start `stride` tokens apart. The loss of the last position requires windows that do
    not overlap. Raises UserError for a stride that is out of range, and for fewer than 2 tokens.

    run: a `GeneratorRun`.
    """
    stream = data.stream() if split == WHOLE else data.stream(split)
    if len(stream) < 2:
        remedy = "use more text" if split == WHOLE else "choose another --split"
        raise UserError(f"{data.source.where}: the {split} split has fewer than 2 tokens; {remedy}")
    if stride is not None and not 1 <= stride <= context_length:
        raise UserError(f"--stride {stride} must lie between 1 and {context_length}, the length of a window")
    bits, last, losses = BitsPerCharacter(), LastPosition(), EachLoss()
    counts, unknown_id = data.tokenizer.characters_per_token(), data.tokenizer.unknown_id
    bits.counts, last.context_length = None if counts is None else torch.from_numpy(counts), context_length
    metrics: list[TokenMetric] = [Perplexity(), TokenAccuracy(), bits, losses]
    if stride is None:
        metrics.append(last)
    if unknown_id is not None:
        metrics.append(UnknownShare(unknown_id))

    def batches() -> Iterator[TokenBatch]:
        size = data.options.evaluation_batch_size
        if stride is None:
            for places in EveryWindow(stream, context_length, size):
                yield data.table(WindowBatch(torch.from_numpy(places)))
        else:
            for places, num_new in overlapping_windows(stream, context_length, stride, size):
                batch = data.table(WindowBatch(torch.from_numpy(places)))
                yield batch._replace(targets=batch.targets[:, -num_new:])

    def logits(batch: TokenBatch) -> Tensor:
        return run.network(batch.token_ids)[:, -batch.targets.shape[1] :]

    found = measure_tokens(run, batches(), metrics, logits)
    if counts is not None and data.separator_id is None:
        found |= word_perplexity(found["loss"], decode(data.tokenizer, data.ids(stream)[1:].tolist()), len(stream) - 1)
    return Measurement(
        found,
        {"tokens": len(stream), "predicted": len(losses.all())},
        (predicted_note(len(losses.all()), context_length, stride),),
        lambda folder: save_array(folder / LOSSES, losses.all()),
        "The metrics and the loss of each token",
    )


def word_perplexity(loss: float, text: str, num_tokens: int) -> dict[str, float]:
    """Return the perplexity per word, e to the loss of a text divided by its number of words, under its name.

    loss: nats per token. Every token counts, white space and marks included, so generators with different tokenizers
    compare. Return {} for a text without words, or with so few of them that the perplexity is not a finite number.
    """
    num_words = len(WORD.findall(text))
    if not num_words or loss * num_tokens / num_words > LARGEST_EXPONENT:
        return {}
    return {"word_perplexity": math.exp(loss * num_tokens / num_words)}


def predicted_note(num_predicted: int, context_length: int, stride: int | None) -> str:
    """Return a note on how many tokens are predicted, and from how many tokens before them."""
    if stride is None:
        return f"{num_predicted:,} tokens predicted, in windows of {context_length} that do not overlap"
    least = context_length - stride + 1
    first = min(context_length, num_predicted)
    return f"{num_predicted:,} tokens predicted, all but the first {first} from {least} tokens or more"


class EachLoss(TokenMetric):
    """Store the loss of each target in the order of the text. It has no value as a metric."""

    def __init__(self) -> None:
        self.batches: list[Tensor] = []

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:  # noqa: ARG002
        self.batches.append(outputs["token_losses"].flatten().float())

    def all(self) -> NDArray[np.float32]:
        """Return all losses in the order of the text, (targets,)."""
        return torch.cat(self.batches).numpy()


class UnknownShare(TokenMetric):
    """Share of the targets that are not in the vocabulary."""

    def __init__(self, unknown_id: int) -> None:
        self.unknown_id = unknown_id

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:  # noqa: ARG002
        ratio.update((batch.targets == self.unknown_id).sum(), batch.num_tokens)

    def named(self, value: Tensor) -> dict[str, Tensor]:
        return {"unknown_share": value}
