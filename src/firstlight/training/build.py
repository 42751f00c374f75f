"""Builds all parts of a run: data, network, loggers, callbacks and trainer."""

import inspect
import logging
import math
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.utils import get_object, instantiate
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.accelerators import CUDAAccelerator
from lightning.pytorch.callbacks import Checkpoint, ProgressBar
from lightning.pytorch.loggers import Logger
from lightning.pytorch.plugins.environments import SLURMEnvironment
from omegaconf import DictConfig, OmegaConf
from torch import nn
from torchmetrics import Metric, MetricCollection

from firstlight.callbacks.checkpoint import AtomicCheckpointIO, FinalValidation, ReseedEveryStep
from firstlight.callbacks.evaluation import TorchMetric
from firstlight.callbacks.prune_trial import pruning_of_trial
from firstlight.callbacks.stop_signals import StopAtStepEnd
from firstlight.data.batches import batches_per_epoch, steps_per_epoch
from firstlight.data.options import SourceKind
from firstlight.data.table_data import TableData
from firstlight.errors import UserError, arguments_of
from firstlight.kind.kind import Kind
from firstlight.kind.registry import kind_of_config
from firstlight.lit.lightning_internals import NoProfiler, call_overridden_hooks_only
from firstlight.lit.metadata import metadata_of
from firstlight.lit.networks import build_network
from firstlight.lit.running_mean import TrainingLoss
from firstlight.lit.training import Training
from firstlight.runs import trackio_logger, wandb_logger
from firstlight.runs.folder import RunFolder
from firstlight.runs.history import HistoryLogger
from firstlight.runs.identity import logged_columns, plain
from firstlight.runs.targets import import_targets
from firstlight.training.initialize import give_tokenizer, set_vectors
from firstlight.training.teachers import refuse_other_teacher, set_teacher

log = logging.getLogger(__name__)


@dataclass
class Parts:
    """Parts of a run."""

    kind: Kind
    data: TableData
    module: LightningModule
    trainer: Trainer
    history: HistoryLogger
    teacher: dict[str, Any] | None = None  # what the record says about it


def build(config: DictConfig, folder: RunFolder, task: str, resumed_metadata: dict[str, Any] | None = None) -> Parts:
    """Prepare the data, then build everything that depends on it.

    On a GPU it also sets the precision of matrix products, a global option of torch.

    resumed_metadata: The metadata of the checkpoint from which a run resumes; None for a new run.

    Raises UserError if the data has changed since that checkpoint, before a logger writes anything.
    """
    kind, data = kind_of_config(config), prepared_data(config, resumed_metadata)
    if resumed_metadata is not None:
        refuse_other_data(data, resumed_metadata["data_fingerprint"])
    network = new_network(config, data, is_resumed=resumed_metadata is not None)
    if config.compile:  # in place, so that the weights keep their names
        network.compile(dynamic=not kind.model.reads_windows, mode=config.compile_mode)
    module = build_module(config, network, data)
    teacher = set_teacher(config, kind, module, data)
    if resumed_metadata is not None:
        refuse_other_teacher(teacher, resumed_metadata.get("teacher"))
    epochs, values = number_of_epochs(config, data), plain(config)
    metadata = {**metadata_of(data, kind.name, values), "task": task, "max_epochs": epochs}
    metadata |= {"has_given_tokenizer": True} if data.given_tokenizer else {}
    if teacher is not None:
        metadata["teacher"] = teacher
    if isinstance(module, Training):
        module.metadata = metadata
    history = HistoryLogger(folder.history_file)
    loggers = [history, *build_loggers(config, data, task)]
    choices = HydraConfig.get().runtime.choices if HydraConfig.initialized() else {}
    columns = logged_columns({**choices, "task": task}, kind.name, data.source.kind.value)
    for logger in loggers:
        logger.log_hyperparams({**values, **columns})
    every = epochs_between_validations(config, data, epochs)
    of_run = {"logger": loggers, "max_epochs": epochs, "check_val_every_n_epoch": every}
    trainer = build_trainer(config, metadata, build_callbacks(config, kind), **of_run)
    if isinstance(trainer.accelerator, CUDAAccelerator):
        torch.set_float32_matmul_precision("high")  # TF32; on a CPU it makes attention's backward pass ten times slower
    trainer.precision_plugin.convert_module(module)  # Lightning does it after reading a checkpoint: float64 is rounded
    return Parts(kind, data, module, trainer, history, teacher)


