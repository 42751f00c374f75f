"""`predict`: predictions of a trained run for texts of the command line, of a file or of standard input."""

import csv
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, tee
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from rich.progress import track

from firstlight.choices import listed
from firstlight.command_options import JsonOption, RunOptions, parse, refuse_text_after_run
from firstlight.console import Console
from firstlight.data.options import checked_separator
from firstlight.errors import UserError
from firstlight.files.lines import lines_of
from firstlight.files.rows import TEXT_COLUMN, Layout, Row, Write, check_output, read_rows, row_writer
from firstlight.invocation import invocation
from firstlight.kind.load import opened, options_for
from firstlight.terminal_text import only_json, say, shown, write_json

if TYPE_CHECKING:
    from firstlight.kind.run import PredictingRun

OF_SOME_KINDS = ("long_texts", "beam_size", "length_penalty")  # options that only some kinds have
STANDARD_INPUT = Path("-")


@dataclass
class PredictOptions(JsonOption, RunOptions):
    """Predict with a trained run, for texts on the command line or in a file.

    A classifier predicts the class of each text. A translator translates it. A masked language model fills in each
    [MASK].

    Args:
        text: One or more texts; for a run of pairs, each with ||| between its two texts; for multiple choice, between
            the context and each answer.
        input: A file of texts: CSV, TSV, JSONL, Parquet, or plain text with one text per line. - reads lines from
            standard input.
        output: The file for the predictions: CSV, TSV or JSONL. By default they are printed as CSV.
        text_column: The column of the texts in --input: by default the column of the training, or text if there is no
            such column. For a run of pairs of texts: two columns with a comma between them. For multiple choice: those
            of the context and of the answers.
        separator: The character between the columns of a CSV file; by default it is recognized in the header.
        encoding: The encoding of --input, such as cp1252.
        long_texts: For a classifier: cut texts longer than the context, or average its outputs for windows of the whole
            text; by default as in training.
        beam_size: For a translator: the number of candidates that the beam search keeps, 4 by default; 1 is greedy
            search.
        length_penalty: For a translator: the length penalty of the beam search, 1 by default; 0 prefers short
            translations, values above 1 prefer long ones.
    """

    text: list[str] = field(default_factory=list)
    input: Path | None = None
    output: Path | None = None
    text_column: str | None = None
    separator: str | None = None
    encoding: str = "utf-8"
    long_texts: Literal["cut", "windows"] | None = None
    beam_size: int | None = None
    length_penalty: float | None = None


def main() -> None:
    """Parse the command line and predict."""
    refuse_text_after_run("predict", "--text")
    options = parse(PredictOptions, "predict")
    if not options.text and any(each.partition("=")[0] == "--text" for each in sys.argv[1:]):  # RUN took the text
        command = f"{invocation('predict')} latest --text {shlex.quote(options.run)}"
        raise UserError(f"RUN is missing; name a run first, such as {command}")
    if bool(options.text) == (options.input is not None):
        raise UserError("give either --text or --input, a file of texts (- for standard input)")
    if options.text and options.output is not None:
        raise UserError(f"--output {options.output} requires --input; the predictions of --text are printed")
    if options.input is not None and options.output is not None and options.input.resolve() == options.output.resolve():
        raise UserError(f"--output {options.output} is the same file as --input; name another file")
    if options.json and options.output is not None:
        raise UserError(f"--output {options.output} does not apply to --json; leave one of them out")
    with only_json(wanted=options.json):
        predict(options)


def predict(options: PredictOptions) -> None:
    """Predict the texts of the command line or of a file, and print or write the predictions. Raises UserError."""
    rows = rows_to_predict(options)
    first = next(rows, None)
    if first is None:
        raise UserError("--input -: standard input is empty; write one text per line to it")
    if options.output is not None:
        check_output(options.output)  # before anything is computed
    run: PredictingRun = opened("predict", options)
    given = options_for(run, "show", options, OF_SOME_KINDS)
    if options.text and not options.json:
        run.show(options.text, **given)
        return
    predict_rows(run, given, first, rows, options)


