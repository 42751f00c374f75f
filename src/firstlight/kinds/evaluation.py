"""What the evaluations of all kinds share: the options, the choice of a split, and how results are written."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from firstlight.errors import UserError
from firstlight.kinds.data_changes import DataChanges
from firstlight.runs.folder import SAMPLE_NOTE, refuse_links, write_atomically

if TYPE_CHECKING:
    from firstlight.data.sources import Source
    from firstlight.data.text_sources import TextSource
    from firstlight.kinds.loaded import LoadedRun

    AnySource = Source | TextSource


@dataclass
class EvaluateOptions:
    """Evaluate a trained run; what it finds goes into the run's folder, below evaluate/."""

    run: Annotated[str, tyro.conf.Positional]
    """The run: its folder, `latest`, `latest:<task>`, `best:<metric>` or `best:<metric>:<task>`, such as
    latest:names or best:val/loss:names."""
    split: Literal["train", "validation", "test"] | None = None
    """Which rows: test by default, or validation where there is no test split. A single file given by --data.path is
    the test split; a generator reads all of it."""
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
    """The folder below which `latest` and `best` search runs."""


TRAINED_ON_SAMPLE_NOTE = "The run was trained on a GENERATED SAMPLE and is measured on real data here."
LONGEST_NAME = 60  # characters of a data file's name in the name of a folder
OF_SOME_KINDS = ("context_length", "beam_size", "length_penalty")  # options; each kind says which apply to it
RECORDED = ("split", "checkpoint", *OF_SOME_KINDS)  # in metrics.json


def refuse_other_data(loaded: "LoadedRun", source: "AnySource", changes: DataChanges) -> None:
    """Raise UserError if the run's own data was meant and something else was found, such as the sample.

    A file that the checkpoint alone names is read for nothing else than this comparison unless it is the run's own.
    """
    is_of_the_card = source.kind.value == "local" and changes.path is None and changes.source is None
    if (is_of_the_card or not changes.given()) and source.fingerprint != loaded.data_fingerprint:
        raise UserError(
            f"the run was trained on other data than {source.where}, which is what was found here; "
            f"set FIRSTLIGHT_DATA as in training, or name the data by data.path or data.source"
        )


def chosen_split(source: "AnySource", options: EvaluateOptions, *, has_test: bool) -> str:
    """Return the split to measure: that of --split, by default test, or validation where there is no test split.

    Raises UserError for another split than test of data that has no other.
    """
    split: str = options.split or ("test" if has_test else "validation")
    splits = getattr(source, "splits", [])
    if options.data.path is not None and split != "test" and splits == ["test"]:
        problem = f"{source.where} has no splits and is read as the test split"
        raise UserError(f"--split {split}: {problem}; leave --split out")
    return split


def results_folder(loaded: "LoadedRun", source: "AnySource", split: str, options: EvaluateOptions) -> Path:
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
    if changes := options.data.given():
        other = options.data.path or options.data.source or "changed"
        readable = re.sub(r"[^A-Za-z0-9.-]+", "_", Path(other).stem)[:LONGEST_NAME]
        name = f"{readable}-{_digest(source, changes)}-{name}"
    refuse_links(loaded.folder.path, "evaluate")
    folder = loaded.folder.path / "evaluate" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _digest(source: "AnySource", changes: dict[str, Any]) -> str:
    """A short hash of some data and of how it is read."""
    path = changes.get("path")
    if path is not None and Path(path).exists():
        changes = changes | {"path": str(Path(path).resolve())}
    content = json.dumps({"fingerprint": source.fingerprint, **changes}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def write_metrics(
    folder: Path,
    loaded: "LoadedRun",
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
        "options": {name: getattr(options, name) for name in RECORDED} | {"data": options.data.given()},
        "trained_on": {"source": loaded.data_source, "fingerprint": loaded.data_fingerprint},
        "data": {"source": source.kind.value, "path": source.where, "fingerprint": source.fingerprint},
        **size,
        "metrics": {f"{split}/{name}": value for name, value in metrics.items()},
    }
    write_atomically(folder / "metrics.json", json.dumps(record, indent=2) + "\n")


def print_results(
    folder: Path,
    loaded: "LoadedRun",
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


def sample_note(loaded: "LoadedRun", source: "AnySource") -> str | None:
    """Return what to say if the run was trained or measured on generated data."""
    from firstlight.data.options import SourceKind

    is_trained_on_sample = loaded.data_source == SourceKind.sample.value
    if source.kind is SourceKind.sample:
        return SAMPLE_NOTE if is_trained_on_sample else f"{SAMPLE_NOTE} The run was trained on real data."
    return TRAINED_ON_SAMPLE_NOTE if is_trained_on_sample else None
