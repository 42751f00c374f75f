"""All runs below a folder as rows of a report, with the settings in which they differ. Imports nothing heavy.

NumPy is imported if the saved predictions of a run are read.
"""

import csv
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstlight.errors import UserError
from firstlight.files.plain_yaml import read_yaml
from firstlight.files.regular import regular
from firstlight.runs.folder import RunFolder, direction, run_folders
from firstlight.runs.gather import POINTS_PER_CURVE, WHERE_DATA_IS, plain_value, read_run
from firstlight.runs.identity import NOT_PART_OF_A_RUN, comparable, flat
from firstlight.runs.summary import Run, Value, grouped
from firstlight.terminal_text import note, say

if TYPE_CHECKING:
    from firstlight.runs.predictions import Predictions

log = logging.getLogger(__name__)

POINTS_OF_ALL_RUNS = 60_000  # of one metric, so that a thousand runs are read in seconds
SEEDS = ("seed", "data.seed")
PLACES = (WHERE_DATA_IS, "data.path", "data.name", "data.hub", "data.url")  # the fingerprint says whether data is equal
FOLDS = ("data.folds", "data.fold", "data.fold_rows", "data.fold_seed", "data.fold_group")
SPLIT = (  # what decides which texts are validated
    *("data.validation_fraction", "data.split", "data.split_seed", "data.preparation", "data.labels"),
    *FOLDS,
    "data.mask_fraction",
)
MOST_SETTINGS = 2_000
MOST_BYTES = 2**24  # of the file of texts
LONGEST_TEXT = 400  # characters
LIMITS = {  # options that leave out a part of the data, and the texts of their values that leave out none
    "data.max_train_rows": ("None",),
    "trainer.limit_train_batches": ("None", "1.0"),  # 1 is one batch, and 1.0 is all of them
    "trainer.limit_val_batches": ("None", "1.0"),
    "trainer.overfit_batches": ("None", "0", "0.0"),
    "trainer.fast_dev_run": ("None", "False", "0"),
}


def has_folds(runs: Sequence[Run]) -> bool:
    """Return whether some counted runs are parts of a cross-validation."""
    return any(run.is_counted and run.split.get("data.folds") for run in runs)


def direction_of(runs: Sequence[Run]) -> Callable[[str], bool]:
    """Return a function that returns whether lower values of a metric of these runs are better."""
    return direction((run.optimized_metric, run.optimized_mode) for run in runs)


def existing_run_folders(folder: Path) -> list[Path]:
    """Return the sorted folders of the runs below a folder. Raises UserError if it is missing or has no runs."""
    found = sorted(run_folders(folder)) if folder.is_dir() else []
    if not found:
        problem = "the folder has no runs" if folder.is_dir() else "the folder does not exist"
        raise UserError(f"{folder}: {problem}; train a run first, or name the folder of your runs, such as logs")
    return found


