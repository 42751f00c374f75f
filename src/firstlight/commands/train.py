"""`train`: from the command line to the training. Imports no torch before the checks: mistakes are reported at once."""

from firstlight.commands.frame import STARTED_AT, run  # starts the clock

# isort: split
import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra._internal.callbacks import Callbacks
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.hydra import Hydra
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobStatus, run_job
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf

from firstlight import config_files, spelling
from firstlight.config.checks import check, check_accelerator
from firstlight.config.keys import TEXTS
from firstlight.config.messages import explained, known_keys, nearest_keys
from firstlight.config.schema import OnceForEachChoice, register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_config
from firstlight.runs.folder import RunFolder, lower_is_better
from firstlight.runs.targets import needs_all_metrics
from firstlight.sweeps import launchers
from firstlight.sweeps.jobs import Job, refuse_search_options
from firstlight.sweeps.screen import own_output
from firstlight.terminal_text import say
from firstlight.training.resume import keep_own_settings, refuse_folder, resume_own, resumed

LISTS = ("tags", "teacher")  # keys whose value may be given without brackets
SWEPT = "teacher"  # of these, the one whose commas divide the values of a sweep
SINGLE_DASH = re.compile(r"-(?!(c[pnd]|sc)(=|$))[a-z][\w.]+(=.*)?", re.DOTALL)  # a key, not a short option of Hydra
QUESTIONS = ("help", "hydra_help", "cfg", "info", "shell_completion", "resolve", "package")  # options of Hydra


def main() -> None:
    """Compose the configuration, check it and train: one run, or several with `-m`."""
    register_schemas()
    spelling.use(spelling.as_override)
    if "${" in str(Path.cwd()):
        raise UserError(f"{Path.cwd()}: the name of the current folder has ${{ in it, which Hydra resolves; rename it")
    with explained():
        asked, options, typed = parsed(sys.argv[1:])
        is_question = any(getattr(asked, option) for option in QUESTIONS)
        overrides = typed if is_question else resumed(typed, is_sweep=asked.multirun)
        sys.argv[1:] = [*options, *overrides]  # which Lightning passes to the other processes of a run
        if is_question:
            answer(asked, overrides)
            return
        with hydra.initialize_config_dir(str(CONFIG_DIR), job_name=CONFIG_NAME, version_base="1.3"):
            app: Hydra = GlobalHydra.instance().hydra  # type: ignore[assignment]  # it is initialized
            config = composed(app, overrides, is_sweep=asked.multirun)
            if config.hydra.mode is RunMode.MULTIRUN:
                if asked.doctor:
                    raise UserError("--doctor examines one run; leave out -m and lists of values")
                sweep(config, HydraContext(OnceForEachChoice(app.config_loader), Callbacks(config)))
                return
            context = HydraContext(app.config_loader, Callbacks(config))
            check_run(config, typed)
            if config.dry_run:
                from firstlight.sweeps.progress import show_plan

                show_plan([Job((), (), RunFolder(Path(config.hydra.run.dir)), lambda: config)])
                return
            check_accelerator(config.trainer)
            if asked.doctor:
                from firstlight.training.doctor import report

                report(config)
                return
            context.callbacks.on_run_start(config=config, config_name=CONFIG_NAME)
            ended = run_job(train_run, config, "hydra.run.dir", job_subdir_key=None, hydra_context=context)
            context.callbacks.on_run_end(config=config, config_name=CONFIG_NAME, job_return=ended)
            if ended.status is JobStatus.FAILED:
                raise ended._return_value  # return_value would print a line of Hydra