def prepared_data(config: DictConfig, resumed_metadata: dict[str, Any] | None = None) -> TableData:
    """Set the number of threads of torch, and return the data module, ready for a training.

    resumed_metadata: as in `build`. Raises UserError if the data or a class of the config cannot be used.
    """
    quieten()
    import_targets(config)
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    data: TableData = instantiate(config.data, _convert_="object")
    give_tokenizer(config, data, resumed_metadata)
    data.ensure_setup()
    return data


def new_network(config: DictConfig, data: TableData, *, is_resumed: bool = False) -> nn.Module:
    """Seed torch, and return the network with the weights with which its training starts."""
    torch.manual_seed(config.seed)
    network = build_network(OmegaConf.to_object(config.model), **data.network_sizes())
    vectors: Any = OmegaConf.to_object(config.vectors)
    set_vectors(vectors, network, data, is_resumed=is_resumed)
    return network


def refuse_other_data(data: TableData, trained_on: str) -> None:
    """Raise UserError if the fingerprint of the data differs from trained_on."""
    if trained_on != data.source.fingerprint:
        raise UserError(
            f"{data.source.where} is not the data that the run was trained on, or has changed since the run began "
            f"(fingerprint {data.source.fingerprint}, then {trained_on}); name or restore that data, or start a new run"
        )


def build_module(config: DictConfig, network: nn.Module, data: TableData) -> LightningModule:
    """Return the LightningModule that config.module names, with the network."""
    loss = config.module.get("loss")
    own = {"loss": _loss(loss)} if isinstance(loss, DictConfig) and "_target_" in loss else {}
    with arguments_of("module"):
        return instantiate(config.module, **dict.fromkeys(own))(
            **own,
            network=network,
            optimizer=instantiate(config.optimizer, **optimizer_changes(config), _convert_="all"),
            schedule=instantiate(config.schedule, _convert_="all"),
            **data.module_options(),
        )


def _loss(node: DictConfig) -> Any:
    """Return the loss that config.module.loss names: an object of a class, or a function with its other arguments."""
    loss = instantiate(node, _partial_=not isinstance(get_object(node["_target_"]), type))
    try:
        inspect.signature(loss).bind("logits", "targets")
    except (TypeError, ValueError) as error:
        target = node["_target_"]
        raise UserError(
            f"module.loss._target_={target} must be a function of logits and targets; correct it and its arguments"
        ) from error
    return loss


def optimizer_changes(config: DictConfig) -> dict[str, Any]:
    """Return the options of the optimizer that must change.

    A fused step cannot clip gradients in mixed precision, since Lightning unscales them between the two.
    """
    is_mixed = str(config.trainer.get("precision")).endswith("-mixed")
    if is_mixed and config.trainer.get("gradient_clip_val") and config.optimizer.get("fused"):
        log.info("optimizer.fused=false, since gradients are clipped in mixed precision")
        return {"fused": False}
    return {}


def build_callbacks(config: DictConfig, kind: Kind) -> list[Callback]:
    """Return the callbacks that config.callbacks names, those of every run, and the metrics that compare runs."""
    chosen = [_built(name, node) for name, node in (config.callbacks or {}).items() if node]
    if config.quiet or not config.trainer.get("enable_progress_bar", True):
        chosen = [callback for callback in chosen if not isinstance(callback, ProgressBar)]
    for needed in kind.get("run").metric_callbacks:
        if not any(isinstance(callback, needed) for callback in chosen):
            chosen.insert(0, needed())
    if (pruning := pruning_of_trial(config)) is not None:
        chosen.append(pruning)
    return [ReseedEveryStep(config.seed), TrainingLoss(), FinalValidation(), *chosen, StopAtStepEnd()]


