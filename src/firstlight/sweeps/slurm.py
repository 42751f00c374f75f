"""Jobs of a sweep on Slurm: submitted as arrays, and followed by their folders and by squeue.

The folder .slurm of a sweep has for each array its jobs (N.json), its script (N.sh), and its number in Slurm (N.id).
"""

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig

from firstlight.errors import RunError, UserError
from firstlight.files.atomic import write_atomically
from firstlight.sweeps import remote
from firstlight.sweeps.places import FOLDER, STATES
from firstlight.terminal_text import say

OVER = (  # the states of a job that Slurm does not run again
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
    "TIMEOUT",
)
SECONDS_BETWEEN = 2.0  # between two questions to Slurm
SECONDS_FOR_FILES = 10.0  # until a file that another node has written is seen here
SAME = ("partition", "nodes", "cpus_per_task", "gpus_per_node")
OPTIONS = {"timeout_min": "time", **{name: name.replace("_", "-") for name in SAME}}  # of sbatch, by the launcher's


def launch(config: DictConfig, jobs: Sequence[Sequence[str]], at_a_time: int) -> list[JobReturn]:
    """Submit the jobs that Slurm does not have already, wait for all of them, and return their results.

    With hydra.launcher.wait=false the process ends after the submission. Raises RunError if Slurm refuses the jobs: it
    runs none of them then.

    at_a_time: the number of jobs that run at the same time in a task.
    """
    sweep = Path(config.hydra.sweep.dir)
    (sweep / FOLDER).mkdir(exist_ok=True)
    states = squeue()
    known = {name: number for name, number in submitted(sweep).items() if is_alive(states, number)}
    if known:
        say(f"Slurm has {len(known)} of the jobs already; they are not submitted again")
    new = [each for each in jobs if remote.folder_of(sweep, each).path.name not in known]
    if new:
        array = submit(config, sweep, new, at_a_time)
        say(f"Slurm job {array}: {len(new)} jobs")
    if not config.hydra.launcher.wait:
        note_states(sweep, submitted(sweep), squeue())
        say("The same command shows their progress and collects the results.")
        sys.exit(0)
    return follow(sweep, jobs)


def slurm(*command: str) -> str:
    """Return what a command of Slurm prints. Raises UserError if there is no Slurm, and RunError for its errors."""
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    except FileNotFoundError:
        problem = f"hydra/launcher=slurm: {command[0]} is not installed here"
        raise UserError(f"{problem}; start the sweep on a machine of the cluster that submits jobs") from None
    except subprocess.CalledProcessError as error:
        raise RunError(error.stderr.strip().splitlines()[-1]) from error


def check_partition(name: str | None) -> None:
    """Raise UserError unless a partition, or with None the default one, accepts jobs."""
    found = dict(line.split() for line in slurm("sinfo", "-h", "-o", "%P %a").splitlines())
    up = [each for each, state in found.items() if state == "up"]
    known = {each.rstrip("*") for each in up}
    if name is None and any(each.endswith("*") for each in up):
        return
    if name not in known:
        accepting = ", ".join(sorted(known)) or "none"
        raise UserError(f"hydra.launcher.partition={name or 'null'}: the partitions that accept jobs are {accepting}")


def squeue() -> dict[str, tuple[str, str]]:
    """Return the state and the nodes of each of the user's tasks that Slurm remembers, by `<array>_<task>`."""
    printed = slurm("squeue", "-h", "-r", "-t", "all", "--me", "-o", "%F_%K|%T|%N")
    lines = (line.split("|") for line in printed.splitlines())
    return {number: (state, nodes) for number, state, nodes in lines}


def is_alive(states: dict[str, tuple[str, str]], number: str) -> bool:
    return number in states and states[number][0] not in OVER


def submitted(sweep: Path) -> dict[str, str]:
    """Return the task of Slurm of each job, by the name of its folder, as far as they were submitted."""
    found = {}
    for file in sorted((sweep / FOLDER).glob("*.id"), key=lambda path: int(path.stem)):
        array = file.read_text(encoding="ascii").strip()
        described = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
        for task, numbers in enumerate(described["tasks"]):
            for number in numbers:
                name = remote.folder_of(sweep, described["jobs"][number]).path.name
                found[name] = f"{array}_{task}"
    return found


