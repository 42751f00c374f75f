"""`evaluate`: the metrics of a trained run of any kind, on any split or on other data."""

import hashlib
import json
import logging
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from firstlight.command_options import JsonOption, RunOptions, parse
from firstlight.errors import UserError
from firstlight.files.atomic import write_atomically
from firstlight.kind.data_changes import DataChanges
from firstlight.kind.kind import WHOLE, Measurement
from firstlight.kind.load import import_lightning, opened, options_for
from firstlight.runs.folder import SAMPLE_NOTE, refuse_links
from firstlight.terminal_text import note, only_json, write_json

if TYPE_CHECKING:
    from firstlight.data.sources import Source
    from firstlight.kind.run import Run

log = logging.getLogger(__name__)


@dataclass
class EvaluateOptions(JsonOption, RunOptions):
    """Evaluate a trained run. The results are written below evaluate/ in the run's folder.

    Args:
        split: The split to evaluate: test by default, or validation without a test split. A single file that is given
            by --data.path is the test split; a generator reads all of it.
        long_texts: For a classifier: cut texts longer than the context, or average its outputs for windows of the whole
            text; by default as in training.
        context_length: For a generator: evaluate with shorter windows than in training.
        stride: For a generator: evaluate overlapping windows, each this many tokens after the one before. Only the last
            tokens of a window count, so more than context length - stride tokens precede each of them. By default
            windows do not overlap, and the first tokens of each window are predicted from few tokens.
        beam_size: For a translator: the beam size of the additional scores by beam search, 4 by default.
        length_penalty: For a translator: the length penalty of the beam search, 1 by default; 0 prefers short
            translations.
    """

    split: Literal["train", "validation", "test"] | None = None
    data: DataChanges = field(default_factory=DataChanges)
    long_texts: Literal["cut", "windows"] | None = None
    context_length: int | None = None
    stride: int | None = None
    beam_size: int | None = None
    length_penalty: float | None = None


TRAINED_ON_SAMPLE_NOTE = "The run was trained on a GENERATED SAMPLE. This evaluation uses real data."
LONGEST_NAME = 60  # characters of the name of a data file in the name of a folder
OF_SOME_KINDS = {  # options that apply to some kinds only, and their names in that of a folder
    "long_texts": "",
    "context_length": "context",
    "stride": "stride",
    "beam_size": "beam",
    "length_penalty": "penalty",
}
RECORDED = ("split", "checkpoint", *OF_SOME_KINDS)  # options in metrics.json


def main() -> None:
    """Parse the command line and evaluate."""
    options = parse(EvaluateOptions, "evaluate")
    with only_json(wanted=options.json):
        evaluate(options)


def evaluate(options: EvaluateOptions) -> Path:
    """Evaluate a split, write the results below the run's folder, print the metrics, and return the results' folder.

    Raises UserError for an option that does not apply to the run, and for data that cannot be evaluated.
    """
    run = opened("evaluate", options)
    import_lightning()
    given = options_for(run, "measure", options, OF_SOME_KINDS)
    data = run.open_data(options.data, options.log_dir)
    is_whole = run.evaluates_whole_texts and options.split is None and options.data.path is not None
    split = WHOLE if is_whole else chosen_split(data.source, options, has_test=data.has_split("test"))
    measured = run.measure(data, split, **given)
    if split == "train" and not options.data.given():
        name, count = next(iter(measured.size.items()))
        log.warning("the run was trained on these %d %s", count, name)
    folder = results_folder(run, data.source, split, options)
    record = write_metrics(folder, run, data.source, split, measured, options)
    if measured.write is not None:
        measured.write(folder)
    if options.json:
        if warning := sample_note(run, data.source):
            note(warning)
        tables = {"per_class": measured.per_class, "per_group": measured.per_group}
        write_json({"folder": folder, **record, "notes": measured.notes, **tables})
    else:
        print_results(folder, run, data.source, split, measured)
    return folder


