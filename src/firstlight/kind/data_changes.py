"""Options that replace the data of a run or task. Imports no torch."""

import logging
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from omegaconf import OmegaConf

from firstlight import config_files
from firstlight.data.sources import DATA_VARIABLE, is_text_pair, local_folder
from firstlight.errors import UserError

log = logging.getLogger(__name__)


@dataclass
class DataChanges:
    """Options that replace the data that the run was trained on.

    Args:
        path: A file, a folder of split files, or a Hub id.
        source: Where to look for the data, as in training.
        text_column: The column of the texts, or for several columns: a,b.
        choice_columns: For a run of multiple choice: the columns of the answers, such as a,b.
        label_column: The column of the labels.
        group_column: For a classifier: the column of the groups, or column:pattern; other data has none by default.
        source_column: For a translator: the column of the source sentences, or the suffix of their file.
        target_column: For a translator: the column of the translations, or the suffix of their file.
        labels: How the labels are read, if they are not recognized: classes (such as bad and good), stars (0 to 4), or
            binary (stars, for a run with the classes negative and positive).
        lowest_label: The label that means one star, or negative if the labels are two numbers.
        preparation: For a generator: text reads the text unchanged, plays reads only the plays in it, and lines reads
            each line as a document.
        separator: The character between the columns of a CSV file, or for a generator between the lines
            of --data.preparation lines.
        encoding: The encoding of text files, such as cp1252.
    """

    path: str | None = None
    source: Literal["auto", "hub", "local", "sample"] | None = None
    text_column: str | None = None
    choice_columns: str | None = None
    label_column: str | None = None
    group_column: str | None = None
    source_column: str | None = None
    target_column: str | None = None
    labels: Literal["binary", "stars", "classes"] | None = None
    lowest_label: int | None = None
    preparation: Literal["text", "plays", "lines"] | None = None
    separator: str | None = None
    encoding: str | None = None

    @property
    def only_split(self) -> str:
        """The split as which a single file is read: train for the run's own data, test for other data."""
        return "train" if self.path is None else "test"

    def given(self) -> dict[str, Any]:
        """Return the options that were given, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def options(self) -> dict[str, Any]:
        """Return the changed data options. A given source removes the path, and a given path allows any source."""
        if self.source is not None:
            return {"path": None} | self.given()
        return self.given() | ({"source": "auto"} if self.path is not None else {})


def changed_options(saved: dict[str, Any], kind: type, changes: DataChanges, log_dir: Path) -> Any:
    """Return the data options of a run, an instance of a class of options, with the changes applied.

    log_dir: folder of the runs, which contains the cache.
    """
    from firstlight.data.labels import SENTIMENTS

    options = options_of_metadata(saved, kind, log_dir / "cache", path=changes.path, source=changes.source)
    changed = changes.options()
    for name in changes.given().keys() - vars(options).keys():
        raise UserError(f"data.{name} does not apply to this kind of run; leave it out")
    if changes.text_column is not None and (options.reads_pairs or options.choices is not None):
        changed["text_column"] = changes.text_column.split(",")
    if changes.choice_columns is not None:
        changed["choice_columns"] = changes.choice_columns.split(",")
        num_choices = 0 if options.choices is None else options.choices.num_choices
        if len(changed["choice_columns"]) != num_choices:
            problem = f"data.choice_columns={changes.choice_columns}: the run chooses among {num_choices} answers"
            raise UserError(f"{problem}; name as many columns")
    if changes.labels is not None:
        is_of_sentiments = saved.get("class_names") == list(SENTIMENTS) and changes.labels == "binary"
        if options.labels.name not in ("binary", changes.labels) and not is_of_sentiments:
            raise UserError(f"data.labels={changes.labels}: the run predicts {options.labels.value}; leave it out")
        if is_of_sentiments:
            changed["class_names"] = None  # those of stars and of sentiments are known
    if changes.path is not None:
        changed |= {"folds": None, "fold": 0}  # other data is not divided
        if hasattr(options, "group_column"):
            changed = {"group_column": None, "group_weights": None} | changed
    try:
        return replace(options, **changed)
    except ValueError as error:
        raise UserError(str(error)) from error


def refuse_other_data(fingerprint: str, source: Any, changes: DataChanges) -> None:
    """Raise UserError if the run's own data is required and other data was found, such as the sample.

    A file that only the checkpoint names is not used for anything before this comparison.

    fingerprint: that of the training data; source: the data that was found.
    """
    is_of_the_checkpoint = source.kind.value == "local" and changes.path is None and changes.source is None
    if (is_of_the_checkpoint or not changes.given()) and source.fingerprint != fingerprint:
        raise UserError(f"the run was trained on other data than {source.where}; set data.path or FIRSTLIGHT_DATA")


def warn_of_training_texts(run: Any, data: Any, log_dir: Path) -> None:
    """Log a warning with the number of texts of other data that a run was trained on, up to case and spaces.

    Without the data of the training, the texts are not compared. log_dir: folder of the runs.
    """
    from firstlight.data.store import SPLITS, normal

    if data.source.fingerprint == run.data_fingerprint and not run.evaluates_whole_texts:
        return
    try:
        known = set(map(normal, run.open_data(log_dir=log_dir).texts_of("train")))
    except UserError as error:
        log.info("The texts are not compared with those of the training: %s", error)
        return
    for split in SPLITS:
        texts = data.texts_of(split)
        if count := sum(normal(text) in known for text in texts):
            where = data.source.where
            log.warning("%s: the run was trained on %d of these %d %s texts", where, count, len(texts), split)


ADDRESSES = ("hub", "url")
NO_ADDRESSES = "addresses of checkpoints are not used; set data.path to the data"
NOT_FROM_METADATA = ("_target_", "cache_dir", *ADDRESSES)


def options_of_metadata(
    saved: dict[str, Any], kind: type, cache_dir: Path, *, path: str | None = None, source: str | None = None
) -> Any:
    """Return the data options in the metadata of a checkpoint, as an instance of a class of options.

    The address of the data, the cache and interpolations are not read from the metadata. The address is that of the
    data set of the same name in the configuration files. A path in the metadata is used, but its content must be equal
    to the training data (`refuse_other_data`).

    cache_dir, path, source: values of the command line; they replace those of the metadata. Raises UserError.
    """
    known = {field.name: field for field in fields(kind)}
    kept = {key: value for key, value in saved.items() if key not in NOT_FROM_METADATA}
    for key in kept.keys() - known.keys():
        problem = f"the checkpoint's data.{key} is not an option of this version"
        raise UserError(f"{problem}; use the version that wrote the checkpoint")
    if path is not None or source is not None:
        kept |= {"path": path, "source": source or "auto"}
    elif kept.get("path") is not None:
        path_of_run, sides = Path(str(kept["path"])), (str(kept.get("source_column")), str(kept.get("target_column")))
        if not (path_of_run.is_file() or path_of_run.is_dir() or is_text_pair(path_of_run, sides)):
            problem = f"data.path={path_of_run}: the file or folder of the training does not exist"
            raise UserError(f"{problem}, and {NO_ADDRESSES}")
        kept["source"] = "local"  # a path in metadata is never a Hub id
    address = {key: value for key, value in address_of(kept.get("name"), kind).items() if key in known}
    kept |= {"hub": ""} if "hub" in known else {"url": None}
    kept |= address | {"cache_dir": str(cache_dir)}
    try:
        options = kind(**kept)
    except (TypeError, ValueError) as error:
        is_typed = path is not None or source is not None
        raise UserError(str(error) if is_typed else f"the checkpoint's data options cannot be used: {error}") from error
    needs_address = options.path is None and options.source.value in ("auto", "hub") and not address
    if needs_address and (options.source.value == "hub" or local_folder(options.name) is None):
        problem = f"the run was trained on the data set {options.name}, which is not below ${DATA_VARIABLE} or data/"
        raise UserError(f"{problem}; the configuration files have no address of it, and {NO_ADDRESSES}")
    return options


def address_of(name: Any, kind: type) -> dict[str, str]:
    """Return the `hub` and `url` of a data set of this name in the configuration files, or {} if there are none."""
    defaults: dict[str, Any] = {field.name: field.default for field in fields(kind)}
    found: dict[str, str] = {}
    if name == defaults["name"] and defaults.get("hub"):
        found["hub"] = defaults["hub"]
    for task in config_files.choices("task"):
        file: Any = OmegaConf.to_container(OmegaConf.load(config_files.file_of("task", task)))
        data = file.get("data") if isinstance(file, dict) else None
        if isinstance(data, dict) and name is not None and data.get("name") == name:
            found |= {key: data[key] for key in ADDRESSES if isinstance(data.get(key), str)}
    return found
