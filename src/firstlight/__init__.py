"""firstlight: transformers from first principles, as experiments."""

from typing import TYPE_CHECKING

from firstlight.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from pandas import DataFrame  # type: ignore[import-untyped]

    from firstlight.kind.run import Run

__all__ = ["__version__", "list_runs", "load"]


def load(run: "str | Path", *, checkpoint: str = "best", log_dir: "str | Path" = "logs") -> "Run":
    """Return a trained run as an object that predicts, generates or translates.

    The run's folder is all that is read: not the data set, and nothing from a network. The object is a
    `ClassifierRun` (`.predict`), a `GeneratorRun` (`.generate`), a `TranslatorRun` (`.translate`) or a `MaskedRun`
    (`.fill_in`). Each also has `.network`, the torch module in evaluation mode; `.config`, a dict; `.metrics`, a dict
    of floats; `.history`, a pandas DataFrame; `.record`, the content of `metrics.json`; and `.path`, the folder.

    Args:
        run: the run's folder; or a folder that `firstlight export --to safetensors` wrote; or a checkpoint (`.ckpt`),
            also of a `Trainer` that trained a module of `for_data`; or `latest`, the newest run below log_dir that has
            a checkpoint, without the jobs of sweeps, and `latest:<task>`, the newest of a task; or `latest-sweep`, the
            newest job of a sweep; or `best:<metric>`, such as `best:val/accuracy`, the best run by this metric where
            all runs that have it belong to one task, and `best:<metric>:<task>`, the best of a task.
        checkpoint: `best`, by the metric that the run was optimized for, or `last`.
        log_dir: the folder below which `latest` and `best` search runs.

    Raises UserError, a ValueError, if there is no such run, or its checkpoint is missing or damaged.

    >>> import firstlight
    >>> run = firstlight.load("latest")
    >>> run  # what it is, what it was trained on, and how good it is
    >>> run.metrics["val/loss"]
    """
    from firstlight.kind.load import load  # torch takes a second, and most modules here do without it

    return load(run, checkpoint=checkpoint, log_dir=log_dir)


def list_runs(folder: "str | Path" = "logs") -> "DataFrame":
    """Return the table of `src/report.py` as a pandas DataFrame: one row for each run and baseline below a folder.

    The rows are in the order of the report. For each task the best group of runs that differ only in their seed comes
    first (`rank` 1), and within a group the best run. Then come the runs that are not counted: failed, interrupted,
    running, or damaged. `status` and `reason` say why.

    The columns are those of `report.csv`: `rank`, `task`, `model`, `experiment`, `dropout`, `context_length`, `seed`,
    every key that was swept, such as `optimizer.lr`, `status`, `reason`, `metric` (what ranks the runs) and its
    `value`, the mean, sample standard deviation and half of the 95% interval of the group (`group_mean`, `group_sd`,
    `group_half_width`), the `verdict` on it compared with the best group, every metric, such as
    `val/loss`, `parameters`, `steps`, `tokens`, `fit_seconds`, `tokens_per_second`, `compute_flops` and `folder`.
    Fractions are float64, counts Int64, flags bool. `folder` is a path that `firstlight.load` accepts, whereas in
    `report.csv` it is relative to the folder of the report.

    Raises UserError, a ValueError, if there is no such folder, or no run below it.

    >>> import firstlight
    >>> runs = firstlight.list_runs("logs")
    >>> runs[runs.status == "finished"][["task", "model", "value", "folder"]]
    >>> best = firstlight.load(runs.folder[0])
    """
    from pathlib import Path

    from firstlight.lab.reports.run_rows import list_runs  # the start of a script need not wait

    return list_runs(Path(folder))
