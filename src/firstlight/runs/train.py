"""One training run, from a checked config to a folder that every other command can use."""

import logging
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig
from lightning.pytorch import Trainer
from lightning.pytorch.utilities import rank_zero_only
from lightning.pytorch.utilities.exceptions import SIGTERMException
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.tree import Tree

from firstlight.callbacks.checkpoint import BestAndLast
from firstlight.callbacks.throughput import Throughput
from firstlight.errors import Interrupted, UserError
from firstlight.runs import resume
from firstlight.runs.build import Parts, build
from firstlight.runs.checkpoint import CARD, read_checkpoint
from firstlight.runs.command import STARTED_AT
from firstlight.runs.folder import RunFolder
from firstlight.runs.initialize import initialize_from

log = logging.getLogger(__name__)

LIBRARIES = ("torch", "lightning", "hydra-core", "torchmetrics", "tokenizers", "datasets", "numpy")


def train(config: DictConfig) -> float | None:
    """Train, validate and test as the config says; returns the optimized metric of the best checkpoint."""
    folder = RunFolder(Path(config.paths.output_dir))
    if not is_rank_zero():
        return _train(config, folder, {})
    with folder.locked():
        record = first_record(config, folder)
        folder.write(record)
        try:
            metric = _train(config, folder, record)
        except (Interrupted, KeyboardInterrupt, SIGTERMException) as error:
            finish(folder, record, "interrupted")
            log.info("Interrupted. To go on: %s", resume_command(folder))
            if isinstance(error, SIGTERMException):  # Lightning would end with exit code 0
                raise Interrupted(signal.SIGTERM) from error
            raise
        except BaseException as error:
            finish(folder, record, "failed", reason=f"{type(error).__name__}: {error}")
            raise
        finish(folder, record, "finished")
        report(folder, record)
        return metric


def _train(config: DictConfig, folder: RunFolder, record: dict[str, Any]) -> float | None:
    torch.set_float32_matmul_precision("high")
    print_config(config, folder)
    parts = build(config, folder, record.get("task", ""))
    last = folder.last_checkpoint if config.resume and folder.last_checkpoint.is_file() else None
    first_step = check_resumable(config, parts, last) if last else 0
    if config.init_from and not last:
        initialize_from(config.init_from, Path(config.paths.log_dir), parts.module, parts.data)
    parts.history.start(first_step)
    trained = [parameter for parameter in parts.module.parameters() if parameter.requires_grad]
    record["data"] = parts.data.describe()
    record["parameters"] = sum(parameter.numel() for parameter in trained)
    record["seconds"]["start_up"] = round(time.perf_counter() - STARTED_AT, 2)
    if is_rank_zero():
        folder.write(record)
    seconds_before = record["seconds"]["fit"]
    started_at = time.perf_counter()
    try:
        if config.train:
            parts.trainer.fit(parts.module, datamodule=parts.data, ckpt_path=last)
    finally:
        record["seconds"]["fit"] = round(seconds_before + time.perf_counter() - started_at, 2)
        record["steps"] = parts.trainer.global_step
        record["tokens_per_second"] = tokens_per_second(parts.trainer)
    evaluate_best(config, parts, record)
    return record["metrics"].get(config.optimized_metric)


def evaluate_best(config: DictConfig, parts: Parts, record: dict[str, Any]) -> None:
    """Measure the best checkpoint on validation, and where it is wanted once on test; into record."""
    trainer = parts.trainer
    best = best_checkpoint(trainer)
    record["checkpoint"] = str(as_typed(best)) if best else None
    started_at = time.perf_counter()
    with without_loggers(trainer):  # the loggers have this validation already, at its own step
        trainer.validate(parts.module, datamodule=parts.data, ckpt_path=best, verbose=False)
    record["metrics"] |= numbers(trainer)
    if config.test:
        if len(parts.data.rows("test")) == 0:
            log.warning("%s has no test rows; nothing is reported on test", parts.data.source.where)
        else:
            trainer.test(parts.module, datamodule=parts.data, ckpt_path=best, verbose=False)
            record["metrics"] |= numbers(trainer)
    record["seconds"]["test"] = round(time.perf_counter() - started_at, 2)


def is_rank_zero() -> bool:
    """Whether this process is the one that writes."""
    return getattr(rank_zero_only, "rank", 0) == 0


def best_checkpoint(trainer: Trainer) -> Path | None:
    """best.ckpt, or last.ckpt of a run without validation, or None where nothing was saved."""
    for callback in trainer.checkpoint_callbacks:
        if isinstance(callback, BestAndLast):
            paths = (Path(callback.best_model_path), Path(callback.last_model_path))
            return next((path for path in paths if path.is_file()), None)
    return None


def numbers(trainer: Trainer) -> dict[str, float]:
    """The metrics of the evaluation that just ended."""
    return {name: float(value) for name, value in trainer.callback_metrics.items()}


def tokens_per_second(trainer: Trainer) -> float | None:
    """What the throughput callback measured, where there is one."""
    for callback in trainer.callbacks:  # type: ignore[attr-defined]
        if isinstance(callback, Throughput) and callback.tokens_per_second:
            return round(callback.tokens_per_second, 1)
    return None


