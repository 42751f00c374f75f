"""The jobs of a sweep: their overrides, folders and configurations, which are checked before the first job starts."""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override, OverrideType
from omegaconf import DictConfig, OmegaConf

from firstlight.config.checks import check
from firstlight.config_files import choices as choices_of
from firstlight.data.options import SourceKind
from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_config
from firstlight.runs import identity
from firstlight.runs.folder import ENDED, RunFolder, lower_is_better
from firstlight.runs.overrides import key_of
from firstlight.runs.summary import grouped
from firstlight.runs.trials import is_chosen
from firstlight.spelling import quoted
from firstlight.sweeps.launchers import refuse_processes

LONGEST_NAME = 120  # characters of the name of a job's folder
FIXED_AT_THE_END = ("train", "test", "optimized_metric")  # of a finished run, besides its identity
SUBJECTS = ("experiment", "task")  # the groups whose choices begin the name of a sweep
LONGEST_SUBJECTS, LONGEST_KEYS = 30, 40  # characters
IGNORED = (  # keys that do not change the jobs, nor the name of the sweep
    *("resume", "dry_run", "quiet", "sweep.name", "sweep.any_code", "paths.log_dir", "sweep.stop_at_first_failure"),
    *("hydra.sweeper.n_trials", "hydra.launcher.n_jobs"),
    *("hydra.launcher.jobs_per_gpu", "hydra.launcher.jobs_per_stack"),
)
PLACES_AND_DATA = ("paths", "hydra", "sweep", "data")  # sections on which the folder or the data of a job depend
PLACE_OF_DATA = ("source", "path", "name", "hub", "url", "sample", "preparation")  # keys that decide the kind of source
Sources = dict[str, tuple[SourceKind, str]]  # the kind and the fingerprint, by the key of the data


@dataclass(frozen=True)
class Job:
    """A run of a sweep.

    overrides: all of them, for Hydra; varied: those that differ between jobs, `key=value`; compose: returns the
    configuration, which takes a tenth of a second; like: an ended job that differs only in values, if this job has
    ended too and their records differ as their overrides do. Its configuration need not be composed then.
    """

    overrides: tuple[str, ...]
    varied: tuple[str, ...]
    folder: RunFolder
    compose: Callable[[], DictConfig]
    like: "Job | None" = None

    @cached_property
    def config(self) -> DictConfig:
        return self.compose()

    @property
    def name(self) -> str:
        return " ".join(self.varied) or self.folder.path.name

    def record(self) -> dict[str, Any]:
        """Return its metrics.json; {} before the job has started. That of a job that has ended is read once."""
        record = vars(self).get("_ended") or (self.folder.read() if self.folder.is_run() else {})
        if record.get("status") in ENDED:
            vars(self)["_ended"] = record
        return record

    @property
    def status(self) -> str:
        return self.folder.status_of(self.record())

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED

    @property
    def data_key(self) -> str:
        """A text that is equal for jobs with the same data."""
        return str(OmegaConf.to_container(self.config.data, resolve=True) | {"seed": None})  # type: ignore[operator]

    @property
    def metric(self) -> str:
        """The optimized metric."""
        return str((self.record() if self.like else self.config)["optimized_metric"])

    @property
    def is_minimized(self) -> bool:
        """Whether the optimized metric should fall, by optimized_mode or else by its name."""
        mode = (self.record() if self.like else self.config)["optimized_mode"]
        return lower_is_better(self.metric) if mode == "auto" else bool(mode == "min")

    @property
    def run_key(self) -> str:
        return str(self.record()["run_key"]) if self.like else identity.run_key(self.config)

    def is_recorded_like(self, other: "Job") -> bool:
        """Return whether the records of two jobs differ as these jobs do, with the same code and the same data."""
        one, two = self.record(), other.record()
        recorded = _deciding(one.get("overrides")) ^ _deciding(two.get("overrides"))
        is_whole = all(isinstance(one.get(key), str) for key in ("run_key", "optimized_metric", "optimized_mode"))
        is_same = one.get("code") == two.get("code") and one.get("data") == two.get("data")
        return is_whole and is_same and recorded == _deciding(self.overrides) ^ _deciding(other.overrides)


def _deciding(overrides: Any) -> set[str]:
    """Return the overrides that change what a job is."""
    return {each for each in map(str, overrides if isinstance(overrides, list | tuple) else ()) if _is_deciding(each)}


@cache
def _is_deciding(override: str) -> bool:
    return key_of(override) not in IGNORED and not override.startswith("hydra.")


