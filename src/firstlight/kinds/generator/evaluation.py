"""Evaluation of a trained generator on a split, or on the whole of another text."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from firstlight.callbacks.token_metrics import (
    BitsPerCharacter,
    LastPosition,
    Perplexity,
    Ratio,
    TokenAccuracy,
    TokenMetric,
)
from firstlight.data.options import CharacterOptions, ReviewTextOptions
from firstlight.data.streams import CharacterData, ReviewTextData, StreamData
from firstlight.data.windows import EveryWindow, Stream, WindowBatch
from firstlight.errors import UserError
from firstlight.kinds.data_changes import DataChanges, changed_options
from firstlight.kinds.evaluation import (
    EvaluateOptions,
    chosen_split,
    print_results,
    refuse_other_data,
    results_folder,
    write_metrics,
)
from firstlight.kinds.generator.loaded import LoadedGenerator
from firstlight.kinds.token_metrics import measure_tokens

WHOLE = "whole"  # name of the split if all of another text is evaluated


def evaluate_generator(generator: LoadedGenerator, options: EvaluateOptions) -> Path:
    """Evaluate a split or all of another text, write the metrics below the run's folder, and return their folder."""
    data = open_data(generator, options.data, options.log_dir)
    is_whole = options.split is None and options.data.path is not None
    split = WHOLE if is_whole else chosen_split(data.source, options, has_test=data.has_split("test"))
    stream = data.stream() if split == WHOLE else data.stream(split)
    if len(stream) < 2:
        remedy = "use more text" if split == WHOLE else "choose another --split"
        raise UserError(f"{data.source.where}: the {split} split has fewer than 2 tokens; {remedy}")
    metrics = measure(generator, data, stream, generator.seen(options.context_length))
    folder = results_folder(generator, data.source, split, options)
    write_metrics(folder, generator, data.source, split, {"tokens": len(stream)}, metrics, options)
    print_results(folder, generator, data.source, split, metrics, "The metrics")
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


def measure(generator: LoadedGenerator, data: StreamData, stream: Stream, context_length: int) -> dict[str, float]:
    """Return the metrics of callbacks/token_metrics.py for windows that do not overlap."""
    bits, last = BitsPerCharacter(), LastPosition()
    counts, unknown_id = data.tokenizer.characters_per_token(), data.tokenizer.unknown_id
    bits.counts, last.context_length = None if counts is None else torch.from_numpy(counts), context_length
    metrics: list[TokenMetric] = [Perplexity(), TokenAccuracy(), bits, last]
    if unknown_id is not None:
        metrics.append(UnknownShare(unknown_id))
    windows = EveryWindow(stream, context_length, data.options.evaluation_batch_size)
    batches = (data.table(WindowBatch(torch.from_numpy(places))) for places in windows)
    return measure_tokens(batches, lambda batch: generator.network(batch.token_ids), metrics)


class UnknownShare(TokenMetric):
    """Share of the targets that are not in the vocabulary."""

    def __init__(self, unknown_id: int) -> None:
        self.unknown_id = unknown_id

    def add(self, ratio: Ratio, outputs: Any, batch: Any) -> None:  # noqa: ARG002
        ratio.update((batch.targets == self.unknown_id).sum(), batch.num_tokens)

    def named(self, value: Tensor) -> dict[str, Tensor]:
        return {"unknown_share": value}