def gather(folder: Path, *others: Path) -> list[Run]:
    """Return the runs below a folder, single or of a sweep, and the baselines; in the order of their folders' names.

    others: more folders, whose runs are named by their paths from the first folder. Raises UserError if one of the
    folders is missing or has no runs.
    """
    names = {path: path.relative_to(folder).as_posix() for path in existing_run_folders(folder)}
    known, start = {path.resolve() for path in names}, folder.resolve()
    for path in sorted({path.resolve() for other in others for path in existing_run_folders(other)} - known):
        names[path] = Path(os.path.relpath(path, start)).as_posix()
    most = min(POINTS_PER_CURVE, max(POINTS_PER_CURVE // 10, POINTS_OF_ALL_RUNS // len(names)))
    runs = {path: read_run(RunFolder(path), name, most) for path, name in names.items()}
    return with_settings(folder, [run for path, run in runs.items() if path.is_dir()])


def with_settings(folder: Path, runs: Sequence[Run]) -> list[Run]:
    """Return the runs, with the settings in which they differ and what sets them apart from others.

    A setting that differs without having been typed, such as one of an experiment file that was edited, is a key too.
    Keys that only other runs of a task have typed get their values from the configuration.
    """
    every = {place: Configuration(folder / run.folder) for place, run in enumerate(runs) if run.task is not None}
    configured = {place: config for place, config in every.items() if not runs[place].is_baseline}
    keys = [dict(run.keys) for run in runs]
    for key, places in _untyped(runs, configured):
        for place in places:
            keys[place].setdefault(key, configured[place].settings.get(key))
    known: dict[str | None, set[str]] = {}
    for run, own in zip(runs, keys, strict=True):
        known.setdefault(run.task, set()).update(own)
    filled = list(runs)
    for place, config in every.items():
        run, own = runs[place], keys[place]
        split = {key: config.settings[key] for key in SPLIT if key in config.settings}
        if run.is_baseline:
            filled[place] = replace(run, split={key: value for key, value in split.items() if key in FOLDS})
            continue
        own |= {key: config.value(key) for key in sorted(known[run.task] - own.keys())}
        has_groups = config.settings.get("data.group_column") is not None
        filled[place] = replace(run, keys=own, apart=config.apart, split=split, has_groups=has_groups)
    return filled


def _untyped(runs: Sequence[Run], configured: "dict[int, Configuration]") -> Iterator[tuple[str, list[int]]]:
    """Yield the settings in which runs with the same typed keys differ, each with the places of these runs."""

    def typed(place: int) -> str:
        keys = {key: value for key, value in runs[place].keys.items() if key not in SEEDS}
        return json.dumps(keys, sort_keys=True, default=str)

    for places in grouped((place for place, config in configured.items() if config.settings), typed).values():
        first, *others = (configured[place].settings for place in places)
        different = [settings for settings in others if settings != first]
        for key in sorted({key for settings in (first, *different) for key in settings}):
            if any(settings.get(key) != first.get(key) for settings in different):
                yield key, places


class SavedPredictions:
    """A function that returns the saved predictions of a run for a split; None if it has none, or damaged ones.

    missing: the number of runs without them. damaged: the damage of the others, by the folder of the run.
    """

    def __init__(self, folder: Path, split: str = "validation") -> None:
        self.folder, self.split = folder, split
        self.missing = 0
        self.damaged: dict[str, str] = {}
        self._known: dict[str, Predictions | None] = {}

    def __call__(self, run: Run) -> "Predictions | None":
        if run.folder not in self._known:
            self._known[run.folder] = self._read(run)
        return self._known[run.folder]

    def _read(self, run: Run) -> "Predictions | None":
        from firstlight.runs.predictions import PLACES, UnreadablePredictions, read_predictions

        try:
            paths = (self.folder / run.folder / place.format(self.split) for place in PLACES)
            found = next((read for path in paths if (read := read_predictions(path)) is not None), None)
        except UnreadablePredictions as error:
            self.damaged[run.folder] = str(error)
            return None
        self.missing += found is None and not run.is_baseline
        return found

    def say_problems(self) -> None:
        """Print which runs have no saved predictions, or damaged ones."""
        for run, problem in self.damaged.items():
            say(f"not compared by texts: {self.folder / run}: {problem}", to=sys.stderr)
        if self.missing:
            problem = f"runs without predictions/{self.split}.npz, whose texts are not compared: {self.missing}"
            note(f"{problem}. For a classifier, `evaluate RUN --split {self.split}` computes it")

    def texts(self, run: Run, classes: Sequence[str]) -> list[dict[str, Any]] | None:
        """Return the texts that a run has written for each cell of its confusion matrix; None if there are none.

        true, predicted: the places of the classes. A damaged file is reported and not read.
        """
        path = self.folder / run.folder / "reviews" / "validation.csv"
        try:
            content = regular(path, MOST_BYTES).read_bytes().decode("utf-8")
            return [_text_of(row, classes) for row in csv.DictReader(io.StringIO(content, newline=""), strict=True)]
        except FileNotFoundError:
            return None
        except (OSError, UserError, csv.Error, KeyError, TypeError, ValueError) as error:
            log.warning("%s is not shown: it is cut short or broken (%s)", path, error)
            return None


def _text_of(row: dict[str, str], classes: Sequence[str]) -> dict[str, Any]:
    """Return a row of the file of texts. Raises KeyError, TypeError or ValueError if it is not one."""
    share, text = float(row[f"p({row['prediction']})"]), row["text"]
    if not 0 <= share <= 1:
        raise ValueError(f"a probability is {share}")
    return {
        "true": classes.index(row["true"]),
        "predicted": classes.index(row["prediction"]),
        "label": row.get("stars", row.get("label")),
        "probability": round(share, 4),
        "text": text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} …",
    }


class Configuration:
    """The configuration of a run. Its files are read when a value is needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of config.yaml; {} without one."""
        return read_small(self.folder / "config.yaml")

    @cached_property
    def choices(self) -> dict[str, Any]:
        """The choices of the groups; {} if they are not recorded."""
        found = at(read_small(self.folder / ".hydra" / "hydra.yaml"), "hydra.runtime.choices")
        return found if isinstance(found, dict) else {}

    def value(self, key: str) -> Value:
        """Return the value of a key, or the choice of a group; None if the configuration or the key is missing."""
        value = self.choices[key] if key in self.choices else at(self.config, key)
        return None if isinstance(value, dict) else plain_value(value)

    @cached_property
    def settings(self) -> dict[str, Value]:
        """The settings that decide what the run computes, by dotted key, without its seeds and the places of its data.

        Empty without a configuration.
        """
        found = flat(comparable(self.config, NOT_PART_OF_A_RUN))
        return {key: plain_value(value) for key, value in found.items() if key not in (*SEEDS, *PLACES)}

    @property
    def apart(self) -> dict[str, str]:
        """The reasons why the run cannot be ranked among runs without them, by the key that causes each."""
        limits = {key: value for key in LIMITS if str(value := at(self.config, key)) not in LIMITS[key]}
        found = {key: f"{key}={str(plain_value(value))[:100]}" for key, value in limits.items()}
        is_generator = str(at(self.config, "module._target_")).endswith(".Generation")
        if is_generator and at(self.config, "model.causal") is False:
            found["model.causal"] = "sees its target"
        return found


def at(node: Any, key: str) -> Any:
    """Return the value of a dotted key; None if it is missing."""
    for part in key.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return node


def read_small(path: Path) -> dict[str, Any]:
    """Return the content of a file of settings; {} if it is missing, or with a warning if it is broken or too large."""
    try:
        config = read_yaml(path)
    except FileNotFoundError:
        return {}
    except UserError as error:
        log.warning("%s", error)
        return {}
    if (count := len(flat(config))) > MOST_SETTINGS:
        log.warning("%s is ignored: it has %s settings, too many for a report", path, count)
        return {}
    return config if isinstance(config, dict) else {}