def _built(name: str, node: DictConfig) -> Callback:
    """Return the callback that a node of config.callbacks names. A metric of torchmetrics is logged by its key."""
    built = instantiate(node)
    return TorchMetric(built, name) if isinstance(built, Metric | MetricCollection) else built


def build_loggers(config: DictConfig, data: TableData, task: str) -> list[Logger]:
    """Return the loggers that config.logger names."""
    of_run = {"trackio": trackio_logger.logger_options, "wandb": wandb_logger.logger_options}
    is_sample = data.source.kind is SourceKind.sample
    loggers = []
    for name, node in (config.logger or {}).items():
        if node:
            options = of_run[name](config, node, task, is_sample=is_sample) if name in of_run else {}
            options |= wandb_logger.identity(config, node) if name == "wandb" else {}
            loggers.append(instantiate(node, **options, _convert_="all"))
    return loggers


def number_of_epochs(config: DictConfig, data: TableData) -> int:
    """Return trainer.max_epochs. Where it is null, return -1 for a run of trainer.max_steps, otherwise config.epochs.

    The training of a small file has more than config.epochs, so that it has config.min_steps.
    """
    trainer = config.trainer
    if trainer.max_epochs is not None or trainer.max_steps != -1:
        return -1 if trainer.max_epochs is None else trainer.max_epochs
    steps = steps_per_epoch(trainer, len(data.train_dataloader()))
    return max(config.epochs, math.ceil(config.min_steps / max(steps, 1)))


def epochs_between_validations(config: DictConfig, data: TableData, epochs: int) -> int | None:
    """Return trainer.check_val_every_n_epoch for a number of epochs. None: the interval counts across epochs."""
    trainer = config.trainer
    if trainer.check_val_every_n_epoch != 1:
        return trainer.check_val_every_n_epoch
    interval = trainer.val_check_interval
    if isinstance(interval, int):
        num_batches = batches_per_epoch(len(data.train_dataloader()), trainer.limit_train_batches)
        if interval > num_batches:
            return None
    is_longer = trainer.max_epochs is None and epochs > config.epochs
    return epochs // config.epochs if is_longer else 1  # as many validations as config.epochs would have


def build_trainer(config: DictConfig, metadata: dict[str, Any], callbacks: list[Callback], **of_run: Any) -> Trainer:
    """Return Lightning's Trainer. metadata: of its checkpoints; of_run: arguments that replace those of the config."""
    on_slurm = SLURMEnvironment.detect()
    call_overridden_hooks_only()
    unprofiled = {} if config.trainer.get("profiler") else {"profiler": NoProfiler()}
    return instantiate(
        config.trainer,
        **unprofiled,
        **of_run,
        callbacks=callbacks,
        # Lightning's own requeue would save in the middle of a step; `hydra/launcher=slurm` requeues.
        plugins=[AtomicCheckpointIO(metadata), *([SLURMEnvironment(auto_requeue=False)] if on_slurm else [])],
        enable_checkpointing=any(isinstance(callback, Checkpoint) for callback in callbacks),
        enable_progress_bar=any(isinstance(callback, ProgressBar) for callback in callbacks),
        _convert_="all",
    )


def quieten() -> None:
    """Suppress advice about hardware and Slurm, which does not apply here, and what torch says of ranks."""
    logging.getLogger("torch.multiprocessing.spawn").setLevel(logging.ERROR)  # callbacks/stop_signals.py says it
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    logging.getLogger("lightning.fabric").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message="The `srun` command is available on your system but is not used")
    warnings.filterwarnings("ignore", message=".*LeafSpec.* is deprecated.*")
    warnings.filterwarnings("ignore", message="Experiment logs directory .* exists")  # runs/history.py writes it again
    warnings.filterwarnings("ignore", message=".*is smaller than the logging interval.*")
