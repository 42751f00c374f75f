"""From the command line to a checked config. Imports no torch, so that a mistake is answered at once."""

import difflib
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException, InstantiationException
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from firstlight import config_files, spelling
from firstlight.config import CharacterDataNode, PairDataNode, ReviewDataNode, register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from firstlight.data.parallel import check_pair_path
from firstlight.data.sources import check_path
from firstlight.data.text_sources import check_text_path
from firstlight.errors import UserError, reason
from firstlight.networks.config import Architecture
from firstlight.runs import launchers, resume
from firstlight.runs.command import CRASH, STARTED_AT, USER_MISTAKE, fail, run
from firstlight.runs.folder import RunFolder, find_run, lower_is_better
from firstlight.runs.metric_names import check_metric
from firstlight.runs.plain_yaml import read_config
from firstlight.runs.targets import check_targets
from firstlight.runs.trainer_checks import check_trainer
from firstlight.text.options import TokenizerKind, VectorsKind

WRITTEN_ONCE = (("model", "dropout"), ("model", "context_length"), ("data", "context_length"), ("data", "seed"))
COMPILE_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def main() -> None:
    """Compose, check and run one job, or under `-m` several."""
    register_schemas()
    spelling.use(spelling.as_override)
    os.environ["HYDRA_FULL_ERROR"] = "1"  # raise, so that a mistake is one line of ours
    with explained():
        resume.rewrite_command_line(CONFIG_DIR, CONFIG_NAME)
        _job()


@hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name=CONFIG_NAME)
def _job(config: DictConfig) -> float | None:
    """One job; returns the optimized metric, which Hydra's sweepers read."""
    if HydraConfig.get().mode is RunMode.MULTIRUN:
        return _checked_job(config)
    return run(partial(_checked_job, config))  # here, since Hydra would announce an error in a line of its own


def _checked_job(config: DictConfig) -> float | None:
    spelling.use(spelling.as_override)  # in a process of its own too
    hydra_config = HydraConfig.get()
    is_alone = hydra_config.mode is RunMode.RUN
    started_at = STARTED_AT if is_alone else time.perf_counter()  # a sweep's start-up is no job's own
    folder = Path(hydra_config.runtime.output_dir)
    is_beside_others = not is_alone and launchers.is_parallel(hydra_config)
    with explained(), launchers.own_output(folder) if is_beside_others else nullcontext():
        check(config)
        if not is_alone:
            refuse_folder(config, folder)
        complete(config)
        from firstlight.runs.train import train  # torch and Lightning: seconds, and only after the checks

        if is_beside_others:
            launchers.claim_gpu(folder.parent, launchers.num_gpus(config))
        return train(config, started_at)


@contextmanager
def explained() -> Iterator[None]:
    """Turn what Hydra and OmegaConf complain about into a UserError."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(explain(error)) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{mark.name}:{mark.line + 1}" if mark is not None else "a file of settings"
        raise UserError(f"{where}: it is not valid YAML ({error.problem}); correct it") from error


class CheckBeforeRun(Callback):
    """Answers a mistake before Hydra makes the run's folder."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        HydraConfig.instance().set_config(config)  # the folder's name is made of Hydra's choices
        try:
            check(config)
            refuse_folder(config, Path(config.hydra.run.dir))
            if config.dry_run:
                run(partial(_show_plan, config))
                sys.exit(0)
        except (UserError, OmegaConfBaseException) as error:  # Hydra swallows what is not a SystemExit here
            fail(explain(error), USER_MISTAKE)
        except Exception as error:
            sys.excepthook(*sys.exc_info())  # which makes the traceback visible characters
            raise SystemExit(CRASH) from error


def _show_plan(config: DictConfig) -> None:
    """What dry_run=true says of a single run."""
    from firstlight.runs.jobs import Job
    from firstlight.runs.progress import show_plan

    show_plan([Job((), (), RunFolder(Path(config.hydra.run.dir)), config)])