def rows_to_predict(options: PredictOptions) -> Iterator[Row]:
    """Return the texts of the command line, of standard input or of a file, as rows. Raises UserError."""
    if options.input is None:
        return (Row(number, {TEXT_COLUMN: text}) for number, text in enumerate(options.text, 1))
    try:
        separator = checked_separator(options.separator, options.encoding)
    except ValueError as error:
        raise UserError(str(error)) from None
    if options.input == STANDARD_INPUT:
        return rows_of(sys.stdin.buffer, options.encoding)
    return read_rows(options.input, (), Layout(separator, options.encoding))


def rows_of(stream: BinaryIO, encoding: str) -> Iterator[Row]:
    """Yield the lines of a stream like the rows of a plain text file."""
    for line, text in lines_of(stream, "standard input", encoding):
        yield Row(line, {TEXT_COLUMN: text.rstrip("\r\n")})


def columns_of(options: PredictOptions, trained_on: list[str], row: Row) -> list[str]:
    """Return the columns of the texts: those that are named, else those of the training if the row has them, or `text`.

    Raises UserError if the row does not have one of them, or if several are named for a run of single texts.
    """
    if (named := options.text_column) is not None:
        columns = [named] if named in row.values else named.split(",")
    else:
        columns = trained_on if trained_on and row.values.keys() >= set(trained_on) else [TEXT_COLUMN]
    for column in columns:
        if column not in row.values:
            problem = f"{options.input}: there is no column {column}"
            raise UserError(f"{problem}; set --text-column to one of {listed(row.values, most=20)}")
    if len(trained_on) < 2 and len(columns) > 1:
        raise UserError(f"--text-column {named}: the run reads single texts; name one column")
    return columns


def predict_rows(
    run: "PredictingRun", given: dict[str, Any], first: Row, others: Iterator[Row], options: PredictOptions
) -> None:
    """Write every row with its prediction, a few thousand rows at a time. All columns are kept.

    given: the options of the run.
    """
    texts = [TEXT_COLUMN] if options.text else columns_of(options, run.text_columns, first)
    theirs = list(first.values)
    columns = [*(f"given_{name}" if name in run.columns else name for name in theirs), *run.columns]
    if len(set(columns)) < len(columns):
        raise UserError(f"{options.input} already has columns that begin with given_; rename them")
    is_hidden = options.output is None or not sys.stderr.isatty()
    with _writer(options, columns) as write:
        to_read, to_write = tee(chain([first], others))  # at most one batch of the run lies between them
        predictions = run.rows((_text_of(row, texts, options) for row in to_read), **given)
        both = zip(predictions, to_write, strict=True)
        for prediction, row in track(both, "Predicting", console=Console(stderr=True), disable=is_hidden):
            values = [row.values.get(name) for name in theirs]
            write(dict(zip(columns, [*values, *prediction], strict=True)))
    if options.output is not None:
        say(f"wrote {options.output}", to=sys.stderr)


def _text_of(row: Row, columns: list[str], options: PredictOptions) -> str | tuple[str, ...]:
    """Return the text of a row, or a tuple of the texts of several columns. A missing text is empty."""
    found = []
    for column in columns:
        text = row.values.get(column)
        if text is not None and not isinstance(text, str):
            raise UserError(f"{options.input}:{row.line}: column {column} holds {text!r}, not a text")
        found.append(text or "")
    return found[0] if len(columns) == 1 else tuple(found)


@contextmanager
def _writer(options: PredictOptions, columns: list[str]) -> Iterator[Write]:
    """Yield a function that writes a row to the file, or to standard output as CSV or as an object of JSON."""
    if options.json:
        yield lambda row: write_json(row, indent=None)
    elif options.output is None:
        table = csv.writer(sys.stdout)
        table.writerow(_cells(columns))
        yield lambda row: table.writerow(_cells(row[name] for name in columns))
    else:
        with row_writer(options.output, columns) as write:
            yield write


def _cells(values: Iterable[Any]) -> list[Any]:
    return [shown(value) if isinstance(value, str) else value for value in values]
