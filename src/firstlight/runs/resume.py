"""Going on with a run in its own folder: Hydra is given the old command line, the new one, and the old folder."""

import hashlib
import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import hydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from firstlight import config_files
from firstlight.errors import UserError
from firstlight.runs import foreign
from firstlight.runs.folder import RunFolder, refuse_links
from firstlight.runs.identity import (
    FIXED_OF_TRAINER,
    FREE_OPTIONS,
    FREE_OPTIONS_IN_0_2,
    MAY_CHANGE_ON_RESUME,
    NOT_PART_OF_A_RUN,
    NOT_PART_OF_A_RUN_IN_0_2,
)
from firstlight.runs.overrides import key_of, merged
from firstlight.terminal_text import say

log = logging.getLogger(__name__)

UNFINISHED = ("running", "interrupted", "failed")
WHERE_TO_RESUME = {"resume", "hydra.run.dir"}
QUESTIONS = ("-h", "--help", "-c", "--cfg", "-i", "--info", "--hydra-help")
WITH_VALUE = config_files.OPTIONS  # options of Hydra whose value is the next argument
SECONDS_TO_WAIT = 10  # for another process that ends, such as one that still writes its last checkpoint


def rewrite_command_line(config_dir: Path, config_name: str) -> None:
    """Where `resume=` is given, make sys.argv compose the old run again, in its folder; else leave it alone.

    Raises UserError if there is nothing to resume. Ends the process, with a word, where the run is finished already.
    """
    options, typed = options_and_overrides(sys.argv[1:])
    if is_further_process():  # it was given the command line of the first one
        return
    wish = value_of("resume", typed)
    if wish is None or any(option in QUESTIONS for option in options):
        return
    if any(option in ("-m", "--multirun") for option in options):
        raise UserError(f"resume={wish} goes on with one run, and -m starts several; leave one of them out")
    if wish == "auto":
        folder = _unfinished_run(typed, config_dir, config_name)
        if folder is None:
            say("resume=auto: there is no unfinished run of this configuration, so a new one starts")
            return
    else:
        folder = RunFolder(Path(wish))
        folder.read()
    wait_until_free(folder)
    if folder.read().get("status") == "finished" and {key_of(argument) for argument in typed} <= WHERE_TO_RESUME:
        say(f"{folder.path} is finished already; to train it further, raise trainer.max_epochs")
        sys.exit(0)
    refuse_links(folder.path)
    old = saved_overrides(folder, typed)
    new = [argument for argument in typed if key_of(argument) not in WHERE_TO_RESUME]
    where = str(folder.path.absolute())
    sys.argv[1:] = [*options, *merged(old, new), f"resume={quoted(where)}", f"hydra.run.dir={quoted(where)}"]


def wait_until_free(folder: RunFolder) -> None:
    """Wait some seconds for another process that trains the run of a folder. Raises UserError if it does not end."""
    if not folder.is_locked():
        return
    say(f"{folder.path}: another process is training this run; waiting up to {SECONDS_TO_WAIT} s for its end")
    end = monotonic() + SECONDS_TO_WAIT
    while folder.is_locked():
        if monotonic() >= end:
            raise UserError(f"{folder.path}: another process is training this run; wait for it, or stop it")
        sleep(0.1)


def is_further_process() -> bool:
    """Whether another process of this run came first, started by Lightning, torchrun or Slurm."""
    return any(os.environ.get(name, "0") != "0" for name in ("LOCAL_RANK", "SLURM_PROCID"))


def saved_overrides(folder: RunFolder, typed: list[str]) -> list[str]:
    """The command line that a run was started with, without what it may not choose: runs/foreign.py.

    typed: the command line of now. Raises UserError where Hydra's record is missing, or names code that is not allowed.
    """
    try:
        return foreign.kept_overrides(folder.overrides_file, typed)
    except FileNotFoundError:
        raise UserError(f"{folder.path} cannot be resumed: it has no .hydra/overrides.yaml") from None


