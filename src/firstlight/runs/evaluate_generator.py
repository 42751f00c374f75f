"""A trained generator on any split, or on the whole of another text."""

import math
from collections import defaultdict
from pathlib import Path

import torch

from firstlight.data.options import CharacterOptions, ReviewOptions
from firstlight.data.streams import CharacterData, ReviewTextData, StreamData
from firstlight.data.windows import EveryWindow, Stream, WindowBatch
from firstlight.errors import UserError
from firstlight.runs.evaluate import (
    EvaluateOptions,
    changed_options,
    print_results,
    refuse_other_data,
    results_folder,
    write_metrics,
)
from firstlight.runs.loaded_generator import LoadedGenerator
from firstlight.runs.token_totals import TokenTotals

WHOLE = "whole"  # what another text is called, of which all is measured


def evaluate_generator(generator: LoadedGenerator, options: EvaluateOptions) -> Path:
    """Measure a split, or all of another text, write the metrics below the run's folder; returns where they are."""
    data = open_data(generator, options)
    split: str = options.split or ("test" if data.has_split("test") else "validation")
    if options.split is None and options.data.path is not None:
        split = WHOLE
    stream = data.stream() if split == WHOLE else data.stream(split)
    if len(stream) < 2:
        remedy = "take more text" if split == WHOLE else "choose another --split"
        raise UserError(f"{data.source.where}: there is nothing to predict in its {split} split; {remedy}")
    metrics = measure(generator, data, stream, generator.seen(options.context_length))
    folder = results_folder(generator, data.source, split, options)
    write_metrics(folder, generator, data.source, split, {"tokens": len(stream)}, metrics, options)
    print_results(folder, generator, data.source, split, metrics, "The metrics")
    return folder


def open_data(generator: LoadedGenerator, options: EvaluateOptions) -> StreamData:
    """The run's data, or other data, in the vocabulary of the run. Raises UserError for other data unasked."""
    saved = generator.config["data"]
    node, data_class = (CharacterOptions, CharacterData) if "preparation" in saved else (ReviewOptions, ReviewTextData)
    changed = vars(changed_options(saved, node, options.data, options.log_dir))
    data: StreamData = data_class(**changed)
    data.reader = generator.tokenizer
    refuse_other_data(generator, data.source, options.data)
    data.setup("test")
    return data


@torch.inference_mode()
def measure(generator: LoadedGenerator, data: StreamData, stream: Stream, context_length: int) -> dict[str, float]:
    """The metrics of callbacks/token_metrics.py, over windows that do not overlap."""
    totals, others = TokenTotals(), defaultdict[str, float](float)
    counts, unknown_id = data.tokenizer.characters_per_token(), data.tokenizer.unknown_id
    for places in EveryWindow(stream, context_length, data.options.evaluation_batch_size):
        batch = data.table(WindowBatch(torch.from_numpy(places)))
        losses = totals.add(generator.network(batch.token_ids), batch.targets)  # (batch, length)
        others["unknown"] += int((batch.targets == unknown_id).sum()) if unknown_id is not None else 0
        others["characters"] += int(counts[batch.targets].sum()) if counts is not None else 0
        if losses.shape[1] == context_length:
            others["last_loss"] += float(losses[:, -1].sum())
            others["windows"] += len(losses)
    metrics = totals.metrics()
    if others["characters"]:
        metrics["bits_per_character"] = totals.loss / others["characters"] / math.log(2)
    if others["windows"]:
        metrics["last_position_loss"] = others["last_loss"] / others["windows"]
    if unknown_id is not None:
        metrics["unknown_share"] = others["unknown"] / totals.tokens
    return metrics