class Composer:
    """Composes the jobs of a command line. overrides: those typed, and those that the sweeper's params add."""

    def __init__(self, arguments: list[str], params: dict[str, str], config: DictConfig, loader: ConfigLoader) -> None:
        self.config, self._loader = config, loader
        typed = {key_of(argument) for argument in arguments}
        given = [f"{key}={value}" for key, value in params.items() if key not in typed]
        self.overrides = OverridesParser.create(config_loader=loader).parse_overrides(given + arguments)
        self.sweep_name = name_of_sweep(self.overrides, config)

    def job(self, overrides: Sequence[str], varied: Sequence[str], subdir: str) -> Job:
        """Return the job of some values, in the folder subdir of the sweep. Raises UserError if it cannot run."""
        own = self._complete(overrides, subdir)
        config = self._composed(own)
        try:
            check(config)
            refuse_processes(config)
        except UserError as error:
            raise UserError(f"{' '.join(varied)}: {error}") from error
        return Job(own, tuple(varied), RunFolder(Path(config.hydra.sweep.dir) / subdir), lambda: config)

    def _complete(self, overrides: Sequence[str], subdir: str) -> tuple[str, ...]:
        return (*overrides, f"sweep.name={quoted(self.sweep_name)}", f"hydra.sweep.subdir={subdir}")

    def _composed(self, overrides: Sequence[str]) -> DictConfig:
        config = self._loader.load_sweep_config(self.config, list(overrides))
        HydraConfig.instance().set_config(config)
        config.test = bool(config.test)  # null means false in a sweep
        return config

    def grid(self) -> list[Job]:
        """Return a job for every combination of values. Raises UserError if one of them cannot run.

        The first ended job of each combination of groups and data is composed. Other jobs are not, if their records
        say that they have ended with the overrides of this command.
        """
        jobs: list[Job] = []
        ended: dict[tuple[str, ...], Job] = {}
        values_only = [each.is_sweep_override() and self._is_value(each) for each in self.overrides]
        for choice in product(*map(choices, self.overrides)):
            pairs = zip(choice, self.overrides, strict=True)
            varied = tuple(value for value, override in pairs if override.is_sweep_override())
            shared = tuple(each for each, is_value in zip(choice, values_only, strict=True) if not is_value)
            subdir, like = folder_name(varied), ended.get(shared)
            if like is not None:
                own = self._complete(choice, subdir)
                folder = RunFolder(like.folder.path.with_name(subdir))
                job = Job(own, varied, folder, partial(self._composed, own), like)
            if like is None or not (job.has_ended and job.is_recorded_like(like)):
                job = self.job(choice, varied, subdir)
                if job.has_ended:
                    ended.setdefault(shared, job)
            jobs.append(job)
        refuse_doubles(jobs)
        return jobs

    def _is_value(self, override: Override) -> bool:
        """Return whether an override sets a value that changes neither the groups, nor the data, nor the folder."""
        key = str(override.key_or_group)
        is_open = override.type is not OverrideType.CHANGE or key in self.config.hydra.runtime.choices
        return not is_open and key.partition(".")[0] not in PLACES_AND_DATA


def refuse_doubles(jobs: Sequence[Job]) -> None:
    """Raise UserError if two jobs have one folder or the same values."""

    def values(job: Job) -> str:
        return str((identity.plain(job.config), job.config.hydra.runtime.choices))  # 01 is the integer 1

    same = [*grouped(jobs, lambda job: job.folder.path).values()]
    for alike in grouped(jobs, lambda job: job.run_key).values():
        same += grouped(alike, values).values() if len(alike) > 1 else []
    for job, *doubles in same:
        if doubles:
            names = f"{job.name}, {doubles[0].name}"
            raise UserError(f"{names}: two jobs of the sweep are the same; remove one value")


def name_of_sweep(overrides: Sequence[Override], config: DictConfig) -> str:
    """Return the name of the folder of a sweep, such as `depths`, or `sentiment-stars_model_dropout_3f9a1c`.

    Raises UserError for a sweep.name that is not a folder below the folder of all sweeps.
    """
    name = config.sweep.name
    if name is None:
        return f"{readable_name(overrides, config)}_{key_of_command(overrides)}"
    if any(part in ("", ".", "..") for part in str(name).split("/")):
        raise UserError(f"sweep.name={name}: must name a folder below <paths.log_dir>/sweeps, such as depths")
    return str(name)


def key_of_command(overrides: Sequence[Override]) -> str:
    """Return a key that is the same for the same overrides, in any order."""
    lines = sorted(_line(each) for each in overrides if each.get_key_element().lstrip("+~") not in IGNORED)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:6]


