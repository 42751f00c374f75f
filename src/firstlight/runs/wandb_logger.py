"""Weights & Biases: the logger of a run that may be resumed, and what else a run sends. wandb is imported late."""

import logging
import os
import re
import secrets
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import WandbLogger
from lightning.pytorch.utilities import rank_zero_only
from omegaconf import DictConfig

from firstlight.errors import UserError
from firstlight.files.atomic import write_atomically
from firstlight.runs.folder import RunFolder

log = logging.getLogger(__name__)

ID = re.compile("[a-z0-9]{8}")


class ResumableWandbLogger(WandbLogger):
    """Lightning's logger for W&B with the number of the training step as W&B's own step.

    By this step, W&B and a resumed run agree on what is logged already, so nothing is logged twice.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("settings", {"quiet": True})  # without W&B's summary, which repeats what the run prints
        super().__init__(*args, **kwargs)
        self._first_step = 0  # metrics of earlier steps are ignored, since W&B has them

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Log numbers, figures or tables of a step, unless W&B has them."""
        if step is None:
            super().log_metrics(metrics)
        elif step >= self._first_step:
            self.experiment.log({**metrics, "trainer/global_step": step}, step=step)

    @rank_zero_only
    def go_on(self, lines: Iterable[tuple[int, Mapping[str, Any]]], _first_step: int = 0) -> None:
        """Continue a run: log the numbers that W&B does not have, and ignore those that it has.

        Online, W&B's server knows the last step. Offline, an earlier part of the run may be incomplete because its
        process was killed. The new part therefore has all numbers.

        lines: the steps in order, with the numbers of each.
        """
        self._first_step = self.experiment.starting_step
        for step, metrics in lines:
            self.log_metrics(metrics, step)


def logger_options(config: DictConfig, node: DictConfig, task: str, *, is_sample: bool) -> dict[str, Any]:
    """Return the options that conf/logger/wandb.yaml leaves to the run: the mode, the names and the tags.

    The mode is passed to `wandb.init`, since Lightning's `offline` would set WANDB_MODE for the complete process.
    Lightning's `log_model` is off, since it uploads only checkpoints of Lightning's own callback. Raises UserError
    without a key.
    """
    folder = Path(config.paths.output_dir)
    options: dict[str, Any] = {"offline": False, "log_model": False, **mode(node)}
    options |= names_of(config, node, f"{task}-{folder.name}", is_sample=is_sample)
    if "group" in options and (sweep := os.environ.get("WANDB_SWEEP_ID")):  # set by an agent of a W&B sweep
        options["group"] = sweep
    return options


def names_of(config: DictConfig, node: DictConfig, name: str, *, is_sample: bool) -> dict[str, Any]:
    """Return the name, the group and the tags of a run in a logger, where the logger's node leaves them to the run."""
    options: dict[str, Any] = {} if node.get("name") is not None else {"name": name}
    if node.get("group") is None:
        options["group"] = config.get("sweep", {}).get("name") or Path(config.paths.output_dir).name
    if is_sample:
        options["tags"] = [*(node.get("tags") or []), "sample"]
    return options


def identity(config: DictConfig, node: DictConfig) -> dict[str, str]:
    """Return the id by which a resumed run is the same run in W&B. The id is stored in the run's folder.

    Return {} if an agent of a W&B sweep or the node gives the id.
    """
    if os.environ.get("WANDB_RUN_ID") or node.get("id") or node.get("version"):
        return {}
    folder = RunFolder(Path(config.paths.output_dir))
    if config.resume and (kept := kept_id(folder)):
        return {"id": kept, "resume": "allow"}
    new = secrets.token_hex(4)
    if getattr(rank_zero_only, "rank", 0) == 0:
        write_atomically(folder.wandb_id_file, new + "\n")
    return {"id": new, "resume": "allow"}


def kept_id(folder: RunFolder) -> str | None:
    """Return the id of a run in W&B that its folder has, or None."""
    file = folder.wandb_id_file
    kept = file.read_text(encoding="utf-8", errors="replace").strip() if file.is_file() else ""
    return kept if ID.fullmatch(kept) else None


@rank_zero_only
def keep_best(config: DictConfig, record: dict[str, Any]) -> None:
    """Upload the best checkpoint as an artifact of the run if logger.wandb.log_model is set."""
    node = (config.logger or {}).get("wandb")
    if node and node.get("log_model") and record["checkpoint"]:
        import wandb

        if wandb.run is not None:
            artifact = wandb.Artifact(f"model-{wandb.run.id}", type="model", metadata=record["metrics"])
            artifact.add_file(record["checkpoint"], name="best.ckpt")
            wandb.run.log_artifact(artifact, aliases=["best"])


def finish(record: dict[str, Any]) -> None:
    """Close the W&B run of this process, if it has one: with exit code 0 if it finished or was pruned, else with 1."""
    if "wandb" not in sys.modules:
        return
    import wandb

    if wandb.run is None:
        return
    wandb.run.log({}, commit=True)  # else W&B would write the last validation over the summary
    best = record["metrics"]  # of the best checkpoint; W&B would show those of the last step
    wandb.run.summary.update(ending(record) | best)
    is_offline, folder = wandb.run.settings.mode == "offline", Path(wandb.run.dir).parent
    wandb.finish(exit_code=0 if record["status"] in ("finished", "pruned") else 1)
    if is_offline:
        log.info("W&B: kept offline; to upload it: wandb sync %s", folder)


def ending(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what loggers store at the end of a run besides its metrics. A report has no parameters."""
    return {name: record[name] for name in ("status", "parameters") if name in record}


def mode(node: DictConfig | Mapping[str, Any]) -> dict[str, str]:
    """Return `mode`, online or offline, for `wandb.init`; nothing if WANDB_MODE decides.

    node: the configuration of the logger. Raises UserError if it says online and there is no key.
    """
    if node.get("offline"):
        return {"mode": "offline"}
    if node.get("offline") is None and os.environ.get("WANDB_MODE"):
        return {}
    if has_key():
        return {"mode": "online"}
    if node.get("offline") is not None:
        remedy = "run `wandb login`, set WANDB_API_KEY, or leave it null"
        raise UserError(f"logger.wandb.offline=false needs a key: {remedy}")
    log.info("W&B: no key, so this run is kept offline; `wandb login` to change that")
    return {"mode": "offline"}


def has_key() -> bool:
    """Return whether `wandb login` or WANDB_API_KEY has stored a key. No server is asked whether the key is valid.

    Raises UserError for a text that cannot be a key.
    """
    import wandb

    try:
        return wandb.login(prompt=False, verify=False)
    except wandb.errors.AuthenticationError as error:
        raise UserError(f"W&B: {error}; correct it, or unset it") from error
