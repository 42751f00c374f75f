"""The settings that decide what a run computes, the key made of them, and how two configurations differ.

All lists of such settings are here.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from firstlight.errors import UserError

NOT_PART_OF_A_RUN = (  # top-level keys that do not change what a run computes, but where, how fast or what it prints
    *("resume", "tags", "paths", "sweep", "logger", "callbacks", "test", "train", "hydra"),
    *("optimized_metric", "optimized_mode", "dry_run", "threads", "quiet"),
)
FREE_OPTIONS = {  # the same for options of groups whose other options are part of a run
    "data": ("cache_dir", "evaluation_batch_size"),
    "trainer": (
        *("accelerator", "strategy", "benchmark", "deterministic", "detect_anomaly", "inference_mode", "profiler"),
        *("default_root_dir", "enable_autolog_hparams", "enable_checkpointing", "enable_model_summary"),
        *("enable_progress_bar", "log_every_n_steps", "num_sanity_val_steps"),
    ),
}
# All other settings are part of a run: two runs that differ in one of them have different keys. A run that is resumed
# by its folder may still have another value, such as a larger trainer.max_epochs. The options below are an exception:
# they decide what a step computes, and must stay the same.
MAY_CHANGE_ON_RESUME = ("init_from", "teacher", "epochs", "min_steps")  # the content of a teacher must be the same
FIXED_OF_TRAINER = (
    *("accumulate_grad_batches", "gradient_clip_val", "gradient_clip_algorithm", "precision"),
    *("limit_train_batches", "devices", "num_nodes"),
)


def run_key(config: DictConfig) -> str:
    """Return a hash of all settings that decide what a run computes."""
    text = json.dumps(comparable(plain(config), NOT_PART_OF_A_RUN), sort_keys=True)
    return "k" + hashlib.sha256(text.encode()).hexdigest()[:16]


def description(config: DictConfig, choices: Any) -> dict[str, Any]:
    """Return what the record of a run says of its configuration. choices: of the groups, as Hydra records them."""
    return {
        **{key: choices.get(key) for key in ("task", "model", "experiment")},
        **{key: config[key] for key in ("dropout", "context_length", "seed", "optimized_metric")},
        "run_key": run_key(config),
    }


def logged_columns(choices: Mapping[str, Any], network: str, source: str | None) -> dict[str, Any]:
    """Return the columns that compare runs in loggers, besides the configuration.

    choices: of the groups, or the record of a run, which has them; network: the name of its kind; source: of its data.
    """
    names = {"task": "task", "model_name": "model", "experiment": "experiment"}  # `model` has the sizes
    columns = {column: choices.get(key) for column, key in names.items()}
    return columns | {"network": network, "data_source": source}


def first_difference(config: DictConfig, trained: dict[str, Any]) -> str | None:
    """Return the first key in which the trained configuration differs, with both values; None for the same run."""
    now, then = (flat(comparable(each, NOT_PART_OF_A_RUN)) for each in (plain(config), trained))
    keys = (key for key in sorted(now.keys() | then.keys()) if now.get(key) != then.get(key))
    return next((f"{key}={then.get(key)}, which is {now.get(key)} now" for key in keys), None)


def refuse_other_config(config: DictConfig, trained: dict[str, Any]) -> None:
    """Raise UserError if a run was trained with another network, data or optimizer than config has."""
    now, then = (flat(_fixed(each)) for each in (plain(config), trained))
    for key in sorted(then):  # a later version may have more keys
        if now.get(key) != then[key]:
            problem = f"{key}={now.get(key)} differs from the {then.get(key)} that the resumed run was trained with"
            raise UserError(f"{problem}; start a new run, or init_from= this one")


def plain(config: DictConfig) -> dict[str, Any]:
    """Return the resolved config as dicts, lists, strings and numbers."""
    values = {str(key): config[key] for key in config if key != "hydra"}  # which cannot be resolved before a run starts
    return {
        key: OmegaConf.to_container(value, resolve=True, enum_to_str=True) if OmegaConf.is_config(value) else value
        for key, value in values.items()
    }


def _fixed(container: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that must stay the same in a resumed run. container: the resolved config in plain types."""
    kept = comparable(container, NOT_PART_OF_A_RUN + MAY_CHANGE_ON_RESUME)
    if not all(isinstance(kept.get(part), dict) for part in ("trainer", "data")):
        raise UserError("the run's saved configuration has no trainer or no data; the run must be trained again")
    kept["trainer"] = {key: kept["trainer"].get(key) for key in FIXED_OF_TRAINER}
    return kept


def comparable(container: dict[str, Any], leave_out: tuple[str, ...]) -> dict[str, Any]:
    """Return a resolved config in plain types without some keys and without free options."""
    kept = {key: value for key, value in container.items() if key not in leave_out}
    for group, options in FREE_OPTIONS.items():
        if isinstance(kept.get(group), dict):
            kept[group] = {key: value for key, value in kept[group].items() if key not in options}
    return kept


def flat(container: Any, prefix: str = "") -> dict[str, Any]:
    """Return a nested dict by dotted keys."""
    if not isinstance(container, dict):
        return {prefix: container}
    children = (flat(child, f"{prefix}.{name}" if prefix else str(name)) for name, child in container.items())
    return {key: value for child in children for key, value in child.items()}
