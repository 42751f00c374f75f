"""The name of a sweep without sweep.name: it lists what varies, and the same command always has the same name."""

import hashlib
import re
from collections.abc import Sequence

from hydra.core.override_parser.types import Override, ValueType
from omegaconf import DictConfig

from firstlight.errors import UserError

SUBJECTS = ("experiment", "task")  # the groups whose choices begin the name
MOST_SUBJECTS, LONGEST_SUBJECTS, LONGEST_KEYS = 3, 30, 40  # the last two in characters
IGNORED = (  # keys that do not change the jobs
    *("resume", "dry_run", "quiet", "sweep.name", "sweep.any_code", "paths.log_dir"),
    *("hydra.sweeper.n_trials", "hydra.launcher.n_jobs", "hydra.launcher.jobs_per_gpu"),
)


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
    varied = {_plain_key(each): each for each in overrides if each.is_sweep_override()}
    fixed = config.hydra.runtime.choices
    subject = next(each for each in SUBJECTS if each in varied or fixed.get(each))
    values = _values(varied.pop(subject)) if subject in varied else [str(fixed[subject])]
    subjects = "-".join(_plain(value.rpartition("/")[2]) for value in values)
    if len(values) > MOST_SUBJECTS or len(subjects) > LONGEST_SUBJECTS:
        subjects = f"{len(values)}-{subject}s"
    keys = "_".join(_plain(key.rpartition(".")[2].rpartition("/")[2]) for key in varied)
    return "_".join(filter(None, [subjects, keys[:LONGEST_KEYS].strip("-_")]))


def _plain_key(override: Override) -> str:
    return override.get_key_element().lstrip("+~").partition("@")[0]


def _values(override: Override) -> list[str]:
    """Return the choices of a group that a sweep names; `experiments` and the like for a glob, which names none."""
    if override.value_type is ValueType.GLOB_CHOICE_SWEEP:
        return [f"{_plain_key(override)}s"]
    return list(override.sweep_string_iterator()) if override.is_discrete_sweep() else [override.input_line or ""]


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.") or "x"