def options_and_overrides(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Divide a command line into Hydra's options, such as --config-dir with its folder, and the overrides."""
    options: list[str] = []
    overrides: list[str] = []
    for before, argument in zip(["", *arguments], arguments, strict=False):
        is_option = argument.startswith("-") or before in WITH_VALUE
        (options if is_option else overrides).append(argument)
    return options, overrides


def value_of(key: str, arguments: list[str]) -> str | None:
    """The last value that the command line gives to a key."""
    values = [argument for argument in arguments if key_of(argument) == key]
    if not values:
        return None
    value = OverridesParser.create().parse_override(values[-1]).value()
    return None if value is None else str(value)


def run_key(config: DictConfig) -> str:
    """A name for everything that decides what a run computes: equal configs have equal keys."""
    return _hash_of(_comparable(plain(config), NOT_PART_OF_A_RUN))


def is_of_run(record: dict[str, Any], config: DictConfig) -> bool:
    """Whether a record is that of a run which computes what config says. Knows the keys of version 0.2.0 too."""
    of_0_2 = _hash_of(_comparable(plain(config), NOT_PART_OF_A_RUN_IN_0_2, FREE_OPTIONS_IN_0_2))
    return record.get("run_key") in (run_key(config), of_0_2)


def _hash_of(container: dict[str, Any]) -> str:
    return "k" + hashlib.sha256(json.dumps(container, sort_keys=True).encode()).hexdigest()[:16]


def first_difference(config: DictConfig, trained: dict[str, Any]) -> str | None:
    """`key=value` of the trained configuration where it first differs from config; None if they are the same run."""
    now, then = (_flat(_comparable(each, NOT_PART_OF_A_RUN)) for each in (plain(config), trained))
    keys = (key for key in sorted(now.keys() | then.keys()) if now.get(key) != then.get(key))
    return next((f"{key}={then.get(key)}, where it is {now.get(key)} here" for key in keys), None)


def refuse_other_config(config: DictConfig, trained: dict[str, Any]) -> None:
    """Raise UserError if a run was trained with another network, other data or another optimizer than config names."""
    now, then = (_flat(_fixed(each)) for each in (plain(config), trained))
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


def _unfinished_run(typed: list[str], config_dir: Path, config_name: str) -> RunFolder | None:
    """The folder that `resume=auto` means: hydra.run.dir where it is given, else the newest unfinished equal run."""
    if given := value_of("hydra.run.dir", typed):
        folder = RunFolder(Path(given))
        return folder if folder.is_run() else None
    with hydra.initialize_config_dir(str(config_dir), version_base="1.3"):
        config = hydra.compose(config_name, overrides=typed)
    for metrics_file in sorted(
        Path(config.paths.log_dir).glob("*/runs/*/metrics.json"), reverse=True, key=_folder_name
    ):
        folder = RunFolder(metrics_file.parent)
        try:
            record = folder.read()
        except UserError as error:  # a foreign or damaged folder is no reason not to train
            log.warning("resume=auto passes over %s", error)
            continue
        if record.get("status") in UNFINISHED and is_of_run(record, config):
            return folder
    return None


def _folder_name(metrics_file: Path) -> str:
    return metrics_file.parent.name  # begins with the time of the run's start


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
    """A resolved config in plain types, without some keys and without the free options of groups."""
    kept = {key: value for key, value in container.items() if key not in leave_out}
    for group, options in free_options.items():
        if isinstance(kept.get(group), dict):
            kept[group] = {key: value for key, value in kept[group].items() if key not in options}
    return kept


def _flat(container: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(container, dict):
        return {prefix: container}
    children = (_flat(child, f"{prefix}.{name}" if prefix else str(name)) for name, child in container.items())
    return {key: value for child in children for key, value in child.items()}


def quoted(path: str) -> str:
    """A path as one value of Hydra's grammar, whatever characters it has."""
    escaped = path.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
