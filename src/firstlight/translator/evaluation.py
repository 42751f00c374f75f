"""Evaluation of a trained translator: loss, BLEU, chrF, and all translations."""

from pathlib import Path

from firstlight.callbacks.token_metrics import Perplexity, TokenAccuracy
from firstlight.data.tables import Cuts
from firstlight.errors import UserError
from firstlight.files.row_writer import write_rows
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
from firstlight.terminal_text import say
from firstlight.translator.data import PairData
from firstlight.translator.data_options import PairOptions
from firstlight.translator.run import LoadedTranslator
from firstlight.translator.translation_scores import score


def evaluate_translator(translator: LoadedTranslator, options: EvaluateOptions) -> Path:
    """Evaluate and translate a split, write the results below the run's folder, and return their folder."""
    beam_size = 4 if options.beam_size is None else options.beam_size
    length_penalty = translator.length_penalty if options.length_penalty is None else options.length_penalty
    translator.search(beam_size, length_penalty)
    data = open_data(translator, options.data, options.log_dir)
    split = chosen_split(data.source, options, has_test=data.has_split("test"))
    rows = data.rows(split)
    if not len(rows):
        raise UserError(f"{data.source.where} has no {split} pairs; choose another --split")
    metrics = measure(translator, data, split)
    sources, references = data.texts(rows)
    columns = {"source": sources, "reference": references}
    for beams in sorted({1, beam_size}):
        search = translator.search(beams, length_penalty)
        translations = list(translator.stream(sources, search, Cuts(translator.network.context_length)))
        scores = score(translations, references)
        metrics |= scores.metrics(beams)
        columns["translation" if beams == 1 else f"translation_beam{beams}"] = translations
    cut = data.cuts(split).num_cut
    size = {"rows": len(rows), "cut": cut, "beam_size": beam_size, "length_penalty": length_penalty}
    folder = results_folder(translator, data.source, split, options)
    write_metrics(folder, translator, data.source, split, size, metrics, options)
    rows_of_csv = zip(*columns.values(), strict=True)
    write_rows(folder / "translations.csv", [dict(zip(columns, values, strict=True)) for values in rows_of_csv])
    print_results(folder, translator, data.source, split, metrics, "All translations")
    say(scores.signatures)
    return folder


def open_data(
    translator: LoadedTranslator, changes: DataChanges, log_dir: Path, only_split: str | None = None
) -> PairData:
    """Return the pairs in the vocabularies of the run. Raises UserError for others that the user did not choose.

    only_split: the split as which a single file is read; None: that of the changes.
    """
    changed = vars(changed_options(translator.config["data"], PairOptions, changes, log_dir))
    data = PairData(**changed)
    data.reader = translator.tokenizers
    data.only_split = only_split or changes.only_split
    refuse_other_data(translator, data.source, changes)
    data.setup("test")
    return data


def measure(translator: LoadedTranslator, data: PairData, split: str) -> dict[str, float]:
    """Return loss, perplexity and accuracy of the targets with teacher forcing."""
    batches = data.evaluation_loader(data.rows(split))
    return measure_tokens(batches, lambda batch: translator.network(*batch.inputs), [Perplexity(), TokenAccuracy()])