def _line(override: Override) -> str:
    """Return an override with its value in Python's notation, which does not depend on quotes, or a list as typed."""
    is_list = override.is_sweep_override()
    return str(override.input_line) if is_list else f"{override.get_key_element()}={override.value()!r}"


def readable_name(overrides: Sequence[Override], config: DictConfig) -> str:
    """Return the tasks (or the experiments) and the keys that vary, joined by underscores."""
    varied = {
        each.get_key_element().lstrip("+~").partition("@")[0]: str(each.input_line).partition("=")[2]
        for each in overrides
        if each.is_sweep_override()
    }
    fixed = config.hydra.runtime.choices
    subject = next(each for each in SUBJECTS if each in varied or fixed.get(each))
    chosen = varied.pop(subject, fixed.get(subject))
    keys = "_".join(_plain(re.split("[./]", key)[-1]) for key in varied)
    return "_".join(filter(None, [_plain(chosen)[:LONGEST_SUBJECTS].strip("-"), keys[:LONGEST_KEYS].strip("-_")]))


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.") or "x"


def choices(override: Override) -> list[str]:
    """Return an override for each value of a comma list; else the override itself. Raises UserError."""
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if not override.is_discrete_sweep():
        problem = f"{override.input_line}: a grid requires lists, such as {key}=1,2"
        raise UserError(f"{problem}; an interval requires hparams_search=optuna")
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
    """Return `model-tiny_seed-1` for seed=1 model=tiny; a very long name is cut and gets a hash."""
    plain = sorted(re.sub(r"[^A-Za-z0-9_.+-]+", "-", value.lstrip("+~")).strip("-") for value in varied)
    name = "_".join(plain) or "job"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def refuse_search_options(config: DictConfig) -> None:
    """Raise UserError for an option that only a search has, in a single run or a grid."""
    sweeper = config.hydra.sweeper
    wrong = [part for part in ("sampler", "pruner") if is_chosen(sweeper.get(part))]
    wrong += [key for key in ("objectives", "direction") if sweeper.get(key)]
    wrong += ["seeds"] if sweeper.get("seeds", 1) != 1 else []
    if wrong and sweeper.get("n_trials") is None:
        raise UserError(f"hydra.sweeper.{wrong[0]} requires a search; add hparams_search=optuna")


def refuse_other_sweep(job: Job, *, code: str, fingerprint: str) -> None:
    """Raise UserError if the job's folder has a run with another configuration, code or data.

    code, fingerprint: the hashes of the current code and data.
    """
    record = job.record()
    if not record:
        return
    kept, described = job.folder.config_file, record.get("data")
    trained = read_config(kept) if kept.is_file() else {}
    trained_on = described.get("fingerprint", fingerprint) if isinstance(described, dict) else fingerprint
    fixed = FIXED_AT_THE_END if record.get("status") in ENDED and trained else ()
    changed = [key for key in fixed if trained.get(key) != job.config[key]]
    remedy = "move the folder"
    if record.get("run_key") != identity.run_key(job.config):
        problem = (trained and identity.first_difference(job.config, trained)) or "another configuration"
    elif changed:
        problem = f"{changed[0]}={trained.get(changed[0])}, which is {job.config[changed[0]]} now"
    elif trained_on != fingerprint:
        problem, remedy = f"other data (fingerprint {trained_on}, now {fingerprint})", "restore the data"
    elif record.get("code", code) != code and not job.config.sweep.any_code:
        problem = f"other code ({record['code']}, now {code})"
        remedy = "set sweep.any_code=true if the change does not affect finished jobs"
    else:
        return
    raise UserError(f"{job.folder.path} has a run with {problem}; choose another sweep.name, or {remedy}")


def with_source(job: Job, found: Sources) -> tuple[Job, str]:
    """Return the job, with the source of its data as an override if it is automatic, and the fingerprint.

    found: the sources that are known already; a new one is added, for all jobs with the same data.
    """
    data = job.config.data
    wanted, place = job.data_key, str([data.get(key) for key in PLACE_OF_DATA])
    if wanted not in found:
        from hydra.utils import instantiate

        known = {"source": found[place][0]} if place in found else {}  # so that `auto` searches and warns once
        source = instantiate(data, **known, _convert_="object").source
        found[wanted] = found[place] = source.kind, source.fingerprint
    kind, fingerprint = found[wanted]
    if data.source is SourceKind.auto and data.get("path") is None:
        data.source = kind
        config = job.config
        job = replace(job, overrides=(*job.overrides, f"data.source={kind.value}"), compose=lambda: config)
    return job, fingerprint
