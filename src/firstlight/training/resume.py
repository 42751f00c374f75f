"""Resuming a run in its folder, with its old overrides and the new ones."""

import logging
import os
import sys
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from omegaconf import DictConfig, OmegaConf

from firstlight.config.schema import compose
from firstlight.config_files import groups
from firstlight.errors import UserError
from firstlight.files.locks import SECONDS_WITHOUT_BEAT
from firstlight.files.plain_yaml import read_config
from firstlight.runs import foreign
from firstlight.runs.folder import ENDED, RunFolder, refuse_links
from firstlight.runs.identity import flat, plain, refuse_other_config, run_key
from firstlight.runs.named import LATEST, find_run, is_searched, task_of
from firstlight.runs.overrides import key_of, merged, value_of
from firstlight.spelling import quoted
from firstlight.terminal_text import say

log = logging.getLogger(__name__)

UNFINISHED = ("running", "interrupted", "failed")
# Until an earlier process of a job, which a cluster has ended, has written its last checkpoint. If it was killed on
# another computer, its lock counts for SECONDS_WITHOUT_BEAT.
SECONDS_FOR_OTHERS = SECONDS_WITHOUT_BEAT + 5
LIMITS = "trainer.max_epochs or trainer.max_steps"
DERIVED = ("resume", "test", "optimized_mode", "dry_run")  # stored as what they meant for the run, or for this command
WHERE_TO_RESUME = {"resume", "hydra.run.dir"}


def resumed(typed: list[str], *, is_sweep: bool) -> list[str]:
    """Return the overrides of a command; if `resume=` is among them, those that compose the old run in its folder.

    The process ends with a message if the run is already finished.

    Raises UserError if there is no run to resume.
    """
    wish = value_of("resume", typed)
    if wish is None or is_further_process():  # whose overrides are those of the first process
        return typed
    if is_sweep:
        raise UserError(f"resume={wish} resumes one run, and -m starts several; leave one of them out")
    if wish == "auto":
        folder = _unfinished_run(typed)
        if folder is None:
            say("resume=auto: no unfinished run has this configuration; a new run starts")
            return typed
    elif is_searched(wish):
        folder = _searched_run(wish, typed, _log_dir(typed))
        say(f"resume={wish}: {folder.path} (task={task_of(folder)})")
    else:
        folder = RunFolder(Path(wish))
        folder.read()
    if folder.read().get("status") == "finished" and {key_of(argument) for argument in typed} <= WHERE_TO_RESUME:
        say(f"{folder.path} is already finished; to train it further, raise {LIMITS}")
        sys.exit(0)
    refuse_links(folder.path)
    old = foreign.kept_overrides(folder.overrides_file, typed)
    new = [argument for argument in typed if key_of(argument) not in WHERE_TO_RESUME]
    if "${" in str(folder.path):
        raise UserError(f"resume={wish}: the name of the folder has ${{ in it, which Hydra resolves; rename the folder")
    where = quoted(str(folder.path.absolute()))
    one_run = "hydra.mode=RUN"  # also for a job of an experiment that is a sweep
    return [*merged(old, new), f"resume={where}", f"hydra.run.dir={where}", one_run]


def keep_own_settings(config: DictConfig, typed: Sequence[str]) -> None:
    """Give a resumed run the settings that its folder stores, except those typed now and those that follow from them.

    A default that has changed since the run began does not change it. A value that a folder may not choose, such as a
    class or a place, is the present one. typed: the overrides of the command. If they choose an experiment or another
    file for several parts of the configuration, all settings are the present ones.
    """
    keys = {key_of(argument) for argument in typed} - WHERE_TO_RESUME
    file = RunFolder(Path(config.resume or ".")).config_file
    if config.resume is None or not file.is_file() or keys & (set(groups()) - set(config) - {"task"}):
        return
    written = flat(OmegaConf.to_container(config, resolve=False))
    written = {key: value for key, value in written.items() if not key.startswith("hydra.")}  # which is read-only
    saved = {key: value for key, value in flat(read_config(file)).items() if key in written}
    given = {key: value for key, value in written.items() if any(f"{key}.".startswith(f"{each}.") for each in keys)}
    for follows in (False, True):  # the settings that follow from others, as ${dropout}, are compared after these
        now = flat(plain(config))
        for key in [key for key, value in saved.items() if key in now and now[key] != value and key not in DERIVED]:
            if ("${" in str(written[key])) == follows and foreign.is_harmless(key, saved[key]):
                OmegaConf.update(config, key, saved[key])
    for key, value in given.items():
        OmegaConf.update(config, key, value)


