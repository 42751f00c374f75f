"""What `explore --log` and `report --log` add to W&B, Trackio and TensorBoard, when the runs have ended."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger, TensorBoardLogger
from PIL import Image

from firstlight.callbacks.publish import send_picture, send_table
from firstlight.errors import UserError
from firstlight.kind.registry import kind_of_saved
from firstlight.lab.reports.tables import Table
from firstlight.runs import wandb_logger
from firstlight.runs.folder import RunFolder, read_history
from firstlight.runs.identity import logged_columns
from firstlight.runs.record import finish_loggers
from firstlight.runs.trackio_logger import TrackioLogger, run_name
from firstlight.runs.wandb_logger import ResumableWandbLogger
from firstlight.terminal_text import say

WITH_FIGURES = ("wandb", "trackio", "tensorboard")  # the loggers that show figures


def nodes_with_figures(configs: Iterable[Mapping[str, Any]], where: Path) -> dict[str, dict[str, Any]]:
    """Return the options of the loggers that show figures, by their names, of the first of some runs that has any.

    configs: those of the runs. Raises UserError if no run has such a logger.
    """
    for config in configs:
        nodes = config.get("logger") or {}
        if found := {name: nodes[name] for name in WITH_FIGURES if isinstance(nodes.get(name), dict)}:
            return found
    chosen = " or ".join(f"logger={name}" for name in WITH_FIGURES)
    raise UserError(f"--log: {where} was trained without a logger that shows figures; omit --log, or use {chosen}")


def log_exploration(
    folder: RunFolder, config: Mapping[str, Any], nodes: Mapping[str, Any], figures: Iterable[Path]
) -> None:
    """Add figures to the loggers of a run, at the step after its last one, and print where they are.

    config: that of the run; nodes: the options of its loggers, as `nodes_with_figures` returns them, of which only the
    names of projects and of the team decide where something is written; figures: PNG files.

    Raises UserError if what a logger wrote is missing.
    """
    record = folder.read()
    source = (record.get("data") or {}).get("source")
    columns = logged_columns(record, kind_of_saved(config["model"]).name, source)
    if (identity := wandb_logger.kept_id(folder)) is None and "wandb" in nodes:
        raise UserError(f"--log: {folder.wandb_id_file} has no id of a run of W&B; omit --log")
    logs = _log_folder(folder.path) if "trackio" in nodes else folder.path
    of_trackio = {"name": run_name(folder.path, logs, record["task"]), "is_resumed": True}
    of_wandb = {"id": identity, "resume": "allow", "save_dir": str(folder.path / "figures")}  # wandb/ is the training's
    loggers = list(_opened(nodes, folder.path, logs, of_wandb, of_trackio))
    step = max((line["step"] for line in read_history(folder.history_file)), default=0) + 1
    for logger in loggers:
        if isinstance(logger, ResumableWandbLogger):
            logger.log_hyperparams(dict(config) | columns)  # what is uploaded replaces what is there
            step = max(step, logger.experiment.starting_step)
        elif isinstance(logger, TrackioLogger):
            logger.reopen()
    for figure in figures:
        with Image.open(figure) as picture:
            send_picture(loggers, f"explore/{figure.stem}", picture, step)
    _close(loggers, record)


def log_report(folder: Path, nodes: Mapping[str, Any], tables: Iterable[Table]) -> None:
    """Log the tables and the PNG files of a report as a run of its own, and print where they are.

    folder: that of the report, which names the run and its group; nodes: the options of the loggers, which name the
    projects, as `nodes_with_figures` returns them.
    """
    group = folder.resolve().name
    logs = _log_folder(folder) if "trackio" in nodes else folder
    new = {"name": f"report of {group}", "group": group}
    of_wandb = {"job_type": "report", "save_dir": str(folder)}
    loggers = list(_opened(nodes, folder, logs, new | of_wandb, new | {"tags": ["report"]}))
    for table in tables:
        rows = [dict(zip(table.headers, row, strict=True)) for row in table.rows]
        send_table(loggers, f"report/{table.title}", rows, 0)
    for image in sorted(folder.glob("*.png")):
        with Image.open(image) as picture:
            send_picture(loggers, f"report/{image.stem}", picture, 0)
    _close(loggers, {"status": "finished", "metrics": {}})


def _opened(
    nodes: Mapping[str, Any], folder: Path, logs: Path, of_wandb: Mapping[str, Any], of_trackio: Mapping[str, Any]
) -> Iterator[Logger]:
    """Yield the loggers. logs: the folder with Trackio's; of_wandb, of_trackio: options of these two."""
    for name, node in nodes.items():
        if name == "wandb":
            team = {key: node[key] for key in ("project", "entity") if isinstance(node.get(key), str)}
            options = team | wandb_logger.mode(node) | dict(of_wandb)
            yield ResumableWandbLogger(log_model=False, **options)
        elif name == "trackio":
            yield TrackioLogger(str(logs / "trackio"), str(node.get("project", "firstlight")), **of_trackio)
        else:
            yield TensorBoardLogger(str(folder), name="tensorboard", version="")


def _log_folder(folder: Path) -> Path:
    """Return the log folder that contains a folder. It is the nearest with a folder of Trackio."""
    folder = folder.absolute()
    for logs in (folder, *folder.parents):
        if (logs / "trackio").is_dir():
            return logs
    raise UserError(f"--log: no folder above {folder} has Trackio's folder, `trackio`; move it there, or omit --log")


def _close(loggers: Iterable[Logger], record: dict[str, Any]) -> None:
    """Close the loggers, with the status of the record, and print where they have written."""
    places = []
    for logger in loggers:
        if isinstance(logger, ResumableWandbLogger):
            run = logger.experiment
            sync = f"offline; to upload it after the training's: wandb sync {Path(run.dir).parent}"
            places.append(f"W&B ({run.url or sync})")
        elif isinstance(logger, TrackioLogger):
            places.append(f"Trackio's run {logger.version}")
        else:
            places.append(f"{logger.save_dir}/tensorboard")
        logger.finalize("success")
    finish_loggers(record)
    say(f"They are also in {' and '.join(places)}")