def parsed(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str], list[str]]:
    """Return the options of Hydra by name, the same as they were typed, and the overrides as Hydra accepts them.

    Raises UserError for an option with dashes that Hydra does not have.
    """
    for number, argument in enumerate(arguments):
        if SINGLE_DASH.fullmatch(argument):
            _refuse(argument, arguments[number + 1 :])
    parser = _Parser(add_help=False, parents=[get_args_parser()], conflict_handler="resolve")
    parser.add_argument("--doctor", action="store_true")
    asked, unknown = parser.parse_known_intermixed_args(list(arguments))
    for option in unknown:
        _refuse(option, arguments[arguments.index(option) + 1 :])
    options = list(arguments)
    for override in reversed(asked.overrides):  # the value of an option comes before, such as `--cfg job`
        del options[len(options) - 1 - options[::-1].index(override)]
    for option, remedy in TEXTS["unused_options"].items():
        if getattr(asked, option):
            raise UserError(f"--{option.replace('_', '-')} {getattr(asked, option)}: {remedy}")
    return asked, options, [each for override in asked.overrides for each in _accepted(override)]


def _refuse(option: str, following: Sequence[str]) -> NoReturn:
    """Raise UserError for an option with dashes. The message shows the key to write instead.

    following: the arguments after it, of which the first one may be its value, as in `--task stars`.
    """
    name, is_given, value = option.partition("=")
    if not is_given and following and not re.search("^-|=", following[0]):
        value = following[0]
        option = f"{option} {value}"
    key, known = name.lstrip("-").replace("-", "_"), known_keys()
    meant = [key] if key in known else nearest_keys(key, known)
    keys = " or ".join(f"{each}={value or '…'}" for each in meant)
    remedy = f"write {keys}" if meant else "`--help` lists the keys"
    raise UserError(f"{option}: train takes key=value, without dashes; {remedy}")


def _accepted(argument: str) -> list[str]:
    """Return an override as Hydra accepts it; `folds=5` as the overrides of all folds. Raises UserError."""
    key, is_given, value = argument.partition("=")
    if key == "folds":
        if not (value.isdecimal() and int(value) >= 2):
            raise UserError(f"{argument}: must be a whole number of at least 2; write folds=5")
        return [f"data.folds={value}", f"data.fold={','.join(map(str, range(int(value))))}"]
    if key == SWEPT:
        value = ",".join(map(_as_list, re.findall(r"\[[^\]]*\]|[^,]+", value)))
    elif key in LISTS:
        value = _as_list(value)
    if value.startswith("~/"):  # bash leaves it there, and Hydra cannot read it
        value = f"{Path.home()}/{value[2:]}"
    return [f"{key}{is_given}{value}"]


def _as_list(value: str) -> str:
    """Return a value as a list of one, unless it is a list, null, or resolved later."""
    return value if value in ("", "null") or value.startswith(("[", "$")) else f"[{value}]"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; `--help` lists the options")


def answer(asked: argparse.Namespace, overrides: list[str]) -> None:
    """Print the help, or what another option of Hydra asks for, such as `--cfg job`."""
    if asked.help:
        from firstlight.config.help import help_text

        words = [each for each in overrides if "=" not in each]
        say(help_text(words, [each for each in overrides if "=" in each]))
        return
    os.environ["HYDRA_FULL_ERROR"] = "1"  # raise, so that a mistake is one line of ours
    hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name=CONFIG_NAME)(train_run)()


def composed(app: Hydra, overrides: list[str], *, is_sweep: bool) -> DictConfig:
    """Return the configuration with the node `hydra`, whose mode says whether it is a run or a sweep.

    Raises ConfigCompositionException for several values of a key in a single run, and UserError for a plus before a
    group of the defaults list and for null in place of a choice, with which Hydra's answers mislead.
    """
    if is_sweep:
        overrides = [*overrides, "hydra.mode=MULTIRUN"]
    typed = OverridesParser.create().parse_overrides(overrides)
    for each in typed:
        line, group = str(each.input_line), each.key_or_group
        if each.is_add() and group in TEXTS["groups"]:
            raise UserError(f"{line}: a group needs no plus; write {line.lstrip('+')}")
        chosen = [] if each.is_delete() else getattr(each.value(), "list", [each.value()])
        if None in chosen and ("/" in group or group in config_files.groups()):  # such as hydra/launcher
            raise UserError(f"{line}: a group requires a choice, not null; name one, or leave it out")
    has_lists = any(each.is_sweep_override() for each in typed)
    mode = RunMode.MULTIRUN if is_sweep or has_lists else RunMode.RUN
    config: DictConfig = app.compose_config(
        CONFIG_NAME, overrides, mode, with_log_configuration=True, validate_sweep_overrides=False
    )
    config.hydra.mode = config.hydra.mode or RunMode.RUN  # an experiment can be a sweep
    ConfigLoaderImpl.validate_sweep_overrides_legal(typed, config.hydra.mode, from_shell=True)
    return config


