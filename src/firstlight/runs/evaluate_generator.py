"""A trained generator on any split, or on the whole of another text."""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from firstlight.config import CharacterDataNode, ReviewDataNode
from firstlight.data.streams import CharacterData, ReviewTextData, StreamData
from firstlight.data.windows import EveryWindow, Windows
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

WHOLE = "whole"


def evaluate_generator(generator: LoadedGenerator, options: EvaluateOptions) -> Path:
    """Measure a split, or all of another text, write the metrics below the run's folder; returns where they are."""
    data = open_data(generator, options)
    refuse_other_data(generator, data.source, options.data)
    split: str = options.split or ("test" if data.has_split("test") else "validation")
    if options.split is None and options.data.path is not None:
        split = WHOLE
    positions = data.positions() if split == WHOLE else data.positions(split)
    if len(positions) < 2:
        raise UserError(f"{data.source.where} has no {split} split to measure; choose another --split")
    metrics = measure(generator, data, positions)
    folder = results_folder(generator, data.source, split, options)
    write_metrics(folder, generator, data.source, split, {"tokens": len(positions)}, metrics, options)
    print_results(folder, generator, data.source, split, metrics, "The metrics")
    return folder


def open_data(generator: LoadedGenerator, options: EvaluateOptions) -> StreamData:
    """The run's data, or other data, in the vocabulary of the run."""
    saved = generator.config["data"]
    node, data_class = (
        (CharacterDataNode, CharacterData) if "preparation" in saved else (ReviewDataNode, ReviewTextData)
    )
    changed = vars(changed_options(saved, node, options.data))
    data: StreamData = data_class(**{name: value for name, value in changed.items() if name != "_target_"})
    data.reader = generator.tokenizer
    data.setup("test")
    return data


@torch.inference_mode()
def measure(generator: LoadedGenerator, data: StreamData, positions: NDArray[np.int64]) -> dict[str, float]:
    """The metrics of callbacks/token_metrics.py, over windows that do not overlap. positions: (n,)."""
    context_length = generator.network.context_length
    windows, totals = Windows(), np.zeros(2)  # loss, hits
    last: list[torch.Tensor] = []
    for places in EveryWindow(positions, context_length, data.options.evaluation_batch_size):
        batch = data.table(windows[places])
        logits = generator.network(batch.token_ids)
        losses = F.cross_entropy(logits.transpose(1, 2), batch.targets, reduction="none")  # (batch, length)
        totals += [float(losses.sum(dtype=torch.float64)), float((logits.argmax(dim=2) == batch.targets).sum())]
        if losses.shape[1] == context_length:
            last.append(losses[:, -1])
    loss, accuracy = totals / (len(positions) - 1)
    metrics = {"loss": loss, "perplexity": float(np.exp(loss)), "accuracy": accuracy}
    counts = data.tokenizer.characters_per_token()
    targets = data.ids_at(positions)[1:]
    if counts is not None:
        metrics["bits_per_character"] = loss * len(targets) / float(counts[targets].sum()) / float(np.log(2))
    if last:
        metrics["last_position_loss"] = float(torch.cat(last).mean())
    if data.tokenizer.unknown_id is not None:
        metrics["unknown_share"] = float((targets == data.tokenizer.unknown_id).mean())
    return {name: float(value) for name, value in metrics.items()}
