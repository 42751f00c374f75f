"""Evaluation of a trained generator on a split, or on the whole of another text."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firstlight.callbacks.token_metrics import LastPosition, Perplexity, Ratio, TokenAccuracy, TokenMetric
from firstlight.data.cache import save_array
from firstlight.data.corpus_options import CharacterOptions
from firstlight.data.options import ReviewTextOptions
from firstlight.data.tables import TokenBatch
from firstlight.data.windows import EveryWindow, Stream, WindowBatch, overlapping_windows
from firstlight.errors import UserError
from firstlight.generator.bits_per_character import BitsPerCharacter
from firstlight.generator.data import CharacterData, ReviewTextData, StreamData
from firstlight.generator.run import LoadedGenerator
from firstlight.kind.data_changes import DataChanges, changed_options
from firstlight.kind.evaluation import (
    EvaluateOptions,
    chosen_split,
    print_results,
    refuse_other_data,
    results_folder,
    write_metrics,
)
from firstlight.kind.token_metrics import measure_tokens
from firstlight.text.statistics import WORD
from firstlight.text.text_tokenizers import decode

LARGEST_EXPONENT = 700.0  # e to the power of more is not a finite number
WHOLE = "whole"  # name of the split if all of another text is evaluated
LOSSES = "losses.npy"  # the loss of each token after the first, in nats: (tokens - 1,) float32


def evaluate_generator(generator: LoadedGenerator, options: EvaluateOptions) -> Path:
    """Evaluate a split or all of another text, write the metrics below the run's folder, and return their folder."""
    data = open_data(generator, options.data, options.log_dir)
    is_whole = options.split is None and options.data.path is not None
    split = WHOLE if is_whole else chosen_split(data.source, options, has_test=data.has_split("test"))
    stream = data.stream() if split == WHOLE else data.stream(split)
    if len(stream) < 2:
        remedy = "use more text" if split == WHOLE else "choose another --split"
        raise UserError(f"{data.source.where}: the {split} split has fewer than 2 tokens; {remedy}")
    context_length = generator.seen(options.context_length)
    if options.stride is not None and not 1 <= options.stride <= context_length:
        raise UserError(f"--stride {options.stride} must lie between 1 and {context_length}, the length of a window")
    metrics, losses = measure(generator, data, stream, context_length, options.stride)
    folder = results_folder(generator, data.source, split, options)
    size = {"tokens": len(stream), "predicted": len(losses)}
    write_metrics(folder, generator, data.source, split, size, metrics, options)
    save_array(folder / LOSSES, losses)
    note = predicted_note(len(losses), context_length, options.stride)
    print_results(folder, generator, data.source, split, metrics, "The metrics and the loss of each token", [note])
    return folder


def open_data(generator: LoadedGenerator, changes: DataChanges, log_dir: Path) -> StreamData:
    """Return the data in the vocabulary of the run. Raises UserError for other data that the user did not choose."""
    saved = generator.config["data"]
    is_of_characters = "preparation" in saved
    node = CharacterOptions if is_of_characters else ReviewTextOptions
    data_class = CharacterData if is_of_characters else ReviewTextData
    changed = vars(changed_options(saved, node, changes, log_dir))
    data: StreamData = data_class(**changed)
    data.reader = generator.tokenizer
    refuse_other_data(generator, data.source, changes)
    data.setup("test")
    return data


def measure(
    generator: LoadedGenerator, data: StreamData, stream: Stream, context_length: int, stride: int | None = None
) -> tuple[dict[str, float], NDArray[np.float32]]:
    """Return the metrics of callbacks/token_metrics.py, and the loss of each token after the first: (tokens - 1,).

    The windows do not overlap, or start `stride` tokens apart. The loss of the last position requires windows that do
    not overlap.
    """
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
        return generator.network(batch.token_ids)[:, -batch.targets.shape[1] :]

    found = measure_tokens(batches(), logits, metrics)
    if counts is not None and data.separator_id is None:
        found |= word_perplexity(found["loss"], decode(data.tokenizer, data.ids(stream)[1:].tolist()), len(stream) - 1)
    return found, losses.all()


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
