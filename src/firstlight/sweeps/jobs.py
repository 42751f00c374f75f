"""The jobs of a sweep: what each is given, where it lies, and whether it can be run, all known before the first."""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from omegaconf import DictConfig

from firstlight.config.checks import check
from firstlight.config_files import choices as choices_of
from firstlight.data.options import SourceKind
from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_config
from firstlight.runs import identity
from firstlight.runs.folder import RunFolder
from firstlight.runs.overrides import key_of
from firstlight.spelling import quoted
from firstlight.sweeps import names

LONGEST_NAME = 120  # characters of a job's folder
SAYS_WHERE = (  # the options of data that a source depends on
    *("_target_", "source", "path", "name", "hub", "url", "sample", "preparation"),
    *("source_column", "target_column"),
)
MAY_NOT_CHANGE = ("train", "test", "optimized_metric", "callbacks")  # of a finished run, besides what is computed


@dataclass(frozen=True)
class Job:
    """One run of a sweep. overrides: what Hydra is given; varied: what differs between the jobs, `key=value`."""

    overrides: tuple[str, ...]
    varied: tuple[str, ...]
    folder: RunFolder
    config: DictConfig

    @property
    def name(self) -> str:
        return " ".join(self.varied) or self.folder.path.name

    def record(self) -> dict[str, Any]:
        """What its folder says: {} before there is anything."""
        return self.folder.read() if self.folder.is_run() else {}

    @property
    def status(self) -> str:
        return status_of(self.record())

    def description(self) -> dict[str, Any]:
        """What it is, as metrics.json says it."""
        choices = self.config.hydra.runtime.choices
        return {
            **{key: choices.get(key) for key in ("task", "model", "experiment")},
            **{key: self.config[key] for key in ("dropout", "context_length", "seed", "optimized_metric")},
            "overrides": [each for each in self.overrides if not each.startswith("hydra.")],
            "run_key": identity.run_key(self.config),
        }


class Composer:
    """Makes jobs of a command line. overrides: all that is typed, and what the sweeper's params add."""

    def __init__(self, arguments: list[str], params: dict[str, str], config: DictConfig, loader: ConfigLoader) -> None:
        self.config, self._loader = config, loader
        typed = {key_of(argument) for argument in arguments}
        given = [f"{key}={value}" for key, value in params.items() if key not in typed]
        self.overrides = OverridesParser.create(config_loader=loader).parse_overrides(given + arguments)
        self.name_the_sweep()

    def name_the_sweep(self) -> None:
        """Give the sweep the name that was typed, or that the same command has given it before, or else a new one."""
        names.check_sweep_name(self.config.sweep.name)
        self.sweeps = Path(self.config.paths.log_dir) / "sweeps"
        self.key = names.key_of_command(self.overrides)
        if self.config.sweep.name is not None:
            self.sweep_name, self.is_new = str(self.config.sweep.name), False
            return
        found = names.existing_name(self.sweeps, self.key)
        self.is_new = found is None
        self.sweep_name = found or names.free_name(self.sweeps, self.overrides, self.config)

    def claim(self, folder: Path) -> bool:
        """Make the folder of a new sweep that was not named.

        Returns False if another process made it since its name was chosen. Another name is chosen then, and the jobs
        must be composed again.
        """
        if not self.is_new or folder != self.sweeps / self.sweep_name:  # hydra.sweep.dir chooses another folder
            return True
        if names.claim(folder, self.key, self.overrides):
            return True
        self.name_the_sweep()
        return False

    def job(self, overrides: Sequence[str], varied: Sequence[str], subdir: str) -> Job:
        """The job of some values, in the folder subdir of the sweep. Raises UserError if it cannot be run."""
        own = (*overrides, f"sweep.name={quoted(self.sweep_name)}", f"hydra.sweep.subdir={subdir}")
        config = self._loader.load_sweep_config(self.config, list(own))
        HydraConfig.instance().set_config(config)
        try:
            check(config)
            refuse_processes(config)
        except UserError as error:
            raise UserError(f"{' '.join(varied)}: {error}") from error
        return Job(own, tuple(varied), RunFolder(Path(config.hydra.sweep.dir) / subdir), config)

    def grid(self) -> list[Job]:
        """A job for every choice of all values. Raises UserError for one that cannot be run."""
        jobs = []
        for choice in product(*map(choices, self.overrides)):
            pairs = zip(choice, self.overrides, strict=True)
            varied = tuple(value for value, override in pairs if override.is_sweep_override())
            jobs.append(self.job(choice, varied, folder_name(varied)))
        repeated = [path for path, count in Counter(job.folder.path for job in jobs).items() if count > 1]
        if repeated:
            raise UserError(
                f"two jobs of the sweep are the same, {repeated[0].name}; remove one of the repeated values"
            )
        return jobs


def choices(override: Override) -> list[str]:
    """What an override may be in a job: all values of a comma list, else the one value. Raises UserError."""
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if not override.is_discrete_sweep():
        raise UserError(
            f"{override.input_line}: a grid takes lists, such as {key}=1,2; an interval is for hparams_search=optuna"
        )
    pattern: Any = override.value()
    if isinstance(pattern, Glob):
        return [f"{key}={choice}" for choice in _matching(pattern, key.partition("@")[0].lstrip("+"), override)]
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def _matching(pattern: Glob, group: str, override: Override) -> list[str]:
    """Return the choices of a group that a pattern such as `glob(post/*)` matches. Raises UserError if there are none.

    Hydra matches only choices that are not in a folder of the group.
    """
    loader = override.config_loader
    known = loader.get_group_options(group) if loader and group.startswith("hydra/") else choices_of(group)
    if not known:
        raise UserError(f"{override.input_line}: glob requires a group, such as task=glob(*), and {group} is a key")
    if found := pattern.filter(known):
        return found
    raise UserError(f"{override.input_line}: no choice of {group} matches; the choices are {', '.join(known)}")


