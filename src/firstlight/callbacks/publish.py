"""Functions that send figures and tables to the loggers that can show them."""

from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from typing import Any

import numpy as np
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger
from lightning.pytorch.trainer.states import TrainerFn
from matplotlib.figure import Figure
from PIL import Image

from firstlight.data.options import SourceKind
from firstlight.data.table_data import TableData
from firstlight.data.tables import pair_of_tensors, review_batch, token_batch
from firstlight.errors import UserError
from firstlight.runs.trackio_logger import TrackioLogger


def data_if_any(trainer: Trainer) -> Any:
    """Return the trainer's data module, or None if it has loaders or a data module from another package."""
    data = getattr(trainer, "datamodule", None)
    return data if isinstance(data, TableData) else None


def is_sample(trainer: Trainer) -> bool:
    """Return whether the trainer's data module reads generated data."""
    data = data_if_any(trainer)
    return data is not None and data.source.kind is SourceKind.sample


def data_of(trainer: Trainer, callback: Callback) -> Any:
    """Return the trainer's data module. Raises UserError with the name of the callback if there is none."""
    data = data_if_any(trainer)
    if data is None:
        problem = f"{type(callback).__name__} requires a data module of firstlight, but the trainer has none"
        raise UserError(f"{problem}; pass datamodule=data instead of loaders, or remove the callback")
    return data


def named_batch(batch: Any) -> Any:
    """Return a batch with named parts. A plain loader's batch is a pair of tensors: token ids and targets."""
    if hasattr(batch, "targets"):
        return batch
    _, targets = pair_of_tensors(batch, "batch of firstlight")
    return review_batch(batch) if targets.ndim == 1 else token_batch(batch)


def shows_media(logger: Logger) -> bool:
    """Return whether a logger can show figures and tables."""
    return isinstance(logger, WandbLogger | TensorBoardLogger | TrackioLogger)


def step_of(trainer: Trainer) -> int:
    """Return the step at which Lightning logs metrics now. In `Trainer.fit` it counts from 0."""
    return trainer.global_step - 1 if trainer.state.fn is TrainerFn.FITTING else trainer.global_step


def publish_figure(trainer: Trainer, name: str, figure: Figure) -> None:
    """Send a figure to every logger that can show figures."""
    if any(map(shows_media, trainer.loggers)):
        figure.savefig(drawn := BytesIO(), format="png")
        send_picture(trainer.loggers, name, Image.open(drawn), step_of(trainer))


def publish_table(trainer: Trainer, name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Send a table to every logger that can show tables. rows: rows with the same columns."""
    send_table(trainer.loggers, name, rows, step_of(trainer))


def send_picture(loggers: Iterable[Logger], name: str, picture: Image.Image, step: int) -> None:
    """Send a picture to every logger that can show pictures."""
    for logger in loggers:
        if isinstance(logger, WandbLogger):
            import wandb

            logger.log_metrics({name: wandb.Image(picture)}, step)
        elif isinstance(logger, TensorBoardLogger):
            logger.experiment.add_image(name, np.asarray(picture.convert("RGB")), step, dataformats="HWC")
        elif isinstance(logger, TrackioLogger):
            logger.log_picture(name, picture, step)


def send_table(loggers: Iterable[Logger], name: str, rows: Sequence[Mapping[str, object]], step: int) -> None:
    """Send a table to every logger that can show tables. rows: rows with the same columns."""
    if not rows:
        return
    columns = list(rows[0])
    cells = [[row[column] for column in columns] for row in rows]
    for logger in loggers:
        if isinstance(logger, WandbLogger | TrackioLogger):
            logger.log_table(name, columns, cells, step=step)
        elif isinstance(logger, TensorBoardLogger):
            logger.experiment.add_text(name, markdown(columns, rows), step)


def markdown(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    """Return a table in Markdown. Bars in a cell are escaped, and new lines become spaces."""
    lines = [" | ".join(map(_cell, columns)), " | ".join("---" for _ in columns)]
    lines += [" | ".join(_cell(row[column]) for column in columns) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _cell(value: object) -> str:
    text = f"{value:.4f}" if isinstance(value, float) else str(value)
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").split())
