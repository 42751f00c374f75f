"""One training run, from a checked config to a folder that every other command can use."""

import csv
import logging
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities import rank_zero_only
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, OmegaConf
from torch.utils.flop_counter import FlopCounterMode

from firstlight.callbacks.checkpoint import BestAndLast, callback_of
from firstlight.callbacks.prune_trial import PruneTrial
from firstlight.callbacks.stop_signals import end_with_parent, several, signal_behind, signals_raise, signals_restored
from firstlight.callbacks.throughput import Throughput
from firstlight.callbacks.write_predictions import WritePredictions
from firstlight.config.messages import explained
from firstlight.data.batches import steps_of
from firstlight.data.table_data import TableData
from firstlight.errors import Interrupted, RunError, UserError
from firstlight.files.atomic import write_atomically
from firstlight.lazy import exclude_imports_from_collections
from firstlight.lit.checkpoint import read_checkpoint
from firstlight.lit.lightning_internals import set_steps_done
from firstlight.lit.metadata import refuse_other_state
from firstlight.lit.networks import build_network
from firstlight.networks.layers import num_parameters
from firstlight.runs import wandb_logger
from firstlight.runs.folder import RunFolder, as_typed, read_history
from firstlight.runs.identity import refuse_other_config
from firstlight.runs.predictions import FOLDER
from firstlight.runs.record import finish, finish_loggers, record_of_start
from firstlight.training import terminal
from firstlight.training.build import Parts, build
from firstlight.training.initialize import initialize_from
from firstlight.training.newest_checkpoint import Found, newest_checkpoint
from firstlight.training.replay import Replay
from firstlight.training.stack import Stack

log = logging.getLogger(__name__)
FLOPS_OF_A_TEXT: dict[str, int] = {}  # by the options of the network, which the jobs of a sweep often share


def train(config: DictConfig, started_at: float, stack: tuple[Stack, int] | None = None) -> float | None:
    """Train, validate and test as the config says, and return the optimized metric of the best checkpoint.

    started_at: The time.perf_counter of the run's start. stack: That of the job and its place there.
    """
    exclude_imports_from_collections()
    folder = RunFolder(Path(config.paths.output_dir))
    if not is_rank_zero():
        end_with_parent()
        record = record_of_start(config, folder)
        parts, start = prepare(config, folder, is_resumed=bool(config.resume))
        with several(parts.trainer):
            return _train(config, folder, record, parts, start, started_at)
    is_new = HydraConfig.get().mode is RunMode.RUN and folder.is_empty()
    is_prepared = False
    with terminal.one_console_of(config), folder.locked(), signals_restored():
        is_resumed = bool(config.resume) and folder.is_run()
        record = record_of_start(config, folder)
        try:
            with signals_raise():
                if not is_resumed:
                    folder.write(record)
                with terminal.preparing(), explained():
                    parts, start = prepare(config, folder, is_resumed=is_resumed)
                if stack is not None and start is None:
                    parts.trainer.callbacks.insert(0, Replay(*stack, parts))  # type: ignore[attr-defined]
                is_prepared = True
                is_resumed = False  # all checks have passed: from here on, the folder records this run
                folder.remove_leftovers()
                if start is not None and start.path != folder.last_checkpoint:
                    folder.last_checkpoint.unlink(missing_ok=True)  # a damaged checkpoint must not become previous.ckpt
                write_atomically(folder.config_file, OmegaConf.to_yaml(config, resolve=True))
                with several(parts.trainer, record=partial(_end, folder, record)):
                    metric = _train(config, folder, record, parts, start, started_at)
        except BaseException as error:
            if not folder.path.is_dir():
                raise RunError(f"{folder.path} was removed or moved during the training; start it again") from error
            if is_resumed:  # the run in the folder has not changed
                finish_loggers(record | {"status": "failed"})
                raise
            if number := _end(folder, record, error):
                raise Interrupted(number) from error
            if is_new and not is_prepared and isinstance(error, UserError):
                shutil.rmtree(folder.path)  # a mistake leaves no folder
            raise
        finish(folder, record, "pruned" if record["reason"] else "finished", reason=record["reason"])
        terminal.report(config, parts.kind, folder, record)
        return metric


def _end(folder: RunFolder, record: dict[str, Any], error: BaseException) -> int | None:
    """Record how a run ended by an error. Return the signal behind the error, or None."""
    if number := signal_behind(error):
        finish(folder, record, "interrupted")
        terminal.say_interrupted(folder)
    else:
        finish(folder, record, "failed", reason=f"{type(error).__name__}: {error}")
    return number


