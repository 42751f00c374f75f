"""A trained run on any split, or on other data."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from firstlight.errors import UserError
from firstlight.invocation import parse
from firstlight.runs.folder import SAMPLE_NOTE, refuse_links, write_atomically

if TYPE_CHECKING:
    from firstlight.data.sources import Source
    from firstlight.data.text_sources import TextSource
    from firstlight.runs.loaded_classifier import LoadedClassifier
    from firstlight.runs.loaded_generator import LoadedGenerator
    from firstlight.runs.loaded_translator import LoadedTranslator

    Loaded = LoadedClassifier | LoadedGenerator | LoadedTranslator
    AnySource = Source | TextSource


@dataclass
class DataChanges:
    """Other data than the run was trained on."""

    path: str | None = None
    """A file, a folder of split files, or a Hub id."""
    source: Literal["auto", "hub", "local", "sample"] | None = None
    """Where to look, as in training."""
    text_column: str | None = None
    """The column of the texts."""
    label_column: str | None = None
    """The column of the labels."""
    source_column: str | None = None
    """For a translator: the column of what is translated, or the ending of its file."""
    target_column: str | None = None
    """For a translator: likewise of the translations."""
    labels: Literal["binary", "stars", "classes"] | None = None
    """How the labels are read. A run that predicts negative or positive finds out by itself whether they are stars or
    two classes; stars or classes say which they are."""
    lowest_label: int | None = None
    """The label of one star, or of negative where the labels are two numbers."""
    preparation: Literal["text", "plays", "lines"] | None = None
    """For a generator: the text as it is, the plays in it, or a document of each line."""
    separator: str | None = None
    """For a generator: what stands between the lines of --data.preparation lines."""


@dataclass
class EvaluateOptions:
    """Evaluate a trained run; what it finds goes into the run's folder, below evaluate/."""

    run: Annotated[str, tyro.conf.Positional]
    """The run's folder, `latest`, or `best:<metric>`."""
    split: Literal["train", "validation", "test"] | None = None
    """Which rows: test by default, or validation where there is no test split. A classifier takes a single file given
    by --data.path as the test split, a generator reads all of it."""
    data: DataChanges = field(default_factory=DataChanges)
    context_length: int | None = None
    """For a generator: windows shorter than it was trained with, to see what fewer tokens are worth."""
    beam_size: int | None = None
    """For a translator: the beam whose scores are given beside the greedy ones, 4 by default."""
    length_penalty: float | None = None
    """For a translator: that of the beam, as in training by default; 0 prefers short translations."""
    checkpoint: Literal["best", "last"] = "best"
    """Which of the run's checkpoints."""
    log_dir: Path = Path("logs")
    """Where `latest` and `best:<metric>` are looked for."""


TRAINED_ON_SAMPLE_NOTE = "The run was trained on a GENERATED SAMPLE and is measured on real data here."
LONGEST_NAME = 60  # characters of a data file's name in the name of a folder
RECORDED = ("split", "checkpoint", "context_length", "beam_size", "length_penalty")  # in metrics.json


def main() -> None:
    """Parse the command line and evaluate."""
    evaluate(parse(EvaluateOptions, "evaluate"))


def evaluate(options: EvaluateOptions) -> Path:
    """Judge a split, write everything below the run's folder, print the metrics; returns where they are."""
    from firstlight.runs.load import load
    from firstlight.runs.loaded_classifier import LoadedClassifier
    from firstlight.runs.loaded_generator import LoadedGenerator

    loaded = load(options.run, checkpoint=options.checkpoint, log_dir=options.log_dir)
    if options.context_length is not None and not isinstance(loaded, LoadedGenerator):
        raise UserError("--context-length is for generators; other runs read as they were trained")
    for name in ("beam_size", "length_penalty"):
        if getattr(options, name) is not None and isinstance(loaded, LoadedClassifier | LoadedGenerator):
            raise UserError(f"--{name.replace('_', '-')} is for translators; leave it out")
    if isinstance(loaded, LoadedClassifier):
        from firstlight.runs.evaluate_classifier import evaluate_classifier

        return evaluate_classifier(loaded, options)
    if isinstance(loaded, LoadedGenerator):
        from firstlight.runs.evaluate_generator import evaluate_generator

        return evaluate_generator(loaded, options)
    from firstlight.runs.evaluate_translator import evaluate_translator

    return evaluate_translator(loaded, options)


def changed_options(saved: dict[str, Any], kind: type, changes: DataChanges, log_dir: Path) -> Any:
    """The run's own data options, of a class of data/options.py, with what the command line changes.

    log_dir: of the command line; the cache is below it.
    """
    from firstlight.data.options import Labels, Preparation, SourceKind
    from firstlight.runs.card_data import options_of_card

    options = options_of_card(saved, kind, log_dir / "cache", path=changes.path, source=changes.source)
    changed = given(changes)
    for name in changed.keys() - vars(options).keys():
        raise UserError(f"data.{name} means nothing to this kind of run; leave it out")
    if changes.labels is not None:
        changed["labels"] = Labels[changes.labels]
        if options.labels not in (Labels.binary, changed["labels"]):
            raise UserError(f"data.labels={changes.labels}: the run predicts {options.labels.value}; leave it out")
    if changes.preparation is not None:
        changed["preparation"] = Preparation[changes.preparation]
    if changes.source is not None:
        changed = {"path": None} | changed | {"source": SourceKind[changes.source]}
    elif changes.path is not None:
        changed["source"] = SourceKind.auto
    try:
        return replace(options, **changed)
    except ValueError as error:
        raise UserError(str(error)) from error


