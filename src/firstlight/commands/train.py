"""`train`: from the command line to a checked configuration. Imports no torch: mistakes are reported at once."""

from firstlight.commands.frame import CRASH, STARTED_AT, answered, run_module  # starts the clock

# isort: split
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from firstlight import spelling
from firstlight.config.checks import check
from firstlight.config.command_line import help_words, prepared
from firstlight.config.messages import explained
from firstlight.config.schema import register_schemas
from firstlight.config.trainer_checks import check_accelerator
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_config
from firstlight.runs.folder import RunFolder, lower_is_better
from firstlight.sweeps import launchers
from firstlight.sweeps.jobs import refuse_search_options
from firstlight.sweeps.screen import own_output
from firstlight.terminal_text import say
from firstlight.training.resume import refuse_folder, resumed

SWEEPER = "hydra_plugins.resuming_sweeper.ResumingSweeper"


def main() -> None:
    """Compose, check and run one job, or several with `-m`."""
    register_schemas()
    spelling.use(spelling.as_override)
    refuse_interpolation(Path.cwd())
    os.environ["HYDRA_FULL_ERROR"] = "1"  # raise, so that a mistake is one line of ours
    with explained():
        if (asked := help_words(sys.argv[1:])) is not None:
            show_help(*asked)
            return
        sys.argv[1:] = resumed(prepared(sys.argv[1:]))
        _job()


def show_help(words: list[str], overrides: list[str]) -> None:
    """Print the help, with the values of the keys for some overrides."""
    from firstlight.config.help import help_text

    say(help_text(words, overrides))


@hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name=CONFIG_NAME)
def _job(config: DictConfig) -> float | None:
    """Run one job. Return the optimized metric, which Hydra's sweepers use."""
    spelling.use(spelling.as_override)  # needed again in a separate process
    hydra_config = HydraConfig.get()
    is_alone = hydra_config.mode is RunMode.RUN
    started_at = STARTED_AT if is_alone else time.perf_counter()  # the start of a sweep does not count for its jobs
    folder = Path(hydra_config.runtime.output_dir)
    is_checked = not is_alone and is_checked_by_sweeper(hydra_config)
    is_beside_others = not is_alone and launchers.is_parallel(hydra_config)
    has_own_output = is_checked or is_beside_others  # the terminal shows the table of the sweep
    # A mistake in a single run ends the process here, since Hydra would add a line.
    frame = answered() if is_alone else nullcontext()
    with frame, explained(), own_output(folder) if has_own_output else nullcontext():
        if not is_alone and not is_checked:  # CheckBeforeRun has checked a single run
            check(config)
        if not is_alone:
            refuse_folder(config, folder)
        complete(config)
        from firstlight.training.fit import train  # torch and Lightning: seconds, and only after the checks

        if is_beside_others:
            _use_share(config, folder.parent)
        return train(config, started_at)


def _use_share(config: DictConfig, folder: Path) -> None:
    """Take the share of a job that runs at the same time as others: of the GPUs, or of the cores.

    folder: of the sweep.
    """
    hydra_config = HydraConfig.get()
    whole: Any = OmegaConf.merge({"hydra": hydra_config}, config)
    config.threads = launchers.threads_of_jobs(whole)
    per_gpu = hydra_config.launcher.jobs_per_gpu
    launchers.claim_gpu(folder, count := launchers.num_gpus(config), per_gpu)
    if count:
        launchers.share_gpu_memory(per_gpu)


def is_checked_by_sweeper(hydra_config: Any) -> bool:
    """Return whether the sweeper checks all jobs before the first one starts, which only ours does."""
    return str(hydra_config.sweeper.get("_target_")) == SWEEPER


def refuse_interpolation(folder: Path) -> None:
    """Raise UserError for a current folder whose name Hydra would resolve, since the name is a part of its settings."""
    if "${" in str(folder):
        raise UserError(f"{folder}: the name of the current folder has ${{ in it, which Hydra resolves; rename it")


class CheckBeforeRun(Callback):
    """Reports a mistake before Hydra creates the run's folder."""

    def on_run_start(self, config: DictConfig, **_: Any) -> None:
        HydraConfig.instance().set_config(config)  # the folder's name uses Hydra's choices
        try:
            with answered(), explained():
                check(config)
                refuse_search_options(config)
                refuse_folder(config, Path(config.hydra.run.dir))
                if config.dry_run:
                    _show_plan(config)
                    sys.exit(0)
                check_accelerator(config.trainer)
        except Exception as error:  # Hydra ignores exceptions other than SystemExit here
            sys.excepthook(*sys.exc_info())  # it escapes control characters in the traceback
            raise SystemExit(CRASH) from error


def _show_plan(config: DictConfig) -> None:
    """Print what dry_run=true shows for a single run."""
    from firstlight.sweeps.jobs import Job
    from firstlight.sweeps.progress import show_plan

    show_plan([Job((), (), RunFolder(Path(config.hydra.run.dir)), config)])


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


if __name__ == "__main__":
    run_module(__spec__.name)