def check(config: DictConfig) -> None:
    """Raise UserError for a key that no schema knows, a wrong type or an impossible combination."""
    for path, node in typed_nodes(config):
        known = {field.name for field in fields(OmegaConf.get_type(node))} | {"hydra"}  # type: ignore[arg-type]
        for key in map(str, node):
            if key not in known:
                full_key = f"{path}.{key}" if path else key
                siblings = {f"{path}.{name}" if path else name for name in known}
                raise UserError(f"{full_key} is not a key of the configuration{did_you_mean(full_key, siblings)}")
    for name in ("paths", "tokenizer", "model", "vectors", "data"):
        try:
            OmegaConf.to_object(config[name])
        except ValueError as error:  # OmegaConf's errors are ValueErrors too
            raise UserError(explain(error)) from error
    check_targets(config)
    if not 0 <= config.seed < 2**32:
        raise UserError(f"seed={config.seed} must be at least 0 and below 2**32")
    for group, key in WRITTEN_ONCE:
        value = config[group].get(key, config[key])
        if value != config[key]:
            raise UserError(
                f"{group}.{key}={value} differs from {key}={config[key]}; write {key}={value}, which all read"
            )
    check_trainer(config)
    if config.threads is not None and config.threads < 1:
        raise UserError(f"threads={config.threads} must be at least 1, or null")
    if config.optimized_mode not in ("auto", "min", "max"):
        raise UserError(f"optimized_mode={config.optimized_mode} must be auto, min or max")
    if config.compile_mode not in COMPILE_MODES:
        raise UserError(f"compile_mode={config.compile_mode} must be null, {', '.join(filter(None, COMPILE_MODES))}")
    if config.compile_mode is not None and not config.compile:
        raise UserError(f"compile_mode={config.compile_mode} is of compile=true; set that too, or leave it out")
    check_metric(config)
    if OmegaConf.get_type(config.data) is ReviewDataNode:
        check_path(config.data.path, config.data.source)
    if OmegaConf.get_type(config.data) is CharacterDataNode:
        check_text_path(config.data.path)
    if OmegaConf.get_type(config.data) is PairDataNode:
        check_pair_path(OmegaConf.to_object(config.data))  # type: ignore[arg-type]
        if config.model.get("share_embeddings") and not config.data.shared_vocabulary:
            raise UserError(
                "model.share_embeddings=true needs data.shared_vocabulary=true; set one of them to the other's value"
            )
    check_vectors(config)
    if config.init_from is not None:
        find_run(config.init_from, Path(config.paths.log_dir))


def check_vectors(config: DictConfig) -> None:
    """Raise UserError for vectors of words where there are no words."""
    kind = config.vectors.kind
    if kind is VectorsKind.random:
        return
    if config.tokenizer.kind is not TokenizerKind.word:
        raise UserError(
            f"vectors={kind.value} are of words, and tokenizer.kind={config.tokenizer.kind.value}; "
            "set vectors=random, or tokenizer=word where the task has words"
        )
    if config.model.get("architecture") is Architecture.logistic:
        raise UserError(f"vectors={kind.value}: model=logistic has a weight for each word, not vectors; leave it out")
    if not config.vectors.trained and config.model.get("tie_embeddings"):
        raise UserError("vectors.trained=false would keep the output layer too; set model.tie_embeddings=false")
    if config.init_from is not None:
        raise UserError(
            f"vectors={kind.value} and init_from= both say what the vectors begin as; leave one of them out"
        )
    if config.resume is None and config.vectors.path is not None and not Path(config.vectors.path).is_file():
        raise UserError(f"vectors.path={config.vectors.path}: there is no such file")


def refuse_folder(config: DictConfig, path: Path) -> None:
    """Raise UserError if another run lies where this one would write, or if the one to resume was made otherwise.

    Before Hydra writes there: what is refused is left as it was. The first process of several asks for all of them.
    """
    if resume.is_further_process():
        return
    folder = RunFolder(path)
    if config.resume is None:
        if folder.checkpoints():
            raise UserError(f"{path} holds a run already; add resume=auto to go on with it, or move it")
        return
    if folder.is_locked():
        raise UserError(f"{path}: another process is training this run; wait for it, or stop it")
    if folder.config_file.is_file():
        resume.refuse_other_config(config, read_config(folder.config_file))


def typed_nodes(config: DictConfig, path: str = "") -> Iterator[tuple[str, DictConfig]]:
    """Every node that one of our dataclasses describes, with its full key."""
    if OmegaConf.get_type(config) is not dict:
        yield path, config
    for key in map(str, config):
        if key == "hydra" or OmegaConf.is_missing(config, key) or OmegaConf.is_interpolation(config, key):
            continue
        child = config[key]
        if isinstance(child, DictConfig):
            yield from typed_nodes(child, f"{path}.{key}" if path else key)