def refuse_other_data(loaded: "Loaded", source: "AnySource", changes: DataChanges) -> None:
    """Raise UserError if the run's own data was meant and something else was found, such as the sample.

    A file that the checkpoint alone names is read for nothing else than this comparison unless it is the run's own.
    """
    is_of_the_card = source.kind.value == "local" and changes.path is None and changes.source is None
    if (is_of_the_card or not given(changes)) and source.fingerprint != loaded.data_fingerprint:
        raise UserError(
            f"the run was trained on other data than {source.where}, which is what was found here; "
            f"set FIRSTLIGHT_DATA as in training, or name the data by data.path or data.source"
        )


def refuse_split(source: "AnySource", split: str, options: EvaluateOptions) -> None:
    """Raise UserError for another split than the test split of data that has no other."""
    splits = getattr(source, "splits", [])
    if options.data.path is not None and split != "test" and splits == ["test"]:
        problem = f"{source.where} has no splits and is read as the test split"
        raise UserError(f"--split {split}: {problem}; leave --split out")


def results_folder(loaded: "Loaded", source: "AnySource", split: str, options: EvaluateOptions) -> Path:
    """Make and return the folder below the run for one evaluation, which no other options share.

    Its name is the split, such as `test`, with what else is given for the run after it. For other data, the name of the
    data and a hash of its content and of all its options stand before it.
    """
    name = split if options.checkpoint == "best" else f"{split}-{options.checkpoint}"
    if options.context_length is not None:
        name = f"{name}-context{options.context_length}"
    if options.beam_size is not None:
        name = f"{name}-beam{options.beam_size}"
    if options.length_penalty is not None:
        name = f"{name}-penalty{str(options.length_penalty).removesuffix('.0')}"
    if changes := given(options.data):
        other = options.data.path or options.data.source or "changed"
        readable = re.sub(r"[^A-Za-z0-9.-]+", "_", Path(other).stem)[:LONGEST_NAME]
        name = f"{readable}-{_digest(source, changes)}-{name}"
    refuse_links(loaded.folder.path, "evaluate")
    folder = loaded.folder.path / "evaluate" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def given(changes: DataChanges) -> dict[str, Any]:
    """Return the options of other data that were given, by name."""
    return {name: value for name, value in vars(changes).items() if value is not None}


def _digest(source: "AnySource", changes: dict[str, Any]) -> str:
    """A short hash of some data and of how it is read."""
    path = changes.get("path")
    if path is not None and Path(path).exists():
        changes = changes | {"path": str(Path(path).resolve())}
    content = json.dumps({"fingerprint": source.fingerprint, **changes}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def write_metrics(
    folder: Path,
    loaded: "Loaded",
    source: "AnySource",
    split: str,
    size: dict[str, Any],
    metrics: dict[str, float],
    options: EvaluateOptions,
) -> None:
    """Write metrics.json: what was judged, with which options, and how well."""
    record = {
        "run": str(loaded.folder.path),
        "checkpoint": options.checkpoint,
        "split": split,
        "options": {name: getattr(options, name) for name in RECORDED} | {"data": given(options.data)},
        "trained_on": {"source": loaded.data_source, "fingerprint": loaded.data_fingerprint},
        "data": {"source": source.kind.value, "path": source.where, "fingerprint": source.fingerprint},
        **size,
        "metrics": {f"{split}/{name}": value for name, value in metrics.items()},
    }
    write_atomically(folder / "metrics.json", json.dumps(record, indent=2) + "\n")


def print_results(
    folder: Path,
    loaded: "Loaded",
    source: "AnySource",
    split: str,
    metrics: dict[str, float],
    contents: str,
    notes: Sequence[str] = (),
) -> None:
    """The metrics, and where everything is. contents: what else lies there; notes: how the data was read."""
    from rich.table import Table

    from firstlight.console import Console

    table = Table()
    table.add_column("metric")
    table.add_column("value", justify="right")
    for name, value in metrics.items():
        table.add_row(name, f"{value:.4f}")
    console = Console()
    console.print(f"{loaded.folder.path} on {source.where}, {split}:", soft_wrap=True)
    for note in notes:
        console.print(note, soft_wrap=True, markup=False, highlight=False)
    console.print(table)
    if warning := sample_note(loaded, source):
        console.print(warning, style="bold")
    console.print(f"{contents} are in {folder}", soft_wrap=True)


def sample_note(loaded: "Loaded", source: "AnySource") -> str | None:
    """Return what to say if the run was trained or measured on generated data."""
    from firstlight.data.options import SourceKind

    is_trained_on_sample = loaded.data_source == SourceKind.sample.value
    if source.kind is SourceKind.sample:
        return SAMPLE_NOTE if is_trained_on_sample else f"{SAMPLE_NOTE} The run was trained on real data."
    return TRAINED_ON_SAMPLE_NOTE if is_trained_on_sample else None
