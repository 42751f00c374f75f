"""Sends the figures of an exploration to the loggers of the run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from firstlight.errors import UserError
from firstlight.runs.folder import RunFolder
from firstlight.terminal_text import say

if TYPE_CHECKING:
    from firstlight.lab.explore.page import Page

TENSORBOARD, WANDB = "TensorBoardLogger", "WandbLogger"
JOB_TYPE = "explore"


def loggers_of(config: dict[str, Any]) -> dict[str, str]:
    """Return the keys of the run's loggers that can show figures, by the name of the class.

    Raises UserError if there are none.
    """
    nodes = {key: node for key, node in (config.get("logger") or {}).items() if isinstance(node, dict)}
    found = {str(node.get("_target_", "")).rpartition(".")[2]: key for key, node in nodes.items()}
    if not found.keys() & {TENSORBOARD, WANDB}:
        there = ", ".join(config.get("logger") or {}) or "none"
        raise UserError(
            f"--log: the run's loggers ({there}) cannot show figures; train with logger=tensorboard or logger=wandb"
        )
    return found


def publish(page: "Page", config: dict[str, Any], record: dict[str, Any], folder: RunFolder) -> None:
    """Send the figures to TensorBoard in the folder of the run, and to W&B as a run of the same group."""
    loggers = loggers_of(config)
    step = record.get("steps") or 0
    if TENSORBOARD in loggers:
        _to_tensorboard(page, config["logger"][loggers[TENSORBOARD]], folder.path, step)
    if WANDB in loggers:
        _to_wandb(page, config, loggers[WANDB], record.get("task"), folder, step)


def _to_tensorboard(page: "Page", node: dict[str, Any], folder: Path, step: int) -> None:
    """Write the figures below the folder. Raises UserError for a name outside of it, as in a manipulated file."""
    from torch.utils.tensorboard import SummaryWriter

    name = str(node.get("name") or "")
    if not (folder / name).resolve().is_relative_to(folder.resolve()):
        problem = f"logger.tensorboard.name={name} in {folder} is outside of the run's folder"
        raise UserError(f"--log: {problem}; correct config.yaml")
    with SummaryWriter(str(folder / name)) as writer:
        for each in page.shown:
            writer.add_figure(f"{JOB_TYPE}/{each.name}", each.figure, step)
    say(f"TensorBoard: the figures are in {folder / name}")


def _to_wandb(page: "Page", config: dict[str, Any], key: str, task: Any, folder: RunFolder, step: int) -> None:
    """Log the figures as a run of its own, in the group of the training. key: of the logger."""
    if "${" in json.dumps(config, default=str):
        raise UserError(f"--log: {folder.config_file} contains an interpolation, which runs do not write; correct it")
    import wandb

    from firstlight.runs.wandb_logger import logger_options

    whole: DictConfig = OmegaConf.create(config)
    whole.paths.output_dir = str(folder.path)  # the folder may have been moved
    node = whole.logger[key]
    options = {**node, **logger_options(whole, node, str(task), is_sample=page.sample_note is not None)}
    with wandb.init(
        project=options.get("project"),
        dir=str(folder.path),
        name=f"{options['name']}-{JOB_TYPE}",
        group=options["group"],
        job_type=JOB_TYPE,
        tags=list(options.get("tags") or []),
        mode=options.get("mode"),
        config=config,
    ) as run:
        images = {f"{JOB_TYPE}/{each.name}": wandb.Image(str(each.image), caption=each.caption) for each in page.shown}
        run.log({**images, "trainer/global_step": step})
        is_offline, place = run.settings.mode == "offline", Path(run.dir).parent
    say(f"W&B: kept offline; to upload it: wandb sync {place}" if is_offline else "W&B: the figures are uploaded")
