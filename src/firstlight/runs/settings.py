"""The settings in which runs differ, from their command lines and their configurations. Imports nothing heavy."""

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_yaml
from firstlight.runs.identity import FREE_OPTIONS, NOT_PART_OF_A_RUN, comparable, flat
from firstlight.runs.summary import Run, Value
from firstlight.spelling import QUOTING

log = logging.getLogger(__name__)

GROUPS_THAT_CHANGE_NOTHING = ("trainer", "local")  # their choices, such as trainer=cpu, do not change the results
WHERE_DATA_IS = "data.source"  # a report has a column for it
SEEDS = ("seed", "data.seed")
PLACES = (WHERE_DATA_IS, "data.path", "data.name", "data.hub", "data.url")  # the fingerprint says whether data is equal
SPLIT = (  # what decides which texts are validated
    *("data.validation_fraction", "data.split", "data.split_seed", "data.preparation", "data.labels"),
    *("data.mask_fraction", "data.mask_token_share", "data.random_token_share"),
)
MOST_SETTINGS = 2_000
LIMITS = {  # options that leave out a part of the data, and the texts of their values that leave out none
    "data.max_train_rows": ("None",),
    "trainer.limit_train_batches": ("None", "1.0"),  # 1 is one batch, and 1.0 is all of them
    "trainer.limit_val_batches": ("None", "1.0"),
    "trainer.overfit_batches": ("None", "0", "0.0"),
    "trainer.fast_dev_run": ("None", "False", "0"),
}


def key_and_value(override: str) -> tuple[str, Value] | None:
    """Return the key and the value of an override; None if it does not change what the run computes."""
    is_removal = override.startswith("~")
    key, _, text = override.lstrip("+~").partition("=")
    group = re.split(r"[./@]", key)[0]
    if group in NOT_PART_OF_A_RUN or key in (*GROUPS_THAT_CHANGE_NOTHING, WHERE_DATA_IS):
        return None
    if key.partition(".")[2] in FREE_OPTIONS.get(group, ()):
        return None
    return key, "removed" if is_removal else value_typed(text)


def value_typed(text: str) -> Value:
    """Return the value of an override, whichever quotes or backslashes it was typed with."""
    if not QUOTING.search(text) and not text.startswith(("[", "{")):
        return plain_value(text)
    from firstlight.runs.overrides import parsed_value  # imports Hydra, which few values require

    value = parsed_value(text)
    if isinstance(value, list | dict):
        return plain_value(value)  # so that ['a', 'b'] equals [a,b]
    return value if isinstance(value, str) and value != text else plain_value(text)


def plain_value(value: Any) -> Value:
    """Return a value as a number or a word, so that 1e-3 equals 0.001, and 'a' equals a."""
    if isinstance(value, bool | int | float | None):
        return value
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, default=str)
    text = value.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.lower() in ("", "null", "~"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if len(text) > 4000:  # Python reads no integer of 5,000 digits
        return text
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text, flags=re.IGNORECASE):
        return float(text)
    return text


def with_settings(folder: Path, runs: Sequence[Run]) -> list[Run]:
    """Return the runs, with the settings in which they differ and what sets them apart from others.

    A setting that differs without having been typed, such as one of an experiment file that was edited, is a key too.
    Keys that only other runs of a task have typed get their values from the configuration.
    """
    configurations = [Configuration(folder / run.folder) for run in runs]
    has_one = [run.task is not None and not run.is_baseline for run in runs]
    keys = [dict(run.keys) for run in runs]
    for key, members in _untyped(runs, configurations, has_one):
        for place in members:
            keys[place].setdefault(key, configurations[place].settings.get(key))
    known: dict[str | None, set[str]] = {}
    for run, own in zip(runs, keys, strict=True):
        known.setdefault(run.task, set()).update(own)
    filled = []
    for run, own, config, is_configured in zip(runs, keys, configurations, has_one, strict=True):
        if is_configured:
            own |= {key: config.value(key) for key in sorted(known[run.task] - own.keys())}
            split = {key: config.settings[key] for key in SPLIT if key in config.settings}
            run = replace(run, keys=own, apart=config.apart, split=split)
        filled.append(run)
    return filled


def _untyped(
    runs: Sequence[Run], configurations: "Sequence[Configuration]", has_one: Sequence[bool]
) -> list[tuple[str, list[int]]]:
    """Return the settings in which runs with the same typed keys differ, each with the places of these runs."""
    alike: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        if has_one[place] and configurations[place].settings:
            typed = {key: value for key, value in run.keys.items() if key not in SEEDS}
            alike.setdefault(json.dumps(typed, sort_keys=True, default=str), []).append(place)
    found = []
    for members in alike.values():
        first = configurations[members[0]].settings
        different = {
            key
            for place in members[1:]
            if (settings := configurations[place].settings) != first
            for key in settings.keys() | first.keys()
            if settings.get(key) != first.get(key)
        }
        found += [(key, members) for key in sorted(different)]
    return found


@dataclass
class Configuration:
    """The configuration of a run. Its files are read when a value is needed."""

    folder: Path
    files: dict[str, Any] = field(default_factory=dict)

    def value(self, key: str) -> Value:
        """Return the value of a key, or the choice of a group; None if the configuration or the key is missing."""
        choices = self._read(".hydra/hydra.yaml", "hydra", "runtime", "choices")
        if isinstance(choices, dict) and key in choices:
            return plain_value(choices[key])
        value = self._read("config.yaml", *key.split("."))
        return None if isinstance(value, dict) else plain_value(value)

    @cached_property
    def settings(self) -> dict[str, Value]:
        """The settings that decide what the run computes, by dotted key, without its seeds and the places of its data.

        Empty without a configuration.
        """
        config = self._read("config.yaml")
        if not isinstance(config, dict):
            return {}
        found = flat(comparable(config, NOT_PART_OF_A_RUN))
        return {key: plain_value(value) for key, value in found.items() if key not in (*SEEDS, *PLACES)}

    @property
    def apart(self) -> dict[str, str]:
        """The reasons why the run cannot be ranked among runs without them, by the key that causes each."""
        found = {
            key: f"{key}={str(plain_value(value))[:100]}"
            for key, harmless in LIMITS.items()
            if str(value := self._read("config.yaml", *key.split("."))) not in harmless
        }
        module = self._read("config.yaml", "module", "_target_")
        is_causal = self._read("config.yaml", "model", "causal")
        if is_causal is False and str(module).endswith(".Generation"):
            found["model.causal"] = "sees its target"
        return found

    def _read(self, name: str, *path: str) -> Any:
        if name not in self.files:
            try:
                config = read_yaml(self.folder / name)
                is_small = (count := len(flat(config))) <= MOST_SETTINGS
                self.files[name] = config if is_small else None
                if not is_small:
                    log.warning("%s is ignored: it has %s settings, too many for a report", self.folder / name, count)
            except FileNotFoundError:
                self.files[name] = None
            except UserError as error:
                log.warning("%s", error)
                self.files[name] = None
        node = self.files[name]
        for part in path:
            node = node.get(part) if isinstance(node, dict) else None
        return node
