"""A grid of runs that can be stopped, repeated and asked what it would do."""

import hashlib
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.utils import JobStatus
from hydra.plugins.launcher import Launcher
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table

from firstlight.data.options import SourceKind
from firstlight.errors import RunError, UserError
from firstlight.runs import resume
from firstlight.runs.folder import RunFolder, lower_is_better
from firstlight.runs.launch import check

log = logging.getLogger(__name__)

ONE_BY_ONE = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
LONGEST_NAME = 120  # characters of a job's folder
LEFT_OUT_OF_THE_NAME = ("resume", "dry_run", "sweep.name", "paths.log_dir")  # what does not change the jobs


@dataclass(frozen=True)
class Job:
    """One point of the grid. overrides: what Hydra is given; varied: what differs between the jobs, `key=value`."""

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


def sweep(
    arguments: list[str],
    params: dict[str, str],
    config: DictConfig,
    loader: ConfigLoader,
    launcher_of: Callable[[DictConfig], Launcher],
) -> list[float | None]:
    """Run every job of the grid that is not finished; returns their metrics, of those too that were finished before.

    A job that fails does not end the sweep. Raises RunError at the end if one did, UserError before the first if one
    cannot be run.
    """
    started_at = time.perf_counter()
    jobs = with_sources(plan(arguments, params, config, loader))
    for job in jobs:
        refuse_other_sweep(job)
    if config.dry_run:
        show_plan(jobs)
        return []
    remaining = [job for job in jobs if job.status != "finished"]
    log.info("%s", summary(jobs))
    folder = jobs[0].folder.path.parent
    folder.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(config, folder / "multirun.yaml")
    launcher = launcher_of(OmegaConf.merge(config, {"hydra": {"sweep": {"dir": str(folder)}}}))  # type: ignore[arg-type]
    errors: dict[Path, str] = {}
    for batch in batches(remaining, config):
        results = launcher.launch([resumed(job) for job in batch], initial_job_idx=jobs.index(batch[0]))
        for job, result in zip(batch, results, strict=True):
            if result.status is JobStatus.FAILED:
                error: Any = result._return_value  # the public one would raise it
                errors[job.folder.path] = explained(error)
                is_known = isinstance(error, UserError | RunError)
                log.error("%s failed: %s", job.name, errors[job.folder.path], exc_info=None if is_known else error)
        log.info("%s", summary(jobs, time.perf_counter() - started_at, errors))
    show_results(jobs, errors)
    if errors:
        raise RunError(
            f"{len(errors)} of {len(jobs)} jobs failed, the first in {next(iter(errors))}: "
            f"{next(iter(errors.values()))}; the same command tries them again"
        )
    return [metric_of(job, job.record()) for job in jobs]


def plan(arguments: list[str], params: dict[str, str], config: DictConfig, loader: ConfigLoader) -> list[Job]:
    """Every job of the grid, checked. Raises UserError for one that cannot be run."""
    typed = [f"{key}={value}" for key, value in params.items() if key not in map(resume.key_of, arguments)]
    overrides = OverridesParser.create(config_loader=loader).parse_overrides(typed + arguments)
    sweep_name = config.sweep.name or name_of_sweep(overrides)
    jobs: list[Job] = []
    for choice in product(*map(choices, overrides)):
        varied = tuple(value for value, each in zip(choice, overrides, strict=True) if each.is_sweep_override())
        subdir = folder_name(varied)
        own = [*choice, f"sweep.name={sweep_name}", f"hydra.sweep.subdir={subdir}"]
        job_config = loader.load_sweep_config(config, own)
        HydraConfig.instance().set_config(job_config)
        try:
            check(job_config)
            refuse_processes(job_config)
        except UserError as error:
            raise UserError(f"{' '.join(varied)}: {error}") from error
        folder = RunFolder(Path(job_config.hydra.sweep.dir) / subdir)
        jobs.append(Job(tuple(own), varied, folder, job_config))
    repeated = [path for path, count in Counter(job.folder.path for job in jobs).items() if count > 1]
    if repeated:
        raise UserError(f"two jobs of the sweep are the same, {repeated[0].name}; remove one of the repeated values")
    return jobs


def choices(override: Override) -> list[str]:
    """What an override may be in a job: all values of a comma list, else the one value. Raises UserError."""
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if not override.is_discrete_sweep():
        raise UserError(f"{override.input_line}: a grid takes lists, such as {key}=1,2; an interval is for a search")
    return [f"{key}={value}" for value in override.sweep_string_iterator()]


def name_of_sweep(overrides: Sequence[Override]) -> str:
    """A name that the same command finds again, whatever the order of what was typed."""
    typed = sorted(
        str(override.input_line)
        for override in overrides
        if override.get_key_element().lstrip("+~") not in LEFT_OUT_OF_THE_NAME
    )
    return "s" + hashlib.sha256("\n".join(typed).encode()).hexdigest()[:10]  # a letter first: 1234e567 is a number


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
    if strategy.startswith(("ddp", "fsdp", "deepspeed")) and not re.search("spawn|fork|notebook", strategy):
        raise UserError(
            f"trainer.strategy={strategy} would start the whole sweep again in each process; use "
            f"trainer.strategy=ddp_spawn (or ddp_fork), or a launcher that gives each job a process of its own"
        )