def prepare(config: DictConfig, folder: RunFolder, *, is_resumed: bool) -> tuple[Parts, Found | None]:
    """Build all parts. Return them and the checkpoint from which the run resumes, or None for a new run.

    Raises UserError if a resumed run has another network or other data than its checkpoint.
    """
    keeps_checkpoints = bool((config.callbacks or {}).get("checkpoint"))
    start = newest_checkpoint(folder, keeps_checkpoints=keeps_checkpoints) if is_resumed else None
    if start is not None:
        refuse_other_config(config, start.metadata["config"])
    parts = build(config, folder, HydraConfig.get().runtime.choices["task"], start.metadata if start else None)
    if start is not None:
        refuse_other_state(start.content, parts.module, start.path)
    elif config.init_from:
        initialize_from(config.init_from, Path(config.paths.log_dir), parts.module, parts.data, config.model)
    return parts, start


def _train(
    config: DictConfig,
    folder: RunFolder,
    record: dict[str, Any],
    parts: Parts,
    start: Found | None,
    started_at: float,
) -> float | None:
    seconds_before = parts.history.start(start.step if start else 0, parts.trainer.loggers)
    record["data"] = parts.data.describe()
    record["teacher"] = parts.teacher
    record["threads"] = torch.get_num_threads()
    record["parameters"] = num_parameters(parts.module, trained_only=True) + parts.data.num_counted
    record["seconds"]["start_up"] = round(time.perf_counter() - started_at, 2)
    if config.train:
        parts.data.trainer = parts.trainer  # of which each process trains on a share of a batch
        steps = steps_of(parts.trainer, len(parts.data.train_dataloader()))
        record["total_steps"] = None if steps == -1 else steps
    if is_rank_zero():
        folder.write(record)
        write_lists(folder, parts.data)
        terminal.show_start(config, parts.kind, folder, record, parts.trainer, start.step if start else None)
    fit_started_at = time.perf_counter()
    try:
        if config.train:
            parts.trainer.fit(parts.module, datamodule=parts.data, ckpt_path=start.path if start else None)
            end_of_fit(parts.trainer, start)
    except MisconfigurationException as error:
        raise UserError(f"trainer: {error}") from error
    except ValueError as error:
        if "`val_check_interval`" not in str(error):
            raise
        problem = f"trainer.val_check_interval={config.trainer.val_check_interval} is more than an epoch has batches"
        raise UserError(f"{problem}; set trainer.check_val_every_n_epoch=null") from error
    finally:
        if replay := callback_of(parts.trainer, Replay):
            record["stacked"], fit_started_at = replay.models, fit_started_at + replay.excess
        record["seconds"]["fit"] = round(seconds_before + time.perf_counter() - fit_started_at, 2)
        record["steps"] = parts.trainer.global_step or recover_counts(parts.trainer)
        record |= work_done(config, parts)
        if throughput := callback_of(parts.trainer, Throughput):
            record["seconds"]["fit_processor"] = round(throughput.processor_seconds, 2)
    if config.train and not record["steps"]:
        raise RunError("no step was trained; raise trainer.max_time or trainer.limit_train_batches")
    if (pruning := callback_of(parts.trainer, PruneTrial)) is not None and pruning.pruned_at is not None:
        record["metrics"] |= last_validation(folder, pruning.metric)
        record["reason"] = pruning.reason
        return record["metrics"].get(config.optimized_metric)
    callbacks: list[Callback] = parts.trainer.callbacks  # type: ignore[attr-defined]
    callbacks.append(WritePredictions(folder.path / FOLDER))
    evaluate_best(config, parts, record)
    wandb_logger.keep_best(config, record)
    return record["metrics"].get(config.optimized_metric)


def write_lists(folder: RunFolder, data: TableData) -> None:
    """Write the vocabulary, and the documents that a generator may memorize."""
    words = (word.replace("\n", "\\n") for word in data.tokenizer.words)
    write_atomically(folder.vocabulary_file, "\n".join(words) + "\n")
    if known := data.known_documents():
        write_atomically(folder.known_documents_file, "\n".join(known) + "\n")


def evaluate_best(config: DictConfig, parts: Parts, record: dict[str, Any]) -> None:
    """Measure the best checkpoint on validation, and if config.test is set on test. Add the metrics to the record."""
    trainer = parts.trainer
    best = best_checkpoint(trainer)
    record["checkpoint"] = str(as_typed(best)) if best else None
    record["checkpoint_step"] = int(read_checkpoint(best)["global_step"]) if best else None
    started_at = time.perf_counter()
    loggers, trainer.loggers = trainer.loggers, []  # the loggers have this validation at its step
    trainer.validate(parts.module, datamodule=parts.data, ckpt_path=best, verbose=False)
    trainer.loggers = loggers
    record["metrics"] |= numbers(trainer)
    if config.test:
        if not parts.data.has_split("test"):
            log.info("%s has no test split; there are no test metrics", parts.data.source.where)
        else:
            trainer.test(parts.module, datamodule=parts.data, ckpt_path=best, verbose=False)
            record["metrics"] |= numbers(trainer)
    record["seconds"]["test"] = round(time.perf_counter() - started_at, 2)


