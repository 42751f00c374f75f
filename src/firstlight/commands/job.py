"""Jobs of a sweep in a process that another machine starts: `python -m firstlight.commands.job FILE TASK`.

The file is JSON, because a pickle would run code when it is read.
"""

from firstlight.sweeps import RECEIVED, TIME_IS_UP, keep_signals, stop_when_time_is_up

if __name__ == "__main__":
    keep_signals()  # before the other imports

# isort: split
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.callbacks import Callbacks
from hydra._internal.hydra import Hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobStatus, run_job
from hydra.types import HydraContext, RunMode
from omegaconf import open_dict

from firstlight.commands.frame import make_importable
from firstlight.config.schema import register_schemas
from firstlight.config_files import CONFIG_DIR, CONFIG_NAME
from firstlight.errors import Interrupted
from firstlight.runs.folder import RunFolder
from firstlight.sweeps import remote
from firstlight.terminal_text import say
from firstlight.training.resume import is_further_process

SECONDS_TO_RECORD = 10  # for the first process of a training to record a failure, before srun ends all processes


def run(described: dict[str, Any], number: int) -> str | None:
    """Run a job of a description, and return its error in a line, or None. A job that has ended is not run again.

    Raises Interrupted after a signal; the job is resumed when it is run again.
    """
    folder = remote.folder_of(Path(described["sweep"]), described["jobs"][number])
    reason = remote.refusal(described) or train(described, number, folder)
    if reason is not None:
        say(remote.error_line(folder.path.name, reason), to=sys.stderr)
    return reason


def train(described: dict[str, Any], number: int, folder: RunFolder) -> str | None:
    """Train a job, and return its error in a line, or None."""
    os.chdir(described["folder"])
    make_importable(Path.cwd())
    register_schemas()
    sys.argv[1:] = described["arguments"]  # which name the user's folders of settings
    from firstlight.commands.train import train_job
    from firstlight.sweeps.grid import record_failure

    with hydra.initialize_config_dir(str(CONFIG_DIR), job_name=CONFIG_NAME, version_base="1.3"):
        app: Hydra = GlobalHydra.instance().hydra  # type: ignore[assignment]  # it is initialized
        overrides = described["jobs"][number]
        config = app.config_loader.load_configuration(CONFIG_NAME, [*described["hydra"], *overrides], RunMode.RUN)
        with open_dict(config):
            config.hydra.job.id, config.hydra.job.num = f"{CONFIG_NAME}_{number}", number
        HydraConfig.instance().set_config(config)
        context = HydraContext(app.config_loader, Callbacks(config))
        ended = run_job(train_job, config, "hydra.sweep.dir", "hydra.sweep.subdir", hydra_context=context)
        if ended.status is JobStatus.COMPLETED:
            return None
        (folder.path.parent / remote.FAILURE).touch()
        return record_failure(folder, ended._return_value)  # return_value would raise it


def main() -> None:
    """Run the jobs of a task one after another. The exit code is 1 if one of them has failed.

    The processes of a task are the ranks of one training, or each runs its share of the jobs.
    """
    described, task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), int(sys.argv[2])
    own = numbers = described["tasks"][task]
    if (at_a_time := described["at_a_time"]) > 1:
        own = numbers[stand_alone() :: at_a_time]
    from firstlight.callbacks.stop_signals import signals_raise  # PyTorch and Lightning

    has_failed = False
    stop_when_time_is_up()
    try:
        for number in own:
            with signals_raise():
                if RECEIVED:
                    raise Interrupted(RECEIVED[0])  # noqa: TRY301  (as a signal in the job does)
                has_failed |= run(described, number) is not None
    except Interrupted:
        if is_further_process():
            return  # with an exit code, srun would kill the first process, which saves
        if TIME_IS_UP in RECEIVED:
            folders = [remote.folder_of(Path(described["sweep"]), described["jobs"][each]) for each in numbers]
            while any(folder.is_locked() for folder in folders):  # the other processes of the task save, too
                time.sleep(0.1)
            requeue()
        raise
    if has_failed and is_further_process():
        time.sleep(SECONDS_TO_RECORD)
    sys.exit(int(has_failed))


def stand_alone() -> int:
    """Make a process of srun one that does not belong to a training of several, and return its number in the task.

    With several GPUs, it uses one of them.
    """
    number = int(os.environ["SLURM_PROCID"])
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        gpus = visible.split(",")
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[number % len(gpus)]
    for name in ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"):  # by which Lightning recognizes a rank
        del os.environ[name]
    return number


def requeue() -> None:
    """Let Slurm run this task again, after a time limit. The task's output says why if Slurm does not.

    Of several processes, only the first request has an effect.
    """
    array, task = (os.environ.get(f"SLURM_ARRAY_{name}") for name in ("JOB_ID", "TASK_ID"))
    subprocess.run(["scontrol", "requeue", f"{array}_{task}"], check=False)  # noqa: S603, S607  (Slurm's own command)


if __name__ == "__main__":
    from firstlight.commands import frame

    frame.run(main)  # in this module, which has the signals that were received