def refuse_other_sweep(job: Job) -> None:
    """Raise UserError if the job's folder holds a run of another configuration."""
    record = job.record()
    if not record or record.get("run_key") == resume.run_key(job.config):
        return
    difference = "another configuration"
    if job.folder.config_file.is_file():
        trained = OmegaConf.to_container(OmegaConf.load(job.folder.config_file))
        difference = resume.first_difference(job.config, trained) or difference  # type: ignore[arg-type]
    raise UserError(
        f"{job.folder.path} holds a run of {difference}; give this sweep another sweep.name, or move that one"
    )


def with_sources(jobs: Sequence[Job]) -> list[Job]:
    """The jobs, told where their data was found: looked for once for all that have the same."""
    from hydra.utils import instantiate

    found: dict[str, SourceKind] = {}
    told = []
    for job in jobs:
        data = job.config.data
        if data.source is SourceKind.auto and data.get("path") is None:
            wanted = str([data._target_, *(data.get(key) for key in ("name", "hub", "url", "sample", "preparation"))])
            if wanted not in found:
                found[wanted] = instantiate(data, _convert_="object").source.kind
            data.source = found[wanted]
            job = replace(job, overrides=(*job.overrides, f"data.source={found[wanted].value}"))
        told.append(job)
    return told


def batches(jobs: list[Job], config: DictConfig) -> list[list[Job]]:
    """What is launched at once: one job where jobs run one by one, which leaves time to say how it went."""
    if config.hydra.launcher.get("_target_") == ONE_BY_ONE:
        return [[job] for job in jobs]
    return [jobs] if jobs else []


def resumed(job: Job) -> list[str]:
    """The overrides of a job, which goes on where it was interrupted; one that has no checkpoint begins again."""
    if not job.record():
        return list(job.overrides)
    return [*job.overrides, f"resume={resume.quoted(str(job.folder.path.absolute()))}"]


def explained(error: Exception) -> str:
    """An error in one line."""
    message = " ".join(str(error).split())
    return message if isinstance(error, UserError | RunError) else f"{type(error).__name__}: {message}"


def status_of(record: dict[str, Any]) -> str:
    """finished, failed, interrupted, running, or waiting for a job without a record."""
    return str(record.get("status", "waiting"))


def metric_of(job: Job, record: dict[str, Any]) -> float | None:
    """The optimized metric in the record of a job; None where there is none yet."""
    value = (record.get("metrics") or {}).get(job.config.optimized_metric)
    return None if value is None else float(value)


def summary(jobs: Sequence[Job], seconds: float = 0.0, errors: dict[Path, str] | None = None) -> str:
    """How far a sweep has come, what is best so far, and how long the rest may take."""
    records = ((job, job.record()) for job in jobs)
    done = [(job, record) for job, record in records if record.get("status") == "finished"]
    failed = len(errors or {})
    parts = [f"{len(jobs)} jobs: {len(done)} finished", f"{failed} failed", f"{len(jobs) - len(done) - failed} to go"]
    if scored := [(value, job) for job, record in done if (value := metric_of(job, record)) is not None]:
        choose = min if lower_is_better(jobs[0].config.optimized_metric) else max
        value, best = choose(scored, key=lambda pair: pair[0])
        parts.append(f"best {best.config.optimized_metric} {value:.4f} ({best.name})")
    durations = [sum(value or 0 for value in record["seconds"].values()) for _, record in done]
    if seconds and durations and (left := len(jobs) - len(done) - failed):
        parts.append(f"about {left * sum(durations) / len(durations):.0f} s left")
    return ", ".join(parts)


def show_plan(jobs: Sequence[Job]) -> None:
    """What a sweep would do: every job, its parameters, and whether it is done already."""
    table = Table(title=f"{len(jobs)} jobs in {jobs[0].folder.path.parent}; dry_run=true runs none")
    table.add_column("job")
    table.add_column("parameters", justify="right")
    table.add_column("status")
    for job, count in zip(jobs, parameter_counts(jobs), strict=True):
        table.add_row(job.name, f"{count:,}", job.status)
    Console().print(table)


def parameter_counts(jobs: Sequence[Job]) -> Iterator[int]:
    """The weights of each job's network; its data is prepared for that, once for all that share it."""
    import torch
    from hydra.utils import instantiate

    from firstlight.runs.networks import build_network

    sizes: dict[str, dict[str, int]] = {}
    for job in jobs:
        key = str(resume.plain(job.config)["data"] | {"seed": None})
        if key not in sizes:
            data = instantiate(job.config.data, _convert_="object")
            data.prepare_data()
            data.setup("fit")
            sizes[key] = data.network_sizes()
        with torch.device("meta"):
            network = build_network(OmegaConf.to_object(job.config.model), **sizes[key])
        yield sum(weight.numel() for weight in network.parameters())


def show_results(jobs: Sequence[Job], errors: dict[Path, str]) -> None:
    """Every job with its metric, or why it has none."""
    metric = jobs[0].config.optimized_metric
    table = Table(title=f"{jobs[0].folder.path.parent}")
    table.add_column("job")
    table.add_column("status")
    table.add_column(metric, justify="right")
    table.add_column("seconds", justify="right")
    for job in jobs:
        record = job.record()
        value = metric_of(job, record)
        status = "failed" if job.folder.path in errors else status_of(record)
        seconds = (record.get("seconds") or {}).get("fit")
        shown = errors.get(job.folder.path, "" if value is None else f"{value:.4f}")
        table.add_row(job.name, status, shown, "" if seconds is None else f"{seconds:.0f}")
    Console().print(table)
