"""Jobs of a sweep that differ only in numbers, which are trained together: which they are, and how they run."""

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from omegaconf import DictConfig

from firstlight.errors import RunError, UserError
from firstlight.runs.folder import RunFolder
from firstlight.runs.identity import flat, plain
from firstlight.sweeps.remote import NOT_STARTED

log = logging.getLogger(__name__)

NUMBERS = re.compile(r"(data\.)?seed|(optimizer|schedule)\..+")  # the keys in which jobs of a stack may differ
STACKABLE = {  # the values of settings with which the steps of a stack are those of single jobs
    "trainer.accumulate_grad_batches": (1,),
    "trainer.devices": (1, "1", "auto"),
    "trainer.num_nodes": (1,),
    "trainer.precision": ("32-true", "64-true", "bf16-mixed", 32, "32", 64, "64"),
    "trainer.max_time": (None,),
    "trainer.overfit_batches": (0, 0.0),
    "compile": (False,),
    "train": (True,),
    "teacher": (None,),
    "data.bucket_by_length": (False,),
    "data.finish_on": (None,),
    "data.stateful_window": (None,),
    "callbacks.checkpoint.keep_every": (None,),
}


def refusal(config: DictConfig) -> str | None:
    """Return why a job cannot be part of a stack, or None."""
    values = flat(plain(config))
    wrong = [key for key, allowed in STACKABLE.items() if values.get(key, allowed[0]) not in allowed]
    if isinstance(values.get("trainer.val_check_interval"), str):  # a time
        wrong.append("trainer.val_check_interval")
    if not wrong:
        return None
    needed = STACKABLE.get(wrong[0], (1.0,))[0]
    told, remedy = (json.dumps(value, default=str).strip('"') for value in (values[wrong[0]], needed))
    return f"it needs {wrong[0]}={remedy} instead of {told}"


def run_stacked(
    config: DictConfig, configs: Sequence[DictConfig], run: Callable[..., JobReturn], new_stack: Callable[..., Any]
) -> list[JobReturn]:
    """Run the jobs of a sweep, those that are alike together, and return their results.

    config: of the sweep; configs: of the jobs; run: runs the job of a number, with further arguments of its function;
    new_stack: the class of a stack.
    """
    most, folder = config.hydra.launcher.jobs_per_stack, Path(config.hydra.sweep.dir)
    if most < 1:
        raise UserError(f"hydra.launcher.jobs_per_stack={most} must be at least 1")
    results: dict[int, JobReturn] = {}
    for numbers in alike(configs, folder, most):
        stack, problem = None, refusal(configs[numbers[0]])
        if len(numbers) > 1 and problem is None:
            stack = new_stack([configs[number] for number in numbers], folder)
        for place, number in enumerate(numbers):
            has_failed = any(each.status is JobStatus.FAILED for each in results.values())
            if has_failed and config.sweep.stop_at_first_failure:
                results[number] = JobReturn(status=JobStatus.FAILED, _return_value=RunError(NOT_STARTED))
                continue
            results[number] = run(number, stack=stack and (stack, place))
            problem = problem or (stack and stack.problem)
            if place == 0 and problem and len(numbers) > 1:
                log.warning("%d jobs are trained one by one, not as a stack: %s", len(numbers), problem)
    return [results[number] for number in range(len(configs))]


def alike(configs: Sequence[DictConfig], folder: Path, most: int) -> Iterator[list[int]]:
    """Yield the numbers of jobs that can be trained together, up to `most` of them.

    A job that has begun already is resumed alone. folder: of the sweep.
    """
    groups: dict[str, list[int]] = {}
    for place, config in enumerate(configs):
        if RunFolder(folder / config.hydra.sweep.subdir).checkpoints():
            yield [place]
            continue
        kept = {key: value for key, value in flat(plain(config)).items() if not NUMBERS.fullmatch(key)}
        groups.setdefault(json.dumps(kept, default=str, sort_keys=True), []).append(place)
    for places in groups.values():
        yield from (places[i : i + most] for i in range(0, len(places), most))
