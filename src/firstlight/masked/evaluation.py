"""Evaluation of a trained masked language model: loss, perplexity and accuracy at the masked positions."""

from pathlib import Path

from firstlight.callbacks.token_metrics import Perplexity, TokenAccuracy
from firstlight.data.sources import find_source
from firstlight.data.tables import Cuts
from firstlight.errors import UserError
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
from firstlight.masked.data import MaskedReviewData
from firstlight.masked.data_options import MaskedReviewOptions
from firstlight.masked.run import LoadedMasked


def evaluate_masked(run: LoadedMasked, options: EvaluateOptions) -> Path:
    """Evaluate a split, write the metrics below the run's folder, print them, and return their folder.

    The masked positions are the same in each evaluation and in the validation of the training.
    """
    data = open_data(run, options.data, options.log_dir)
    split = chosen_split(data.source, options, has_test=data.has_split("test"))
    rows = data.rows(split)
    if not len(rows):
        raise UserError(f"{data.source.where} has no {split} rows; choose another --split")
    cuts = Cuts(data.options.context_length)
    cuts.count(data.encoded.ids.lengths[rows])
    cuts.warn()
    metrics = measure(run, data, split)
    folder = results_folder(run, data.source, split, options)
    size = {"rows": len(rows), "cut": cuts.num_cut}
    write_metrics(folder, run, data.source, split, size, metrics, options)
    print_results(folder, run, data.source, split, metrics, "The metrics")
    return folder


def open_data(
    run: LoadedMasked, changes: DataChanges, log_dir: Path, only_split: str | None = None
) -> MaskedReviewData:
    """Return the data in the vocabulary of the run. Raises UserError for other data that the user did not choose.

    only_split: the split as which a single file is read; None: that of the changes.
    """
    changed: MaskedReviewOptions = changed_options(run.config["data"], MaskedReviewOptions, changes, log_dir)
    data = MaskedReviewData(**vars(changed))
    data.reader = run.tokenizer
    data.source = find_source(changed, sample=changed.sample.value, only_split=only_split or changes.only_split)
    refuse_other_data(run, data.source, changes)
    data.setup("test")
    return data


def measure(run: LoadedMasked, data: MaskedReviewData, split: str) -> dict[str, float]:
    """Return loss, perplexity and accuracy at the masked positions of a split."""
    batches = data.evaluation_loader(data.rows(split))
    return measure_tokens(batches, lambda batch: run.network(*batch.inputs), [Perplexity(), TokenAccuracy()])
