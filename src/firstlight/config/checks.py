"""Checks of a composed configuration, by section. Imports torch only to look for a GPU that is named."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from firstlight import config_files
from firstlight.choices import nearest
from firstlight.config.keys import OPEN, as_typed, flat_keys, types_of_key
from firstlight.config.messages import did_you_mean, explain, explained
from firstlight.config.schema import compose
from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_yaml
from firstlight.kind.data_changes import DataChanges
from firstlight.kind.registry import kind_of_config
from firstlight.runs.folder import RunFolder
from firstlight.runs.named import find_run, find_runs, has_checkpoint, is_export
from firstlight.runs.overrides import key_of
from firstlight.runs.targets import check_targets
from firstlight.runs.trials import MEASURES
from firstlight.text.options import TokenizerKind, VectorsKind

NUMBERS = {"number", "integer", "null"}  # types of keys
MEASURED_BY = {  # in addition to the metrics of each kind of network
    "firstlight.callbacks.token_metrics.LastPosition": ("last_position_loss",),
    "firstlight.translator.translations.Translations": ("bleu", "chrf"),
}
COMPILE_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def check(config: DictConfig) -> None:
    """Raise UserError for an unknown key, a wrong type or an impossible combination."""
    check_keys(config)
    check_callbacks(config)
    check_values(config)
    check_targets(config)
    check_written_once(config)
    check_trainer(config)
    check_model(config)
    check_run(config)
    check_labels(config)
    check_teacher(config)
    check_metric(config)
    data: Any = OmegaConf.get_type(config.data)
    data.check(config)
    check_vectors(config)
    check_numbers(config)  # last, since it imports the classes of keys that are typed without a number


def compose_task(task: str, changes: DataChanges, log_dir: Path, output_dir: Path) -> DictConfig:
    """Return the checked configuration of a task with other data, for commands that only use its data.

    Raises UserError for a task that does not exist, an option that its data does not have, and missing data.
    """
    if task not in (names := config_files.choices("task")):
        raise UserError(f"--task {task}: this task does not exist; there are {', '.join(names)}")
    with explained():
        config = compose([f"task={task}"], with_hydra=True)
        for name in changes.given():
            if name not in config.data:
                raise UserError(f"data.{name} does not apply to --task {task}; leave it out")
        config.data.update(changes.options())
        config.paths.update(log_dir=str(log_dir), output_dir=str(output_dir))
        check(config)
    return config


def check_keys(config: DictConfig) -> None:
    """Raise UserError for a key that the dataclass of its section does not have, as `+model.foo=3` adds."""
    for section in ("", *map(str, config)):
        node = config[section] if section else config
        owner = OmegaConf.get_type(node)
        if section == "hydra" or not is_dataclass(owner):
            continue
        prefix = section and f"{section}."
        known = {prefix + field.name for field in fields(owner)} | {"hydra"}
        for key in (prefix + str(name) for name in node):
            if key not in known:
                others = {each for each in flat_keys(config) if each.rpartition(".")[0] != section}
                raise UserError(f"{key} is not a key of the configuration{did_you_mean(key, known | others)}")


def check_callbacks(config: DictConfig) -> None:
    """Raise UserError for a callback or logger that is neither null nor a node with `_target_`."""
    for group in ("callbacks", "logger"):
        for name, node in (config[group] or {}).items():
            if node and not (OmegaConf.is_dict(node) and "_target_" in node):
                raise UserError(f"{group}.{name}={node} names no class; set {group}.{name}._target_, or null for none")


def check_values(config: DictConfig) -> None:
    """Raise UserError for values that the dataclass of a section rejects."""
    for name in ("paths", "tokenizer", "model", "vectors", "data", "distillation"):
        try:
            OmegaConf.to_object(config[name])
        except ValueError as error:  # OmegaConf's errors are ValueErrors too
            raise UserError(explain(error)) from error


def check_numbers(config: DictConfig) -> None:
    """Raise UserError for a key that was typed without a number, although the class that reads it accepts only numbers.

    null passes, since a class may accept it.
    """
    hydra = config.get("hydra")
    for name in flat_keys(config) if hydra is None else map(key_of, hydra.overrides.task):
        value = OmegaConf.select(config, name) if name.partition(".")[0] in OPEN else None
        if value is None or is_number(value) or isinstance(value, DictConfig):
            continue
        values = list(value) if isinstance(value, ListConfig) else value
        names = types_of_key(config, name)
        if names == ["list of numbers"] and not (isinstance(values, list) and all(map(is_number, values))):
            raise UserError(f"{name}={as_typed(values)} must be a list of numbers")
        if names and NUMBERS.issuperset(names):
            raise UserError(f"{name}={as_typed(values)} must be a number")


def check_written_once(config: DictConfig) -> None:
    """Raise UserError if a section has another value than the top-level key, which all sections use."""
    for group, key in (("model", "dropout"), ("model", "context_length"), ("data", "context_length"), ("data", "seed")):
        value = config[group].get(key, config[key])
        if value != config[key]:
            remedy = f"write {key}={value}, which sets all sections"
            raise UserError(f"{group}.{key}={value} differs from {key}={config[key]}; {remedy}")


def check_model(config: DictConfig) -> None:
    """Raise UserError for a size that was typed, such as model=large, if the network has another width than that size.

    Then the experiment sets the width itself, so a sweep over sizes would train the same network several times.
    """
    choices = OmegaConf.select(config, "hydra.runtime.choices") or {}
    size, experiment = choices.get("size"), choices.get("experiment")
    if not experiment or config.resume is not None:
        return
    typed = set(map(key_of, config.hydra.overrides.task))
    if "model" not in typed or "model.dim" in typed or size not in config_files.choices("size"):
        return
    dim = read_yaml(config_files.file_of("size", size)).get("dim")
    if config.model.get("dim") != dim:
        reason = f"because experiment={experiment} and its files set model.dim={config.model.dim}"
        remedy = f"leave it out, or set model.dim={dim} and the other sizes"
        raise UserError(f"model={choices['model']} has no effect, {reason}; {remedy}")


def check_run(config: DictConfig) -> None:
    """Raise UserError for a top-level key that is out of range, or if the run of init_from does not exist."""
    if not 0 <= config.seed < 2**32:
        raise UserError(f"seed={config.seed} must be at least 0 and below 2**32")
    if config.epochs < 1:
        raise UserError(f"epochs={config.epochs} must be at least 1; to train nothing, set train=false")
    if config.threads is not None and config.threads < 1:
        raise UserError(f"threads={config.threads} must be at least 1, or null")
    if config.optimized_mode not in ("auto", "min", "max"):
        raise UserError(f"optimized_mode={config.optimized_mode} must be auto, min or max")
    if config.compile_mode not in COMPILE_MODES:
        raise UserError(f"compile_mode={config.compile_mode} must be null, {', '.join(filter(None, COMPILE_MODES))}")
    if config.compile_mode is not None and not config.compile:
        raise UserError(f"compile_mode={config.compile_mode} requires compile=true; set that too, or leave it out")
    has_own = config.resume is not None and has_checkpoint(RunFolder(Path(config.resume)))
    if config.init_from is not None and not is_export(config.init_from) and not has_own:  # which resuming needs no more
        find_run(config.init_from, Path(config.paths.log_dir))


def check_labels(config: DictConfig) -> None:
    """Raise UserError for a tag, or a name for W&B, that is empty, too long for W&B or not printable."""
    for key in ("tags", *(f"logger.wandb.{name}" for name in ("tags", "name", "group", "project", "job_type"))):
        value, most = OmegaConf.select(config, key), 64 if key.endswith("tags") else 128
        for text in value if isinstance(value, ListConfig) else [value]:
            if text is not None and not (isinstance(text, str) and text.isprintable() and 0 < len(text) <= most):
                raise UserError(f"{key}={str(text)[:40]!r} must be a text of 1 to {most} printable characters")


def check_teacher(config: DictConfig) -> None:
    """Raise UserError if a teacher does not exist."""
    for name in config.teacher or ():
        try:
            find_runs(name, Path(config.paths.log_dir))
        except UserError as error:
            raise UserError(f"teacher={error}") from error


def known_metrics(config: DictConfig) -> list[str] | None:
    """Return the metrics of validation, sorted; None if a class of the user may measure others."""
    nodes = [config.module, *(config.callbacks or {}).values()]
    targets = [str(node.get("_target_")) for node in nodes if node]
    if not all(target.startswith(("firstlight.", "lightning.")) for target in targets):
        return None
    optional = {name for target in targets for name in MEASURED_BY.get(target, ())}
    return sorted(f"val/{name}" for name in {*kind_of_config(config).metrics(config), *optional})


def check_objectives(config: DictConfig, objectives: Iterable[str]) -> None:
    """Raise UserError for an objective of a search that no run has."""
    for name in objectives:
        if name not in MEASURES:
            _check_measured(config, "hydra.sweeper.objectives", name, MEASURES)


def check_metric(config: DictConfig) -> None:
    """Raise UserError if validation does not measure optimized_metric."""
    _check_measured(config, "optimized_metric", config.optimized_metric)


def _check_measured(config: DictConfig, key: str, name: str, others: Iterable[str] = ()) -> None:
    """Raise UserError for a metric that validation does not measure. others: further values that the key may have."""
    known = known_metrics(config)
    if name not in (known or ()) and not (known is None and name.startswith("val/")):
        there_are = [*others, *(known or ["any metric of validation, such as val/loss"])]
        guess = f"did you mean {key}={meant}? There" if (meant := nearest(name, there_are)) else "there"
        problem = f"{key}={name} is not measured in validation, by which runs are compared"
        raise UserError(f"{problem}; {guess} are {', '.join(there_are)}")


def check_vectors(config: DictConfig) -> None:
    """Raise UserError for word vectors in a task without words."""
    kind = config.vectors.kind
    if kind is VectorsKind.random:
        return
    if config.tokenizer.kind is not TokenizerKind.word:
        problem = f"vectors={kind.value} requires tokenizer=word, not tokenizer={config.tokenizer.kind.value}"
        raise UserError(f"{problem}; set vectors=random, or tokenizer=word if the task has words")
    if getattr(config.model.get("architecture"), "name", None) == "logistic":
        raise UserError(f"vectors={kind.value}: model=logistic has a weight for each word, no vectors; leave it out")
    if not config.vectors.trained and config.model.get("tie_embeddings"):
        raise UserError("vectors.trained=false would not train the output layer either; set model.tie_embeddings=false")
    if config.init_from is not None:
        raise UserError(f"vectors={kind.value} and init_from= both set the initial word vectors; leave one of them out")
    if config.resume is None and config.vectors.path is not None and not Path(config.vectors.path).is_file():
        raise UserError(f"vectors.path={config.vectors.path}: the file does not exist; check the path")


def check_trainer(config: DictConfig) -> None:
    """Raise UserError for an impossible number, and for a training without steps."""
    trainer = config.trainer
    for key in ("max_epochs", "max_steps", "accumulate_grad_batches", "log_every_n_steps"):
        if not isinstance(trainer.get(key), int | None):
            raise UserError(f"trainer.{key}={trainer[key]} must be a whole number")
    for key in ("accumulate_grad_batches", "check_val_every_n_epoch"):
        if is_number(trainer.get(key)) and trainer[key] < 1:
            raise UserError(f"trainer.{key}={trainer[key]} must be at least 1")
    if is_number(interval := trainer.get("val_check_interval")) and interval <= 0:
        problem = "must be a share of an epoch above 0, or a number of batches of at least 1"
        remedy = "to train without validation, set trainer.limit_val_batches=0"
        raise UserError(f"trainer.val_check_interval={interval} {problem}; {remedy}")
    for key in ("max_epochs", "max_steps", "limit_train_batches"):
        if config.train and is_number(trainer.get(key)) and trainer[key] == 0:
            remedy = "set a larger number, or train=false to train nothing"
            raise UserError(f"trainer.{key}=0 would train nothing; {remedy}")
    strategy = str(trainer.get("strategy", "auto"))
    if strategy.startswith(("fsdp", "deepspeed", "model_parallel")):
        problem = f"trainer.strategy={strategy} divides the parameters among processes, which is not supported"
        raise UserError(f"{problem}: weight decay and Muon depend on their shapes; use trainer=ddp")


def check_accelerator(trainer: DictConfig) -> None:
    """Raise UserError for a GPU that this machine does not have. Imports torch, but only if a GPU is named."""
    accelerator, devices = trainer.get("accelerator"), str(trainer.get("devices"))
    if accelerator not in ("gpu", "cuda", "mps"):
        return
    count = num_gpus(accelerator)
    if count == 0:
        raise UserError(f"trainer.accelerator={accelerator}: torch finds no such device; set trainer=cpu")
    if devices.isdecimal() and int(devices) > count:
        raise UserError(f"trainer.devices={devices}: torch finds {count}; set trainer.devices={count}")


def num_gpus(accelerator: str) -> int:
    """Return the number of GPUs that torch can use as `gpu`, `cuda` or `mps`. Imports torch."""
    import torch

    count = 0 if accelerator == "mps" else torch.cuda.device_count()  # which does not initialize CUDA
    return count or int(accelerator != "cuda" and torch.backends.mps.is_available())


def is_number(value: Any) -> bool:
    """Return whether a value is a number and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)