def check_resumable(config: DictConfig, parts: Parts, last: Path) -> int:
    """The step of a checkpoint to go on from. Raises UserError if the network or the data is another one."""
    checkpoint = read_checkpoint(last)
    resume.refuse_other_config(config, checkpoint[CARD]["config"])
    trained_on, now = checkpoint[CARD]["data_fingerprint"], parts.data.source.fingerprint
    if trained_on != now:
        raise UserError(
            f"{parts.data.source.where} has changed since the run began (fingerprint {now}, then {trained_on}); "
            f"start a new run, or restore the data"
        )
    log.info("Going on from step %d", checkpoint["global_step"])
    return int(checkpoint["global_step"])


@contextmanager
def without_loggers(trainer: Trainer) -> Iterator[None]:
    """Let a trainer work without telling its loggers."""
    loggers = trainer.loggers
    trainer.loggers = []
    try:
        yield
    finally:
        trainer.loggers = loggers


def first_record(config: DictConfig, folder: RunFolder) -> dict[str, Any]:
    """metrics.json as it stands while the run goes on; a resumed run keeps the seconds it has had."""
    hydra = HydraConfig.get()
    before = folder.read() if folder.is_run() and config.resume else {}
    return {
        "task": hydra.runtime.choices["task"],
        "model": hydra.runtime.choices["model"],
        "experiment": hydra.runtime.choices.get("experiment"),
        "dropout": config.dropout,
        "context_length": config.context_length,
        "seed": config.seed,
        "tags": list(config.tags),
        "overrides": list(hydra.overrides.task),
        "status": "running",
        "reason": None,
        "optimized_metric": config.optimized_metric,
        "data": None,
        "parameters": None,
        "steps": None,
        "seconds": {"start_up": None, "fit": (before.get("seconds") or {}).get("fit") or 0.0, "test": None},
        "tokens_per_second": None,
        "threads": torch.get_num_threads(),
        "versions": {"python": sys.version.split()[0], **{name: version(name) for name in LIBRARIES}},
        "git": git_state(),
        "checkpoint": None,
        "metrics": {},
        "run_key": resume.run_key(config),
    }


def finish(folder: RunFolder, record: dict[str, Any], status: str, reason: str | None = None) -> None:
    """Write how the run ended, for the folder and for W&B."""
    record["status"], record["reason"] = status, " ".join(reason.split()) if reason else None
    folder.write(record)
    if "wandb" in sys.modules:
        import wandb

        if wandb.run is not None:
            wandb.run.summary.update({"status": status, "parameters": record["parameters"]})
            where = Path(wandb.run.dir).parent
            offline = wandb.run.settings._offline
            wandb.finish(exit_code=0 if status == "finished" else 1)
            if offline:
                log.info("W&B: kept offline; to upload it: wandb sync %s", where)


def git_state() -> dict[str, Any] | None:
    """The commit of the code and whether files differ from it; None outside a repository."""
    root = Path(__file__).parents[3]
    command = ["git", "-C", str(root), "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid")), None)
    return {"commit": commit, "modified": any(not line.startswith("#") for line in lines)}


@rank_zero_only
def print_config(config: DictConfig, folder: RunFolder) -> None:
    """The resolved config as a tree, on the terminal and in config.txt; as YAML it is in .hydra/."""
    tree = Tree("config", guide_style="dim")
    for key in config:
        value = config[key]
        branch = tree.add(str(key), guide_style="dim")
        text = OmegaConf.to_yaml(value, resolve=True) if OmegaConf.is_config(value) else str(value)
        branch.add(Syntax(text.rstrip() or "{}", "yaml", background_color="default"))
    Console().print(tree)
    with (folder.path / "config.txt").open("w", encoding="utf-8") as file:
        Console(file=file, width=120).print(tree)
    OmegaConf.save(config, folder.path / "config.yaml", resolve=True)


def report(folder: RunFolder, record: dict[str, Any]) -> None:
    """The end of a run on the terminal: its metrics, where it is, and what to do with it."""
    metrics = record["metrics"]
    splits = [split for split in ("val", "test") if any(name.startswith(f"{split}/") for name in metrics)]
    table = Table()
    table.add_column("metric")
    for split in splits:
        table.add_column(split, justify="right")
    for name in sorted({name.partition("/")[2] for name in metrics}):
        values = (metrics.get(f"{split}/{name}") for split in splits)
        table.add_row(name, *("" if value is None else f"{value:.4f}" for value in values))
    console = Console()
    console.print(f"{record['task']}, {record['model']}, {record['parameters']:,} parameters; the best checkpoint:")
    console.print(table)
    if record["data"]["source"] == "sample":
        console.print("Measured on a GENERATED SAMPLE: the numbers say nothing about real reviews.", style="bold")
    where = as_typed(folder.path)
    lines = (
        f"The run is in {where}",
        f"  python src/evaluate.py {where}",
        f'  python src/predict.py {where} --text "It works, and it looks good."',
    )
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def as_typed(path: Path) -> Path:
    """A path as one would type it from here."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def resume_command(folder: RunFolder) -> str:
    """What to type to go on with a run."""
    return f"python src/train.py resume={as_typed(folder.path)}"