def last_validation(folder: RunFolder, metric: str) -> dict[str, float]:
    """Return the metrics of the last validation in a run's history."""
    lines = [line for line in read_history(folder.history_file) if metric in line]
    return {name: value for name, value in lines[-1].items() if name.startswith("val/")} if lines else {}


def is_rank_zero() -> bool:
    """Return whether this process is the one that writes files."""
    return getattr(rank_zero_only, "rank", 0) == 0


def best_checkpoint(trainer: Trainer) -> Path | None:
    """Return best.ckpt, or last.ckpt of a run without validation, or None if there is no checkpoint."""
    callback = callback_of(trainer, BestAndLast)
    paths = (Path(callback.best_model_path), Path(callback.last_model_path)) if callback else ()
    return next((path for path in paths if path.is_file()), None)


def numbers(trainer: Trainer) -> dict[str, float]:
    """Return the metrics of the latest evaluation."""
    return {name: float(value) for name, value in trainer.callback_metrics.items()}


def recover_counts(trainer: Trainer) -> int:
    """Return the number of steps of a fit in other processes, whose counts are only in its last checkpoint."""
    callback = callback_of(trainer, BestAndLast)
    if callback is None or not Path(callback.last_model_path).is_file():
        return 0
    checkpoint = read_checkpoint(Path(callback.last_model_path))
    throughput = callback_of(trainer, Throughput)
    if throughput is not None and throughput.state_key in checkpoint["callbacks"]:
        throughput.load_state_dict(checkpoint["callbacks"][throughput.state_key])
    recover_columns(trainer)
    steps = int(checkpoint["global_step"])
    set_steps_done(trainer, steps)  # the step at which the test is logged
    return steps


def end_of_fit(trainer: Trainer, start: Found | None) -> None:
    """Count the last step and the last epoch as completed if a resumed run had no step left.

    Lightning skips such a fit and keeps the counts of the checkpoint, which was written within the step. The test is
    logged at these counts.
    """
    if start is not None and trainer.global_step == start.step:
        epochs = trainer.fit_loop.epoch_progress.current
        epochs.completed = max(epochs.completed, start.epochs_begun)
        set_steps_done(trainer, start.step)


def recover_columns(trainer: Trainer) -> None:
    """Set the columns of Lightning's CSV loggers to those that other processes have written."""
    for logger in trainer.loggers:
        if isinstance(logger, CSVLogger) and is_rank_zero():
            file = Path(logger.experiment.metrics_file_path)
            if file.is_file():
                with file.open(encoding="utf-8", newline="") as lines:
                    logger.experiment.metrics_keys = next(csv.reader(lines), [])


def work_done(config: DictConfig, parts: Parts) -> dict[str, Any]:
    """Return the numbers of tokens and operations and the speed; {} if no throughput callback has counted them."""
    throughput = callback_of(parts.trainer, Throughput)
    if throughput is None or not throughput.tokens_per_second:
        return {}
    network: Any = OmegaConf.to_object(config.model)
    return {
        "tokens": throughput.tokens,
        "flops": training_flops(network, parts.data.network_sizes(), throughput.tokens),
        "tokens_per_second": round(throughput.tokens_per_second, 1),
    }


def training_flops(config: Any, sizes: dict[str, int], num_tokens: int) -> int:
    """Return the number of floating-point operations of all matrix products, forward and backward, for num_tokens.

    Every text is assumed to fill the context. The lookup of embeddings is not counted. The result is therefore far
    below the usual 6 × parameters × tokens if most parameters are embeddings (Kaplan et al., 2020, exclude them too).

    config: The configuration of a network; sizes: the other arguments of build_network.
    """
    length, key = config.context_length, repr((config, sizes))
    if key not in FLOPS_OF_A_TEXT:
        with torch.device("meta"), FlopCounterMode(display=False) as counter:
            token_ids = torch.zeros((1, 1, length) if sizes.get("choices") else (1, length), dtype=torch.long)
            features = torch.zeros(1, length, sizes["num_features"]) if sizes.get("num_features") else None
            build_network(config, **sizes)(*config.inputs(token_ids, features)).sum().backward()
        FLOPS_OF_A_TEXT[key] = counter.get_total_flops()
    return round(FLOPS_OF_A_TEXT[key] / length * num_tokens)
