"""Trackio: a logger whose dashboard is local. trackio is an extra and imported late."""

import contextlib
import io
import json
import os
import sqlite3
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger
from lightning.pytorch.loggers.logger import rank_zero_experiment
from lightning.pytorch.utilities import rank_zero_only
from omegaconf import DictConfig
from PIL import Image

from firstlight.errors import UserError
from firstlight.invocation import install_command
from firstlight.runs.wandb_logger import ending, names_of


class TrackioLogger(Logger):
    """Logger that writes a run's numbers, figures and tables to Trackio's database in a local folder."""

    name = "trackio"

    def __init__(
        self,
        folder: str,
        project: str = "firstlight",
        name: str | None = None,
        group: str | None = None,
        tags: Sequence[str] = (),
        *,
        is_resumed: bool = False,
    ) -> None:
        """Prepare a run of Trackio, which starts with the first numbers.

        folder: Trackio's folder, for all runs that one dashboard shows.
        is_resumed: continue the newest run of this name, if there is one.
        Raises UserError if trackio is not installed, or if its settings would send the run to a server.
        """
        super().__init__()
        for variable in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
            if os.environ.get(variable):
                raise UserError(f"{variable} is set, but logger=trackio writes to a local folder; unset {variable}")
        os.environ["TRACKIO_DIR"] = str(Path(folder).absolute())  # trackio reads it when it is imported
        try:
            from trackio.utils import TRACKIO_DIR
        except ImportError as error:
            raise UserError(f"logger=trackio requires trackio: {install_command('trackio')}") from error
        if str(TRACKIO_DIR) != os.environ["TRACKIO_DIR"]:
            raise UserError(f"logger.trackio.folder: this process writes to {TRACKIO_DIR} already; start a new one")
        self._options = {"project": project, "name": name, "group": group}
        self._resume = "allow" if is_resumed else "never"
        self._config: dict[str, Any] = {"tags": list(tags), "status": "running"}
        self._run: Any = None
        self._process = self._first_process = os.getpid()

    @property
    def version(self) -> str | None:
        return self._options["name"]

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        """Trackio's run, which starts here if it has not started in this process. Its threads do not survive a fork."""
        if self._run is None or self._process != os.getpid():
            import trackio

            options = self._options | {"config": self._config, "embed": False}
            before, self._process = self._run, os.getpid()
            trackio.context_vars.current_run.set(None)
            with contextlib.redirect_stdout(io.StringIO()):  # it prints the folder and the run's name
                self._run = trackio.init(**options, resume=self._resume, auto_log_gpu=False, auto_log_cpu=False)
            if before is not None:
                self._run.id = before.id
        return self._run

    @rank_zero_only
    def finalize(self, status: str) -> None:  # noqa: ARG002
        """Write what is left if this process was forked for the training and ends with it."""
        if self._run is not None and self._first_process != self._process == os.getpid():
            self._run.finish()

    @rank_zero_only
    def go_on(self, lines: Iterable[tuple[int, Mapping[str, Any]]], first_step: int) -> None:
        """Continue a run: keep its figures and tables of earlier steps, and write its numbers again.

        A process that was killed may have written a part of a step.

        lines: the steps before first_step in order, with the numbers of each.
        """
        from trackio.sqlite_storage import SQLiteStorage

        run = self.experiment
        path = SQLiteStorage.get_project_db_path(run.project)
        if path.exists():
            with SQLiteStorage._get_process_lock(run.project), contextlib.closing(sqlite3.connect(path)) as base, base:
                rows = base.execute("SELECT id, step, metrics FROM metrics WHERE run_id = ?", (run.id,)).fetchall()
                gone = [(row,) for row, step, values in rows if step >= first_step or not _has_media(values)]
                base.executemany("DELETE FROM metrics WHERE id = ?", gone)
        for step, metrics in lines:
            self.log_metrics(metrics, step)

    def reopen(self) -> None:
        """Continue a run that has ended, with its configuration. Raises UserError if the database does not have it."""
        from trackio.sqlite_storage import SQLiteStorage

        run = self.experiment
        run.config = SQLiteStorage.get_run_config(run.project, run_id=run.id)
        if run.config is None:
            raise UserError(f"{os.environ['TRACKIO_DIR']} has no run {self.version}, to which --log would add figures")

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Log numbers, figures or tables of a step."""
        self.experiment.log(dict(metrics), step)

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *_: Any, **__: Any) -> None:
        """Add the hyperparameters to the run's configuration."""
        values = vars(params) if isinstance(params, Namespace) else dict(params)
        self._config.update(values)
        self.experiment.config.update(values)

    def log_picture(self, name: str, picture: Image.Image, step: int) -> None:
        """Log a picture."""
        import trackio

        self.log_metrics({name: trackio.Image(picture)}, step)

    def log_table(self, name: str, columns: Sequence[str], cells: Sequence[Sequence[object]], step: int) -> None:
        """Log a table."""
        import trackio

        self.log_metrics({name: trackio.Table(columns=list(columns), data=[list(row) for row in cells])}, step)


def logger_options(config: DictConfig, node: DictConfig, task: str, *, is_sample: bool) -> dict[str, Any]:
    """Return the options that conf/logger/trackio.yaml leaves to the run: the names and the tags."""
    name = run_name(Path(config.paths.output_dir), Path(config.paths.log_dir), task)
    return {"is_resumed": bool(config.resume), **names_of(config, node, name, is_sample=is_sample)}


def run_name(folder: Path, logs: Path, task: str) -> str:
    """Return the name of a run: its task and its folder below the log folder."""
    folder, logs = folder.absolute(), logs.absolute()
    inside = folder.relative_to(logs) if folder.is_relative_to(logs) else folder
    parts = [part for part in inside.parts if part.strip("/")]
    return "-".join(parts if parts[:1] == [task] else [task, *parts])


def finish(record: dict[str, Any]) -> None:
    """Close the Trackio run of this process, if it has one, with its status and the metrics of the best checkpoint."""
    if "trackio" not in sys.modules:
        return
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    run = trackio.context_vars.current_run.get()
    if run is None:
        return
    with contextlib.redirect_stdout(io.StringIO()):
        trackio.finish()
    end, last = ending(record) | {"best": record["metrics"]}, SQLiteStorage.get_last_step(run.project, run_id=run.id)
    steps = [-1 if last is None else int(last)]
    row = {"metrics_list": [{}], "steps": steps}  # a configuration is stored with a row, here an empty one
    SQLiteStorage.bulk_log(run.project, run.name, **row, run_id=run.id, config=run.config | end)


def _has_media(values: str) -> bool:
    """Return whether a row of Trackio's database, an object of JSON, has a figure or a table."""
    return any(isinstance(value, dict) for value in json.loads(values).values())