def submit(config: DictConfig, sweep: Path, jobs: Sequence[Sequence[str]], at_a_time: int) -> str:
    """Submit jobs as one array, and return its number in Slurm."""
    size = max(config.hydra.launcher.jobs_per_task, at_a_time)
    tasks = [list(range(start, min(start + size, len(jobs)))) for start in range(0, len(jobs), size)]
    count = len(list((sweep / FOLDER).glob("*.json")))
    file = (sweep / FOLDER / f"{count}.json").absolute()
    write_atomically(file, json.dumps(remote.description(config, jobs, tasks, at_a_time), indent=1))
    write_atomically(file.with_suffix(".sh"), script(config.hydra.launcher, file, len(tasks), at_a_time))
    number = slurm("sbatch", "--parsable", str(file.with_suffix(".sh"))).strip().partition(";")[0]
    write_atomically(file.with_suffix(".id"), number + "\n")
    return number


def script(options: DictConfig, file: Path, num_tasks: int, at_a_time: int) -> str:
    """Return the script of an array, whose tasks run the jobs of a file, some of them at a time."""
    num_ranks = options.nodes * options.tasks_per_node
    has_several = num_ranks * at_a_time > 1
    limit = "" if options.array_parallelism is None else f"%{options.array_parallelism}"
    given = {
        "job-name": file.parents[1].name,
        "array": f"0-{num_tasks - 1}{limit}",
        "output": file.parent / "%A_%a.txt",
        "open-mode": "append",
        "requeue": None,
        # To the job itself: with srun its steps get the signal, and without srun its shell, which `exec` replaces.
        "signal": f"{'' if has_several else 'B:'}USR2@{options.signal_delay_s}",
        **{option: options[key] for key, option in OPTIONS.items() if options[key] is not None},
        "ntasks-per-node": options.tasks_per_node * at_a_time,
        **({} if options.mem_gb is None else {"mem": f"{round(options.mem_gb * 1024)}M"}),
        **(options.sbatch or {}),
    }
    lines = [f"#SBATCH --{key}" if value is None else f"#SBATCH --{key}={value}" for key, value in given.items()]
    # The ranks of a training end together. Slurm passes no cpus-per-task on to srun.
    srun = ["srun", f"--cpus-per-task={options.cpus_per_task}", f"--kill-on-bad-exit={int(num_ranks > 1)}"]
    command = shlex.join([*(srun if has_several else []), sys.executable, "-m", remote.MODULE, str(file)])
    return "\n".join(["#!/bin/bash", *lines, *options.setup, f'exec {command} "$SLURM_ARRAY_TASK_ID"', ""])


def follow(sweep: Path, jobs: Sequence[Sequence[str]]) -> list[JobReturn]:
    """Wait until Slurm runs none of the jobs any more, and return their results."""
    tasks = submitted(sweep)
    results: dict[str, JobReturn] = {}
    gone: dict[str, float] = {}  # when a job was first seen to be over, without a result
    named = {remote.folder_of(sweep, each).path.name: each for each in jobs}
    while True:
        states = squeue()
        note_states(sweep, {name: tasks[name] for name in named}, states)
        for name in named.keys() - results.keys():
            found = remote.result(sweep, named[name], None)
            if found.status is JobStatus.COMPLETED:
                results[name] = found
            elif is_alive(states, tasks[name]):
                gone.pop(name, None)
            elif time.monotonic() - gone.setdefault(name, time.monotonic()) > SECONDS_FOR_FILES:
                state = states.get(tasks[name], ("",))[0]
                results[name] = remote.result(sweep, named[name], said(sweep, name, tasks[name], state))
                (sweep / remote.FAILURE).touch()  # which a job that was killed has not done
        if len(results) == len(named):
            return [results[name] for name in named]
        time.sleep(SECONDS_BETWEEN)


def note_states(sweep: Path, tasks: dict[str, str], states: dict[str, tuple[str, str]]) -> None:
    """Write where the jobs are, for the table of the sweep and for `runs`. tasks: by the name of the job's folder."""
    shown = {name: [task, *states.get(task, ("", ""))] for name, task in tasks.items()}
    write_atomically(sweep / STATES, json.dumps(shown))


def said(sweep: Path, name: str, task: str, state: str) -> str:
    """Return why a job has not ended well, from the output of its task, or else the state of the task."""
    output = sweep / FOLDER / f"{task}.txt"
    begin = remote.error_line(name, "")
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines() if output.is_file() else []
    errors = [line.removeprefix(begin) for line in lines if line.startswith(begin)]
    last = f" ends with: {lines[-1]}" if lines else " is empty"
    where = f"Slurm ended its task {task}: {state or 'it is forgotten'}; its output {output}{last}"
    return errors[-1] if errors else where