def sweep(config: DictConfig, context: HydraContext) -> None:
    """Pass the jobs to the sweeper, which composes each of them and calls `train_job`."""
    sweeper = Plugins.instance().instantiate_sweeper(config=config, hydra_context=context, task_function=train_job)
    context.callbacks.on_multirun_start(config=config, config_name=CONFIG_NAME)
    typed: Any = OmegaConf.to_container(config.hydra.overrides.task, resolve=False)  # each job resolves ${…} by itself
    sweeper.sweep(arguments=typed)
    context.callbacks.on_multirun_end(config=config, config_name=CONFIG_NAME)


def check_run(config: DictConfig, typed: Sequence[str]) -> None:
    """Raise UserError for a mistake in the configuration of a single run, before Hydra creates its folder.

    A run that is resumed first gets the settings that its folder stores. typed: the overrides of the command.
    """
    HydraConfig.instance().set_config(config)  # the folder's name uses Hydra's choices
    keep_own_settings(config, typed)
    check(config)
    refuse_search_options(config)
    refuse_folder(config, Path(config.hydra.run.dir))


def train_run(config: DictConfig, started_at: float = STARTED_AT, stack: Any = None) -> float | None:
    """Train a run whose configuration is checked. Return the optimized metric.

    started_at: the time.perf_counter of its start; the start of a sweep does not count for its jobs. stack: as in
    `firstlight.training.fit.train`.
    """
    complete(config)
    if not needs_all_metrics(config):
        import firstlight.lit.light  # noqa: F401  (before Lightning)
    from firstlight.training.fit import train  # torch and Lightning: seconds, and only after the checks

    return train(config, started_at, stack)


def train_job(config: DictConfig, stack: Any = None) -> float | None:
    """Train a job that the sweeper has checked, perhaps in another process. Return the optimized metric.

    stack: as in `firstlight.training.fit.train`.
    """
    started_at = time.perf_counter()
    spelling.use(spelling.as_override)
    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    with explained(), own_output(folder):  # the terminal shows the table of the sweep
        if record := resume_own(config, folder):
            return record["metrics"].get(config.optimized_metric)
        refuse_folder(config, folder)
        launchers.use_share(config, hydra_config)
        return train_run(config, started_at, stack)


def had_test(folder: RunFolder) -> bool:
    """Return `test` of the run to resume, which is false for a job of a sweep; true if the folder does not store it."""
    return not folder.config_file.is_file() or read_config(folder.config_file).get("test") is not False


def complete(config: DictConfig) -> None:
    """Set the values that depend on other values or on Hydra: the run's folder, test and optimized_mode."""
    hydra_config = HydraConfig.get()
    config.paths.output_dir = hydra_config.runtime.output_dir
    if config.test is None:
        is_new = config.resume is None
        config.test = hydra_config.mode is RunMode.RUN and (is_new or had_test(RunFolder(Path(config.resume))))
    if config.optimized_mode == "auto":
        config.optimized_mode = "min" if lower_is_better(config.optimized_metric) else "max"


if __name__ == "__main__":  # imported by its own name, so that other processes can import its functions
    run(import_module(__spec__.name).main)
