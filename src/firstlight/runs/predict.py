"""Predictions of a trained run for texts typed or in a file."""

import csv
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

from firstlight.data.files import Row, RowWriter, read_rows
from firstlight.errors import UserError
from firstlight.runs.chunks import TEXTS_AT_ONCE, chunks

if TYPE_CHECKING:
    from firstlight.runs.loaded_classifier import LoadedClassifier


@dataclass
class PredictOptions:
    """Predict with a trained run: texts on the command line, or a file of them."""

    run: Annotated[str, tyro.conf.Positional]
    """The run's folder, `latest`, or `best:<metric>`."""
    text: list[str] = field(default_factory=list)
    """One text or several."""
    input: Path | None = None
    """A file of texts: CSV, TSV, JSONL, Parquet, or plain text with one a line."""
    output: Path | None = None
    """Where to write the predictions: CSV, TSV, JSONL or Parquet. Default: as CSV to the terminal."""
    text_column: str = "text"
    """The column of the texts."""
    checkpoint: Literal["best", "last"] = "best"
    """Which of the run's checkpoints."""
    log_dir: Path = Path("logs")
    """Where `latest` and `best:<metric>` are looked for."""


def main() -> None:
    """Parse the command line and predict."""
    options = tyro.cli(PredictOptions)
    if bool(options.text) == (options.input is not None):
        raise UserError("give either --text or --input, a file of texts")
    if options.text and options.output is not None:
        raise UserError(f"--output {options.output} takes the predictions of --input; those of --text are printed")
    from firstlight.runs.load import load_classifier

    if options.input is None:
        classifier = load_classifier(options.run, checkpoint=options.checkpoint, log_dir=options.log_dir)
        note_sample(classifier)
        print_predictions(classifier, options.text)
        return
    rows = read_rows(options.input)
    first = next(rows)
    if options.text_column not in first.values:
        raise UserError(
            f"{options.input}: there is no column {options.text_column}; set --text-column to one of "
            f"{', '.join(first.values)}"
        )
    if options.output is not None:
        RowWriter(options.output, [])  # an ending that cannot be written is named before anything is computed
    classifier = load_classifier(options.run, checkpoint=options.checkpoint, log_dir=options.log_dir)
    note_sample(classifier)
    predict_file(classifier, list(first.values), chain([first], rows), options)


def note_sample(classifier: "LoadedClassifier") -> None:
    """Say, beside every prediction, that a run has seen nothing but generated reviews."""
    if classifier.data_source == "sample":
        print("note: this run was trained on a GENERATED SAMPLE, not on real data", file=sys.stderr)


def print_predictions(classifier: "LoadedClassifier", texts: list[str]) -> None:
    """One line for each text: the label, then the probability of every class."""
    for text in texts:
        prediction = classifier.predict(text)
        if not classifier.tokenizer.encode(text):
            print(
                "note: no word of two letters or more; this is what the network says of an empty text", file=sys.stderr
            )
        shares = "  ".join(f"{name} {share:.3f}" for name, share in prediction.probabilities.items())
        print(f"{prediction.label}  ({shares})")


def predict_file(
    classifier: "LoadedClassifier", given: list[str], rows: Iterator[Row], options: PredictOptions
) -> None:
    """Write every row of a file with its label and probabilities, a few thousand rows at a time.

    given: the columns of the input, all of which are kept.
    """
    ours = ["label", *(f"probability_{name}" for name in classifier.class_names)]
    columns = [f"given_{name}" if name in ours else name for name in given] + ours
    if len(set(columns)) < len(columns):
        raise UserError(f"{options.input} has predictions of predictions: rename its columns that begin with given_")
    with _writer(options.output, columns) as write, _bar(options) as advance:
        for chunk in chunks(rows, TEXTS_AT_ONCE):
            predictions = classifier.predict_many([_text_of(row, options) for row in chunk])
            for row, prediction in zip(chunk, predictions, strict=True):
                values = [row.values.get(name) for name in given]
                write(dict(zip(columns, [*values, prediction.label, *prediction.probabilities.values()], strict=True)))
            advance(len(chunk))
    if options.output is not None:
        print(f"wrote {options.output}", file=sys.stderr)


def _text_of(row: Row, options: PredictOptions) -> str:
    text = row.values.get(options.text_column)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise UserError(f"{options.input}:{row.line}: column {options.text_column} holds {text!r}, not a text")
    return text


@contextmanager
def _writer(output: Path | None, columns: list[str]) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that writes a row into the file, or as CSV to the terminal."""
    if output is None:
        table = csv.DictWriter(sys.stdout, columns)
        table.writeheader()
        yield table.writerow
    else:
        with RowWriter(output, columns) as file:
            yield file.write


@contextmanager
def _bar(options: PredictOptions) -> Iterator[Callable[[int], None]]:
    """A count of the texts done, on standard error."""
    columns = (SpinnerColumn(), "{task.completed:,} texts", TimeElapsedColumn())
    hidden = options.output is None or not sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), disable=hidden) as progress:
        task = progress.add_task("predict", total=None)
        yield lambda count: progress.advance(task, count)