def chosen_split(source: "Source", options: EvaluateOptions, *, has_test: bool) -> str:
    """Return the split to evaluate: that of --split, by default test, or validation without a test split.

    Raises UserError for another split if the data has only a test split.
    """
    split: str = options.split or ("test" if has_test else "validation")
    splits = getattr(source, "splits", [])
    if options.data.path is not None and split != "test" and splits == ["test"]:
        problem = f"{source.where} has no splits and is read as the test split"
        raise UserError(f"--split {split}: {problem}; leave --split out")
    return split


def results_folder(run: "Run", source: "Source", split: str, options: EvaluateOptions) -> Path:
    """Create and return the folder of one evaluation below the run. Other options give another folder.

    Its name starts with the split, such as `test`, followed by the other options that were given. For other data, the
    name has a prefix: the name of the data, and a hash of its content and options.
    """
    given = [(label, getattr(options, option)) for option, label in OF_SOME_KINDS.items()]
    parts = [split, *([options.checkpoint] if options.checkpoint != "best" else [])]
    parts += [f"{label}{str(value).removesuffix('.0')}" for label, value in given if value is not None]
    if changes := options.data.given():
        other = options.data.path or options.data.source or "changed"
        readable = re.sub(r"[^A-Za-z0-9.-]+", "_", Path(other).stem)[:LONGEST_NAME]
        parts = [readable, _digest(source, changes), *parts]
    refuse_links(run.folder.path, "evaluate")
    folder = run.folder.path / "evaluate" / "-".join(parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _digest(source: "Source", changes: dict[str, Any]) -> str:
    """Return a short hash of the content and the options of some data."""
    path = changes.get("path")
    if path is not None and Path(path).exists():
        changes = changes | {"path": str(Path(path).resolve())}
    content = json.dumps({"fingerprint": source.fingerprint, **changes}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def write_metrics(
    folder: Path, run: "Run", source: "Source", split: str, measured: Measurement, options: EvaluateOptions
) -> dict[str, Any]:
    """Write metrics.json, which contains the run, the data, the options and the metrics, and return its content."""
    record = {
        "run": str(run.folder.path),
        "checkpoint": options.checkpoint,
        "split": split,
        "options": {name: getattr(options, name) for name in RECORDED} | {"data": options.data.given()},
        "trained_on": {"source": run.data_source, "fingerprint": run.data_fingerprint},
        "data": {"source": source.kind.value, "path": source.where, "fingerprint": source.fingerprint},
        **measured.size,
        "metrics": {f"{split}/{name}": value for name, value in measured.metrics.items()},
    }
    write_atomically(folder / "metrics.json", json.dumps(record, indent=2) + "\n")
    return record


def print_results(folder: Path, run: "Run", source: "Source", split: str, measured: Measurement) -> None:
    """Print the metrics and the folder of the results."""
    from firstlight.console import wide_console
    from firstlight.lab.reports.tables import Table

    metrics = [{"metric": name, "value": value} for name, value in measured.metrics.items()]
    console = wide_console()
    for line in (f"{run.folder.path} on {source.where}, {split}:", *measured.notes):
        console.print(line, soft_wrap=True)
    for rows in filter(None, (metrics, measured.per_class, measured.per_group)):
        cells = [[f"{each:.4f}" if isinstance(each, float) else str(each) for each in row.values()] for row in rows]
        console.print(Table("", list(rows[0]), cells).on_terminal())
    if warning := sample_note(run, source):
        console.print(warning, style="bold")
    console.print(f"{measured.contents} are in {folder}", soft_wrap=True)


def sample_note(run: "Run", source: "Source") -> str | None:
    """Return a note if the run was trained or evaluated on generated data, else None."""
    from firstlight.data.options import SourceKind

    is_trained_on_sample = run.data_source == SourceKind.sample.value
    if source.kind is SourceKind.sample:
        return SAMPLE_NOTE if is_trained_on_sample else f"{SAMPLE_NOTE} The run was trained on real data."
    return TRAINED_ON_SAMPLE_NOTE if is_trained_on_sample else None
