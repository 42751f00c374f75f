"""The name of a sweep without sweep.name: it lists what varies, and the same command always has the same name."""

import hashlib
import re
from collections.abc import Sequence

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig

from firstlight.errors import UserError

SUBJECTS = ("experiment", "task")  # the groups whose choices begin the name
LONGEST_SUBJECTS, LONGEST_KEYS = 30, 40  # characters
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
