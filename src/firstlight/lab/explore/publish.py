"""Sends the figures of an exploration to the loggers of the run."""

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from firstlight.errors import UserError
from firstlight.runs.folder import RunFolder
from firstlight.terminal_text import say

if TYPE_CHECKING:
    from firstlight.lab.explore.page import Shown

log = logging.getLogger(__name__)

TENSORBOARD, WANDB = "TensorBoardLogger", "WandbLogger"
JOB_TYPE = "explore"


def loggers_of(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the configs of the run's loggers that can show figures, by the name of the class."""
    nodes = [node for node in (config.get("logger") or {}).values() if isinstance(node, dict)]
    named = {str(node.get("_target_", "")).rpartition(".")[2]: node for node in nodes}
    return {name: named[name] for name in (TENSORBOARD, WANDB) if name in named}


def check_loggers(config: dict[str, Any]) -> None:
    """Raise UserError if no logger of the run can show figures."""
    if not loggers_of(config):
        there = ", ".join(config.get("logger") or {}) or "none"
        raise UserError(
            f"--log: the run's loggers ({there}) cannot show figures; train with logger=tensorboard or logger=wandb"
        )


def publish(
    shown: "list[Shown]", config: dict[str, Any], record: dict[str, Any], folder: RunFolder, *, is_sample: bool
) -> None:
    """Send figures to TensorBoard in the folder of the run, and to W&B as a run of the same group."""
    loggers = loggers_of(config)
    step = record.get("steps") or 0
    if TENSORBOARD in loggers:
        _to_tensorboard(shown, _below(folder.path, str(loggers[TENSORBOARD].get("name") or "")), step)
    if WANDB in loggers:
        _to_wandb(shown, config, record, folder, step, is_sample=is_sample)


def _below(folder: Path, name: str) -> Path:
    """Return a folder below the run's folder. Raises UserError for a name outside of it, as in a manipulated file."""
    place = folder / name
    if not place.resolve().is_relative_to(folder.resolve()):
        problem = f"logger.tensorboard.name={name} in {folder} is outside of the run's folder"
        raise UserError(f"--log: {problem}; correct config.yaml")
    return place


def _to_tensorboard(shown: "list[Shown]", folder: Path, step: int) -> None:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for figure in shown:
            writer.add_figure(f"{JOB_TYPE}/{figure.name}", figure.figure, step)
    say(f"TensorBoard: the figures are in {folder}")


def _to_wandb(
    shown: "list[Shown]",
    config: dict[str, Any],
    record: dict[str, Any],
    folder: RunFolder,
    step: int,
    *,
    is_sample: bool,
) -> None:
    if "${" in json.dumps(config, default=str):
        raise UserError(f"--log: {folder.config_file} contains an interpolation, which runs do not write; correct it")
    import wandb

    from firstlight.runs.weights_and_biases import logger_options

    whole: DictConfig = OmegaConf.create(config)
    whole.paths.output_dir = str(folder.path)  # the folder may have been moved
    node = whole.logger[next(name for name, node in whole.logger.items() if str(node._target_).endswith(WANDB))]
    options = logger_options(whole, node, str(record.get("task")), is_sample=is_sample)
    with wandb.init(
        project=node.get("project"),
        dir=str(folder.path),
        name=f"{node.get('name') or options.get('name')}-{JOB_TYPE}",
        group=node.get("group") or options.get("group"),
        job_type=JOB_TYPE,
        tags=list(options.get("tags") or node.get("tags") or []),
        mode=options.get("mode"),
        config=config,
    ) as run:
        images = {f"{JOB_TYPE}/{each.name}": wandb.Image(str(each.image), caption=each.caption) for each in shown}
        run.log({**images, "trainer/global_step": step})
        is_offline, place = run.settings.mode == "offline", Path(run.dir).parent
    say(f"W&B: kept offline; to upload it: wandb sync {place}" if is_offline else "W&B: the figures are uploaded")