def _searched_run(wish: str, typed: list[str], log_dir: Path) -> RunFolder:
    """Return the run that `best:…` means, or the newest unfinished run for `latest` and `latest:<task>`.

    Raises UserError if there is none. A finished run is trained further only if the user names its folder.
    """
    if not wish.startswith(LATEST):
        return find_run(wish, log_dir, lambda _: True)  # a run without a checkpoint starts again from its first step
    task = value_of("task", typed)
    searched = f"{wish}:{task}" if wish == LATEST and task else wish
    return find_run(searched, log_dir, _is_unfinished, "unfinished run")


def is_further_process() -> bool:
    """Return whether Lightning, torchrun or Slurm has started this process after the first process of the run."""
    return any(os.environ.get(name, "0") != "0" for name in ("LOCAL_RANK", "SLURM_PROCID"))


def _unfinished_run(typed: list[str]) -> RunFolder | None:
    """Return the run that `resume=auto` means.

    It is hydra.run.dir if that is given, else the newest unfinished run of the same configuration.
    """
    if given := value_of("hydra.run.dir", typed):
        folder = RunFolder(Path(given))
        return folder if folder.is_run() else None
    config = compose(typed)
    key = run_key(config)
    folders = (file.parent for file in Path(config.paths.log_dir).glob("*/runs/*/metrics.json"))
    for path in sorted(folders, key=attrgetter("name"), reverse=True):  # it begins with the time of the run's start
        folder = RunFolder(path)
        if _is_unfinished(folder) and folder.read().get("run_key") == key:
            return folder
    return None


def _log_dir(typed: list[str]) -> Path:
    """Return paths.log_dir of a command line. Its other keys are ignored, since they may fit only the resumed run."""
    of_paths = [argument for argument in typed if key_of(argument).partition(".")[0] in ("paths", "local")]
    return Path(compose(of_paths).paths.log_dir)


def _is_unfinished(folder: RunFolder) -> bool:
    """Return whether a run has not finished. A damaged record is ignored with a warning."""
    try:
        return folder.read().get("status") in UNFINISHED
    except UserError as error:  # a damaged folder does not prevent a training
        log.warning("resume= ignores %s", error)
        return False


def resume_own(config: DictConfig, path: Path) -> dict[str, Any] | None:
    """Let a job of a sweep resume the run in its folder, which an earlier process of the same job has begun.

    A cluster starts a job again that it has interrupted, and so does the same command of a sweep. Returns the record of
    a run that has ended already, else None.
    """
    folder = RunFolder(path)
    if config.resume is not None or not folder.is_run():
        return None
    end = monotonic() + SECONDS_FOR_OTHERS
    while folder.is_locked() and not is_further_process() and monotonic() < end:
        sleep(0.1)
    record = folder.read()
    if record.get("run_key") != run_key(config):  # which refuse_folder reports
        return None
    if record.get("status") in ENDED:
        return record
    config.resume = str(path.absolute())
    return None


def refuse_folder(config: DictConfig, path: Path) -> None:
    """Raise UserError if the folder has another run, or if the run to resume has another configuration or is complete.

    It is called before Hydra writes there, so that a refused folder does not change. The first of several processes
    checks for all of them.
    """
    if is_further_process():
        return
    folder = RunFolder(path)
    if config.resume is None:
        if folder.checkpoints():
            raise UserError(f"{path} already has a run; add resume=auto to resume it, or move it")
        return
    if folder.is_locked():
        raise UserError(f"{path}: another process is training this run; wait for it, or stop it")
    if path.is_dir() and not os.access(path, os.W_OK):
        raise UserError(f"{path}: the folder cannot be written; copy it to another place, and resume it there")
    if folder.config_file.is_file():
        refuse_other_config(config, read_config(folder.config_file))
    is_finished = folder.is_run() and folder.read().get("status") == "finished"
    if config.train and is_finished and folder.last_checkpoint.is_file():
        from firstlight.training.newest_checkpoint import refuse_nothing_left  # torch, which only this case needs here

        refuse_nothing_left(config, folder)
