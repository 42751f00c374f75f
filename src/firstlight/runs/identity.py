"""Which settings make a run the run that it is, the key of a run, and how two configurations differ.

Every list of such settings is here.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from firstlight.earlier_names import earlier_config
from firstlight.errors import UserError

NOT_PART_OF_A_RUN = (  # keys at the top that change where, how fast or how loudly a run computes, but not what
    *("resume", "tags", "paths", "sweep", "logger", "callbacks", "test", "train", "hydra"),
    *("optimized_metric", "optimized_mode", "dry_run", "threads", "quiet", "print_config"),
)
FREE_OPTIONS = {  # likewise, options of groups whose other options are part of a run
    "data": ("cache_dir", "num_workers", "evaluation_batch_size", "device_resident"),
    "trainer": (
        *("accelerator", "strategy", "benchmark", "deterministic", "detect_anomaly", "inference_mode", "profiler"),
        *("default_root_dir", "enable_autolog_hparams", "enable_checkpointing", "enable_model_summary"),
        *("enable_progress_bar", "log_every_n_steps", "num_sanity_val_steps"),
    ),
}
# What is not listed above is part of a run: two runs that differ in it have different keys. A run that is named by its
# folder may go on with another value all the same, for the options below excepted: those decide what its steps are,
# and others, such as trainer.max_epochs, only how long it goes on.
MAY_CHANGE_ON_RESUME = ("init_from",)
FIXED_OF_TRAINER = (
    *("accumulate_grad_batches", "gradient_clip_val", "gradient_clip_algorithm", "precision"),
    *("limit_train_batches", "devices", "num_nodes"),
)
# Callbacks that print something and neither change nor record anything: finished runs may differ in them.
CALLBACKS_THAT_PRINT = ("model_summary", "progress", "validation_line")
# The keys of runs that version 0.2.0 recorded left out no more than this.
NOT_PART_OF_A_RUN_IN_0_2 = tuple(key for key in NOT_PART_OF_A_RUN if key != "threads")
FREE_OPTIONS_IN_0_2 = {"data": ("cache_dir",), "trainer": ("default_root_dir",)}
# Options that version 0.2.0 does not have, with their defaults. A default does not change the key of a run.
ADDED_SINCE_0_2: dict[str, dict[str, Any]] = {
    "trainer": {"enable_progress_bar": True},
    "model": {"_target_": None, "options": {}},
    "vectors": {"method": "lanczos"},
}


def run_key(config: DictConfig) -> str:
    """A name for everything that decides what a run computes: equal configs have equal keys."""
    return _hash_of(_comparable(plain(config), NOT_PART_OF_A_RUN))


def is_of_run(record: dict[str, Any], config: DictConfig) -> bool:
    """Whether a record is that of a run which computes what config says. Knows the keys of version 0.2.0 too."""
    return record.get("run_key") in (run_key(config), run_key_in_0_2(config))


def run_key_in_0_2(config: DictConfig) -> str:
    """The key that version 0.2.0 gave to a run with this configuration."""
    return _hash_of(_comparable(plain(config), NOT_PART_OF_A_RUN_IN_0_2, FREE_OPTIONS_IN_0_2))


def _hash_of(container: dict[str, Any]) -> str:
    text = json.dumps(earlier_config(container), sort_keys=True)  # a run keeps its key when an option is renamed
    return "k" + hashlib.sha256(text.encode()).hexdigest()[:16]


def first_difference(config: DictConfig, trained: dict[str, Any]) -> str | None:
    """`key=value` of the trained configuration where it first differs from config; None if they are the same run."""
    now, then = (flat(_comparable(each, NOT_PART_OF_A_RUN)) for each in (plain(config), trained))
    keys = (key for key in sorted(now.keys() | then.keys()) if now.get(key) != then.get(key))
    return next((f"{key}={then.get(key)}, where it is {now.get(key)} here" for key in keys), None)


def refuse_other_config(config: DictConfig, trained: dict[str, Any]) -> None:
    """Raise UserError if a run was trained with another network, other data or another optimizer than config names."""
    now, then = (flat(_fixed(each)) for each in (plain(config), trained))
    for key in sorted(then):  # a key that it does not have came after the version that trained it
        if now.get(key) != then[key]:
            raise UserError(
                f"{key}={now.get(key)} differs from the {then.get(key)} that the resumed run was trained with; "
                f"start a new run, or init_from= this one"
            )


def plain(config: DictConfig) -> dict[str, Any]:
    """The resolved config in nothing but dicts, lists, strings and numbers."""
    keys = [str(key) for key in config if key != "hydra"]  # Hydra's own part cannot be resolved before a run starts
    return {
        key: OmegaConf.to_container(config[key], resolve=True, enum_to_str=True)
        if OmegaConf.is_config(config[key])
        else config[key]
        for key in keys
    }


def _fixed(container: dict[str, Any]) -> dict[str, Any]:
    """What must not change when a run goes on. container: the resolved config in plain types."""
    kept = _comparable(container, NOT_PART_OF_A_RUN + MAY_CHANGE_ON_RESUME)
    if not all(isinstance(kept.get(part), dict) for part in ("trainer", "data")):
        raise UserError("the run's saved configuration has no trainer or no data; the run must be trained again")
    kept["trainer"] = {key: kept["trainer"].get(key) for key in FIXED_OF_TRAINER}
    return kept


def _comparable(
    container: dict[str, Any],
    leave_out: tuple[str, ...],
    free_options: Mapping[str, tuple[str, ...]] = FREE_OPTIONS,
) -> dict[str, Any]:
    """Return a resolved config in plain types without some keys, free options, and later options at their defaults."""
    kept = {key: value for key, value in container.items() if key not in leave_out}
    for group, options in free_options.items():
        if isinstance(kept.get(group), dict):
            kept[group] = {key: value for key, value in kept[group].items() if key not in options}
    for group, defaults in ADDED_SINCE_0_2.items():
        if isinstance(kept.get(group), dict):
            kept[group] = {key: v for key, v in kept[group].items() if key not in defaults or v != defaults[key]}
    return kept


def flat(container: Any, prefix: str = "") -> dict[str, Any]:
    """Return a nested dict by dotted keys."""
    if not isinstance(container, dict):
        return {prefix: container}
    children = (flat(child, f"{prefix}.{name}" if prefix else str(name)) for name, child in container.items())
    return {key: value for child in children for key, value in child.items()}
