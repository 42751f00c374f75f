"""One training run, from a checked config to a folder that every other command can use."""

import logging
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.utilities import rank_zero_only
from lightning.pytorch.utilities.exceptions import SIGTERMException
from omegaconf import DictConfig

from firstlight.callbacks.checkpoint import BestAndLast
from firstlight.callbacks.throughput import Throughput
from firstlight.errors import Interrupted, UserError
from firstlight.runs import resume, terminal, weights_and_biases
from firstlight.runs.build import Parts, build
from firstlight.runs.checkpoint import CARD, read_checkpoint
from firstlight.runs.command import STARTED_AT
from firstlight.runs.folder import RunFolder, write_atomically
from firstlight.runs.initialize import initialize_from
from firstlight.runs.record import finish, record_of_start

log = logging.getLogger(__name__)


def train(config: DictConfig) -> float | None:
    """Train, validate and test as the config says; returns the optimized metric of the best checkpoint."""
    folder = RunFolder(Path(config.paths.output_dir))
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    if not is_rank_zero():
        return _train(config, folder, record_of_start(config, folder))
    with folder.locked():
        folder.remove_leftovers()
        record = record_of_start(config, folder)
        folder.write(record)
        try:
            metric = _train(config, folder, record)
        except BaseException as error:
            if number := signal_behind(error):
                finish(folder, record, "interrupted")
                log.info("Interrupted. To go on: %s", terminal.resume_command(folder))
                raise Interrupted(number) from error
            finish(folder, record, "failed", reason=f"{type(error).__name__}: {error}")
            raise
        finish(folder, record, "finished")
        terminal.report(folder, record)
        return metric


def _train(config: DictConfig, folder: RunFolder, record: dict[str, Any]) -> float | None:
    torch.set_float32_matmul_precision("high")
    terminal.print_config(config, folder)
    parts = build(config, folder, record.get("task", ""))
    last = folder.last_checkpoint if config.resume and folder.last_checkpoint.is_file() else None
    first_step = check_resumable(config, parts, last) if last else 0
    if config.init_from and not last:
        initialize_from(config.init_from, Path(config.paths.log_dir), parts.module, parts.data)
    parts.history.start(first_step)
    if is_rank_zero():  # for people, and for tokenizer.word_list; the checkpoints have it too
        write_atomically(folder.vocabulary_file, "\n".join(parts.data.tokenizer.words) + "\n")
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
    if is_rank_zero():
        weights_and_biases.keep_best(config, record)
    return record["metrics"].get(config.optimized_metric)


def evaluate_best(config: DictConfig, parts: Parts, record: dict[str, Any]) -> None:
    """Measure the best checkpoint on validation, and where it is wanted once on test; into record."""
    trainer = parts.trainer
    best = best_checkpoint(trainer)
    record["checkpoint"] = str(terminal.as_typed(best)) if best else None
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


def signal_behind(error: BaseException) -> int | None:
    """The signal that ended a run, whatever Lightning made of it; None if it was none."""
    match error:
        case Interrupted():
            return error.signal_number
        case SIGTERMException():  # Lightning would end with exit code 0
            return signal.SIGTERM
        case KeyboardInterrupt() | SystemExit(__context__=KeyboardInterrupt()):  # and with 1
            return signal.SIGINT
        case _:
            return None


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
