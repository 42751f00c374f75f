"""Base class of the loaded runs of all kinds, with network, configuration and record."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from torch import nn

from firstlight.errors import UserError
from firstlight.runs.folder import MOMENT, RunFolder, read_history
from firstlight.runs.gather import Damaged, metrics_of, read_run
from firstlight.runs.summary import SAMPLE, SAMPLE_MARK, Run, number

if TYPE_CHECKING:
    from pandas import DataFrame  # type: ignore[import-untyped]


class OfAllRuns(NamedTuple):
    """Parts of a run of any kind. The fields are those of `LoadedRun`."""

    folder: RunFolder
    checkpoint: Path
    network: Any
    config: dict[str, Any]
    data_source: str
    data_fingerprint: str


@dataclass(frozen=True, repr=False, eq=False)
class LoadedRun:
    """Trained run, read from its folder.

    The checkpoint is read when the run is loaded. `record`, `metrics` and `history` are read from the folder at their
    first use and then cached. Load a run that is still training again to get newer values.

    Attributes:
        folder: the paths of the run's files, such as `folder.vocabulary_file`.
        checkpoint: the path of the checkpoint that was loaded.
        network: the torch module with the trained weights, on the CPU and in evaluation mode.
        config: the resolved configuration of the training, as nested dicts.
        data_source: where the training data came from: `local`, `hub` or `sample` (generated data).
        data_fingerprint: the hash of the training data.
    """

    kind: ClassVar[str]

    folder: RunFolder
    checkpoint: Path
    network: nn.Module
    config: dict[str, Any]
    data_source: str
    data_fingerprint: str

    @property
    def path(self) -> Path:
        """The run's folder.

        >>> sorted(file.name for file in run.path.iterdir())
        """
        return self.folder.path

    @cached_property
    def record(self) -> dict[str, Any]:
        """The content of `metrics.json`: task, model, seed, status, data, seconds, versions, metrics and more.

        Raises UserError if the file is missing or damaged.

        >>> run.record["seconds"]["fit"]
        """
        return self.folder.read()

    @cached_property
    def metrics(self) -> dict[str, float]:
        """The metrics of the best checkpoint on the validation and test splits, by name, such as `val/loss`.

        Empty until the training has finished. Raises UserError if `metrics.json` is missing or damaged.

        >>> run.metrics["val/loss"]
        """
        try:
            return metrics_of(self.record)
        except Damaged as error:
            raise UserError(f"{self.path}: {error}; train the run again") from error

    @cached_property
    def history(self) -> "DataFrame":
        """The metrics during the training, as a pandas DataFrame with one row for each step with a logged metric.

        The first columns are `step` (the first step is 0), `epoch` and `seconds` (since the start of the fit, summed
        over all sessions of a resumed run). They are followed by a column of floats for each metric, in alphabetical
        order. A value is NaN at steps where the metric was not logged. The table is empty if nothing has been logged
        yet. Raises UserError with the line number if `history.jsonl` is damaged. An incomplete last line is ignored.

        >>> run.history.dropna(subset="val/loss")[["step", "val/loss"]]
        """
        import pandas  # imported here because the import takes half a second

        rows: dict[int, dict[str, Any]] = {}
        for line in read_history(self.folder.history_file):
            known = {name: value for name, value in line.items() if value is not None}
            rows[line["step"]] = rows.get(line["step"], {}) | known
        names = sorted({name for row in rows.values() for name in row} - set(MOMENT))
        types = {"step": "int64", "epoch": "Int64", "seconds": "float64"} | dict.fromkeys(names, "float64")
        table = pandas.DataFrame([rows[step] for step in sorted(rows)], columns=[*MOMENT, *names])
        try:
            return table.astype(types)
        except (TypeError, ValueError, OverflowError) as error:
            raise UserError(f"{self.folder.history_file} is damaged ({error}); train the run again") from error

    @property
    def num_counted(self) -> int:
        """The number of counts of the training texts that the network reads in addition to its weights.

        >>> run.num_counted
        """
        return 0

    def __repr__(self) -> str:
        row = read_run(self.folder, str(self.path), most=2)
        named = [f"{key}={row.keys[key]}" for key in ("task", "model", "experiment") if row.keys.get(key) is not None]
        counted = [f"{row.parameters:,} parameters"] if row.parameters is not None else []
        facts = self._facts() | {
            "data": f"{SAMPLE_MARK}, not real data" if self.data_source == SAMPLE else self.data_source,
            "metrics": _metrics(row),
            "status": _status(row),
            "folder": f"{self.path} ({self.checkpoint.name})",
        }
        title = f"{type(self).__name__}: {', '.join([*named, *counted])}".rstrip(": ")
        return "\n".join([title, *(f"  {name:<11}{fact}" for name, fact in facts.items())])

    def _facts(self) -> dict[str, str]:
        """Return the lines of the repr that only this kind of run has, by name."""
        raise NotImplementedError


def _metrics(row: Run) -> str:
    """Return the optimized metric on the validation and test splits as text."""
    metric = row.optimized_metric or ""
    names = [metric, f"test/{metric.partition('/')[2]}"]
    return ", ".join(f"{name} {number(row.metrics[name])}" for name in names if name in row.metrics) or "none yet"


def _status(row: Run) -> str:
    if row.why:
        return f"{row.status}: {row.why}"
    return row.status if row.steps is None else f"{row.status} after {row.steps:,} steps"