def complete(config: DictConfig) -> None:
    """Write down what depends on the rest or on Hydra: the run's folder, whether to test, which way is better."""
    hydra_config = HydraConfig.get()
    config.paths.output_dir = hydra_config.runtime.output_dir
    if config.test is None:
        config.test = hydra_config.mode is RunMode.RUN
    if config.optimized_mode == "auto":
        config.optimized_mode = "min" if lower_is_better(config.optimized_metric) else "max"


def explain(error: Exception) -> str:
    """Hydra's or OmegaConf's error in one line: the key, the value and what there is instead."""
    if not isinstance(error, HydraException | OmegaConfBaseException):
        return str(error)
    if isinstance(error, InstantiationException) and isinstance(error.__cause__, UserError):
        return str(error.__cause__)
    if isinstance(error, InstantiationException) and isinstance(error.__cause__, ValueError):
        key = re.search(r"full_key: (\S+)", str(error))
        return f"{key[1]}: {error.__cause__}" if key else str(error.__cause__)
    message = f"{error}\n{error.__cause__ or ''}"
    if located := re.search(r"Error (?:locating|loading) (?:target )?'([^']+)'", message):
        return f"{_target_key(error)}={located[1]} cannot be imported: {reason(error)}"
    if unknown := re.search(r"Could not override '([^']+)'\.\s+To append", message):
        full_key = unknown[1]
        return f"{full_key} is not a key of the configuration{did_you_mean(full_key, _known_keys())}"
    if choice := re.search(r"Could not find '([^']+)'\s+Available options in '([^']+)':(.*)", message, re.DOTALL):
        group, name = choice[2], choice[1].removeprefix(choice[2] + "/")
        options = re.findall(r"^\t(\S+)$", choice[3], re.MULTILINE)
        return f"{group}={name}: no such choice; there are {', '.join(options)}"
    if missing := re.search(r"Could not find '([^']+)'", message):  # Hydra lists nothing inside a folder of a group
        group, _, choice_path = missing[1].partition("/")
        return f"{group}={choice_path}: no such choice; there are {', '.join(config_files.choices(group))}"
    if misfit := re.search(r"In '(\w+)/([^']+)': ConfigKeyError.*Key '(\w+)' not in '", message, re.DOTALL):
        missing_key = f"{misfit[1]}.{misfit[3]}"
        if misfit[1] == "task" and misfit[3] == "task":
            return f"conf/task/{misfit[2]}.yaml: the first line of a task must be `# @package _global_`; add it"
        if misfit[1] != "model":
            return f"{misfit[1]}={misfit[2]}: its file sets {misfit[3]}, which is not a key here; correct the file"
        return f"{misfit[1]}={misfit[2]} is not for this task, whose network has no {missing_key}; choose another"
    if group := re.search(r"Could not override '([^']+)'\.\s+No match in the defaults list", message):
        return f"{group[1]} is not a group of the configuration{did_you_mean(group[1], _known_keys())}"
    message = re.sub(r"Error merging override (\S+)", r"\1:", message)
    message = re.sub(r"\s+(reference_type|object_type)=\S+", "", message)
    message = re.sub(r"\s+full_key: \S*", "", message)
    return " ".join(message.split())


def _target_key(error: Exception) -> str:
    """The full key of the `_target_` that Hydra's error is about."""
    key = re.search(r"full_key: (\S+)", str(error))
    return f"{key[1]}._target_" if key else "_target_"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'; did you mean …?' with the nearest known keys of the same parent, or where to look."""
    parent = word.rpartition(".")[0]
    siblings = {key for key in known if key.rpartition(".")[0] == parent}
    nearest = difflib.get_close_matches(word, siblings - {word}, n=2)
    return f"; did you mean {' or '.join(nearest)}?" if nearest else "; `--help` lists the keys"


def _known_keys() -> list[str]:
    """All keys and groups of the composition of the task that is typed."""
    task = resume.value_of("task", sys.argv[1:])
    is_known = task in config_files.choices("task")
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        config = hydra.compose(CONFIG_NAME, overrides=[f"task={task}"] if is_known else [])
    return config_files.groups() + list(_flat_keys(config))


def _flat_keys(config: DictConfig, prefix: str = "") -> Iterator[str]:
    for key in map(str, config):
        yield prefix + key
        if not OmegaConf.is_missing(config, key) and not OmegaConf.is_interpolation(config, key):
            child = config[key]
            if isinstance(child, DictConfig):
                yield from _flat_keys(child, f"{prefix}{key}.")