def folder_name(varied: Sequence[str]) -> str:
    """`model-tiny_seed-1` of seed=1 model=tiny; of a very long one, its beginning and a hash of it."""
    plain = sorted(re.sub(r"[^A-Za-z0-9_.+-]+", "-", value.lstrip("+~")).strip("-") for value in varied)
    name = "_".join(plain) or "job"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def refuse_processes(config: DictConfig) -> None:
    """Raise UserError for a strategy that starts the whole command again in each process."""
    strategy = str(config.trainer.get("strategy", "auto"))
    if strategy == "auto" and not (config.trainer.get("devices") in (1, "1") and config.trainer.get("num_nodes") == 1):
        strategy = "ddp"  # which Lightning takes for several devices
    if not strategy.startswith(("ddp", "fsdp", "deepspeed")) or re.search("spawn|fork|notebook", strategy):
        return
    if "Slurm" in str(config.hydra.launcher.get("_target_")):  # which starts a job's processes itself
        return
    raise UserError(
        f"trainer.strategy={strategy} would start the whole sweep again in each process; use trainer=ddp_sim or "
        f"trainer.strategy=ddp_spawn (or ddp_fork), or hydra/launcher=submitit_slurm with "
        f"hydra.launcher.tasks_per_node=<GPUs of a machine>"
    )


def refuse_other_sweep(job: Job, *, code: str, fingerprint: str) -> None:
    """Raise UserError if the job's folder holds a run of another configuration, other code or other data.

    code, fingerprint: of what would be run now.
    """
    record = job.record()
    if not record:
        return
    where = job.folder.path
    if not identity.is_of_run(record, job.config):
        difference = "another configuration"
        if job.folder.config_file.is_file():
            trained = read_config(job.folder.config_file)
            difference = identity.first_difference(job.config, trained) or difference
        raise UserError(f"{where} holds a run of {difference}; give this sweep another sweep.name, or move that one")
    if record.get("status") == "finished":
        refuse_other_choices(job)
    trained_on = (record.get("data") or {}).get("fingerprint", fingerprint)
    if trained_on != fingerprint:
        raise UserError(
            f"{where} holds a run on other data (fingerprint {trained_on}, and {fingerprint} here); "
            f"give this sweep another sweep.name, or restore the data"
        )
    if record.get("code", code) != code and not job.config.sweep.any_code:
        raise UserError(
            f"{where} holds a run of other code ({record['code']}, and {code} here); give this sweep another "
            f"sweep.name, or say sweep.any_code=true if the change makes no difference to what is finished"
        )


def refuse_other_choices(job: Job) -> None:
    """Raise UserError if a finished run was measured or watched otherwise than is asked for now."""
    if not job.folder.config_file.is_file():
        return
    trained = read_config(job.folder.config_file)
    now = job.config.copy()
    paths = trained.get("paths")
    now.paths.output_dir = _text(paths.get("output_dir") if isinstance(paths, dict) else None)  # where callbacks write
    now.test = bool(now.test)  # null is no, under -m
    if now.optimized_mode == "auto":
        now.optimized_mode = _text(trained.get("optimized_mode"))
    wanted, had = (_without_printing(each) for each in (identity.plain(now), trained))
    for key in MAY_NOT_CHANGE:
        if key in had and wanted[key] != had[key]:
            raise UserError(
                f"{job.folder.path} is a finished run of another {key}; "
                f"give this sweep another sweep.name, or move that one"
            )


def _without_printing(container: dict[str, Any]) -> dict[str, Any]:
    """A configuration in plain types without the callbacks that only print."""
    callbacks = container.get("callbacks")
    if not isinstance(callbacks, dict):
        return container
    kept = {key: each for key, each in callbacks.items() if key not in identity.CALLBACKS_THAT_PRINT}
    return container | {"callbacks": kept}


def _text(saved: Any) -> str:
    """What a folder says, as text in which nothing is interpolated."""
    return str(saved).replace("${", "\\${")


class Sources:
    """Where the jobs' data is: looked for once for all jobs that want the same."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[SourceKind, str]] = {}

    def settle(self, job: Job) -> tuple[Job, str]:
        """The job, told where its data is if it would look for it itself; and the fingerprint of that data."""
        data = job.config.data
        wanted = str([data.get(key) for key in SAYS_WHERE])
        if wanted not in self._found:
            from hydra.utils import instantiate

            source = instantiate(data, _convert_="object").source
            self._found[wanted] = source.kind, source.fingerprint
        kind, fingerprint = self._found[wanted]
        if data.source is SourceKind.auto and data.get("path") is None:
            data.source = kind
            job = replace(job, overrides=(*job.overrides, f"data.source={kind.value}"))
        return job, fingerprint


def status_of(record: dict[str, Any]) -> str:
    """finished, failed, interrupted, running, or waiting for a job without a record."""
    return str(record.get("status", "waiting"))
