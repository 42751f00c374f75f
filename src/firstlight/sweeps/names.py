"""The folder of a sweep without sweep.name: its name lists what varies, and the same command finds it again."""

import hashlib
import json
import logging
import re
from collections.abc import Sequence
from datetime import date
from itertools import count
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import ChoiceSweep, Override, QuotedString, ValueType
from omegaconf import DictConfig

from firstlight.errors import UserError
from firstlight.files.atomic import write_atomically
from firstlight.files.regular import regular
from firstlight.runs.overrides import typed_value
from firstlight.spelling import QUOTING

log = logging.getLogger(__name__)

RECORD = "sweep.json"  # in the folder of a sweep without sweep.name
SUBJECTS = ("experiment", "task")  # the groups whose choices begin the name
MOST_SUBJECTS, LONGEST_SUBJECTS, LONGEST_KEYS = 3, 30, 40  # the last two in characters
IGNORED = (  # keys that do not change the jobs
    *("resume", "dry_run", "quiet", "print_config", "sweep.name", "sweep.any_code", "paths.log_dir"),
    *("hydra.sweeper.n_trials", "hydra.launcher.n_jobs", "hydra.launcher.jobs_per_gpu"),
)


def check_sweep_name(name: str | None) -> None:
    """Raise UserError for a name that is not a folder below the folder of all sweeps."""
    if name is not None and any(part in ("", ".", "..") for part in name.split("/")):
        raise UserError(f"sweep.name={name}: must name a folder below <paths.log_dir>/sweeps, such as depths")


def key_of_command(overrides: Sequence[Override]) -> str:
    """Return a key that is the same for the same overrides in any order and with any quotes."""
    text = "\n".join(typed(overrides))
    return "s" + hashlib.sha256(text.encode()).hexdigest()[:10]


def typed(overrides: Sequence[Override]) -> list[str]:
    """Return the sorted overrides that decide what the jobs are."""
    return sorted(_line(each) for each in overrides if each.get_key_element().lstrip("+~") not in IGNORED)


def _line(override: Override) -> str:
    """Return an override as it was typed, with its texts quoted only where Hydra requires it."""
    line, value = str(override.input_line), override.value()
    if not QUOTING.search(line):
        return line
    listed: list[Any] = value.list if isinstance(value, ChoiceSweep) and value.simple_form else [value]
    values = [each.text if isinstance(each, QuotedString) else each for each in listed]
    if not all(isinstance(each, str) for each in values):
        return line
    return f"{line.partition('=')[0]}={','.join(map(typed_value, values))}"


def existing_name(sweeps: Path, key: str) -> str | None:
    """Return the name of the folder in which a command with this key has begun a sweep; None if it has not."""
    found = (record.parent.name for record in sorted(sweeps.glob(f"*/{RECORD}")) if _key_in(record) == key)
    return next(found, None)


def _key_in(record: Path) -> str | None:
    try:
        content = json.loads(regular(record).read_text(encoding="utf-8"))
        return str(content["key"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        log.warning("%s is damaged (%s); the same command does not find this sweep", record, error)
        return None


def free_name(sweeps: Path, overrides: Sequence[Override], config: DictConfig) -> str:
    """Return a readable name that no folder has yet, such as `sentiment-stars_model_dropout_2026-11-22`."""
    name = readable_name(overrides, config)
    names = (f"{name}_{number}" if number > 1 else name for number in count(1))
    return next(each for each in names if not (sweeps / each).exists())


def readable_name(overrides: Sequence[Override], config: DictConfig) -> str:
    """Return the tasks (or the experiments), the keys that vary and the date, joined by underscores."""
    varied = {_plain_key(each): each for each in overrides if each.is_sweep_override()}
    fixed = config.hydra.runtime.choices
    subject = next(each for each in SUBJECTS if each in varied or fixed.get(each))
    values = _values(varied.pop(subject)) if subject in varied else [str(fixed[subject])]
    subjects = "-".join(_plain(value.rpartition("/")[2]) for value in values)
    if len(values) > MOST_SUBJECTS or len(subjects) > LONGEST_SUBJECTS:
        subjects = f"{len(values)}-{subject}s"
    keys = "_".join(_plain(key.rpartition(".")[2].rpartition("/")[2]) for key in varied)
    return "_".join(filter(None, [subjects, keys[:LONGEST_KEYS].strip("-_"), date.today().isoformat()]))


def _plain_key(override: Override) -> str:
    return override.get_key_element().lstrip("+~").partition("@")[0]


def _values(override: Override) -> list[str]:
    """Return the choices of a group that a sweep names; `experiments` and the like for a glob, which names none."""
    if override.value_type is ValueType.GLOB_CHOICE_SWEEP:
        return [f"{_plain_key(override)}s"]
    return list(override.sweep_string_iterator()) if override.is_discrete_sweep() else [override.input_line or ""]


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-.") or "x"


def claim(folder: Path, key: str, overrides: Sequence[Override]) -> bool:
    """Make the folder of a new sweep with its record. Return False if another process has made this folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    content = {"key": key, "overrides": typed(overrides)}
    write_atomically(folder / RECORD, json.dumps(content, indent=2) + "\n")
    return True
