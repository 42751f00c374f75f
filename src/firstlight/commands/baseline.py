"""`baseline`: the metrics of a model that counts words or n-grams on the data of a task."""

import re
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from firstlight import config_files
from firstlight.command_options import parse
from firstlight.commands.frame import STARTED_AT, run_module
from firstlight.config.checks import compose_task
from firstlight.config.schema import register_schemas
from firstlight.errors import Interrupted, UserError
from firstlight.files.atomic import write_atomically
from firstlight.kind.baseline import Fitted, OtherData
from firstlight.kind.data_changes import DataChanges
from firstlight.kind.kind import Kind
from firstlight.kind.registry import KINDS
from firstlight.runs.folder import SAMPLE_NOTE, RunFolder, as_typed
from firstlight.runs.identity import plain
from firstlight.terminal_text import say


@dataclass
class TaskData(DataChanges):
    """Options that replace data.<key> of the task."""

    labels: Literal["binary", "stars", "classes"] | None = None
    """The classes to predict."""
    max_train_rows: int | None = None
    """The number of training rows, documents or windows to use."""
    validation_fraction: float | None = None
    """The share for validation if the data has no validation split."""
    test_fraction: float | None = None
    """The share for the test if the data has no test split."""
    split: Literal["sequential", "passages"] | None = None
    """For a text: the part for validation, its end or passages at random."""
    split_seed: int | None = None
    """The seed that draws the rows or passages for validation and test."""


@dataclass
class OtherTexts(DataChanges):
    """Options of other data, on which a classifier is measured too. They replace those of the task."""


@dataclass
class BaselineOptions:
    """Train and measure a baseline on the data of a task, by counting words, n-grams or neighboring words."""

    task: str
    """The task whose data is used."""
    data: TaskData = field(default_factory=TaskData)
    max_words: int | None = None
    """For TF-IDF: the number of most frequent words to use, without pairs of words; None: words and pairs."""
    other: OtherTexts = field(default_factory=OtherTexts)
    log_dir: Path = Path("logs")
    """The folder for the results, below <task>/baseline/."""
    config_dir: Path | None = None
    """A folder with your own settings, used in addition to ./conf."""


def kind_with_baseline(target: str | None) -> Kind | None:
    """Return the kind whose baseline reads the data with a `_target_`; None if there is none."""
    of_data = (kind for kind in KINDS.values() for node in kind.schema.values() if node._target_ == target)
    return next((kind for kind in of_data if kind.baseline is not None), None)


def main() -> None:
    """Parse the command line and measure."""
    measure_baseline(parse(BaselineOptions, "baseline"))


def measure_baseline(options: BaselineOptions) -> Path:
    """Fit on train, choose on validation, measure test once, write and print the record. Return its folder."""
    config, overrides = compose(options)
    kind = kind_with_baseline(config.data._target_)
    assert kind is not None, "compose has checked it"
    if (given := options.other.given()) and kind.baseline != "tfidf":
        raise UserError(f"--other.{next(iter(given)).replace('_', '-')} applies to classifiers; leave it out")
    folder = RunFolder(Path(config.paths.output_dir))
    from firstlight.runs.record import finish, record_of_start  # torch and Lightning: seconds, after the checks
    from firstlight.training.signals import signal_behind, signals_raise, signals_restored

    with folder.locked(), signals_restored():
        record = start_of(record_of_start(config, folder), kind, overrides)
        folder.write(record)
        write_atomically(folder.config_file, OmegaConf.to_yaml({"data": plain(config)["data"]}))
        try:
            with signals_raise():
                _measure(kind, config, options, folder, record)
        except BaseException as error:
            if number := signal_behind(error):
                finish(folder, record, "interrupted")
                raise Interrupted(number) from error
            finish(folder, record, "failed", reason=f"{type(error).__name__}: {error}")
            raise
        finish(folder, record, "finished")
    report(folder, record)
    return folder.path


def _measure(
    kind: Kind, config: DictConfig, options: BaselineOptions, folder: RunFolder, record: dict[str, Any]
) -> None:
    """Fit and measure, and write the results into record."""
    from hydra.utils import instantiate

    data = instantiate(config.data, _convert_="object")
    data.prepare_data()
    data.setup("fit")
    record["data"] = data.describe()
    record["seconds"]["start_up"] = round(time.perf_counter() - STARTED_AT, 2)
    folder.write(record)
    started_at, processor_started_at = time.perf_counter(), time.process_time()
    limited = {} if options.max_words is None else {"max_words": options.max_words}
    fitted: Fitted = kind.function("baseline", "fit")(data, config.optimized_metric, folder.path, **limited)
    record["seconds"]["fit"] = round(time.perf_counter() - started_at, 2)
    record["seconds"]["fit_processor"] = round(time.process_time() - processor_started_at, 2)
    record |= {"parameters": fitted.parameters, "chosen": fitted.chosen, "tried": fitted.tried}
    record["metrics"] |= fitted.validation
    started_at = time.perf_counter()
    if data.has_split("test"):
        record["metrics"] |= fitted.test()
    else:
        say(f"{data.source.where} has no test split; no test metrics are reported")
    record["references"] = fitted.references()
    if options.other.given():
        assert fitted.other is not None
        other = OtherData(plain(config)["data"], options.other, options.log_dir)
        record["metrics"] |= fitted.other(other)
    record["seconds"]["test"] = round(time.perf_counter() - started_at, 2)


def compose(options: BaselineOptions) -> tuple[DictConfig, list[str]]:
    """Return the checked configuration of the task and its overrides. Raises UserError if it has no baseline."""
    register_schemas()
    names = config_files.choices("task")
    if options.task not in names:
        raise UserError(f"--task {options.task}: this task does not exist; {_there_are(names)}")
    target = _target_of(options.task)
    kind = kind_with_baseline(target)
    if kind is None:
        raise UserError(f"--task {options.task}: there is no baseline for its data ({target}); {_there_are(names)}")
    if options.max_words is not None:
        _check_max_words(options.max_words, options.task, kind)
    timestamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")  # as Hydra names the folders of runs
    folder = options.log_dir / options.task / "baseline" / timestamp
    config = compose_task(options.task, options.data, options.log_dir, folder)
    HydraConfig.instance().set_config(config)  # from which a record takes the task
    changed = options.data.options().items()
    return config, [
        f"task={options.task}",
        *(f"data.{key}={'null' if value is None else value}" for key, value in changed),
        *([] if options.max_words is None else [f"max_words={options.max_words}"]),
        *(f"other.{key}={value}" for key, value in options.other.given().items()),
    ]


def _check_max_words(max_words: int, task: str, kind: Kind) -> None:
    if kind.baseline != "tfidf":
        raise UserError(f"--max-words {max_words} requires a task of labelled texts, not --task {task}; leave it out")
    if max_words < 1:
        raise UserError(f"--max-words {max_words} must be at least 1")


def _there_are(tasks: list[str]) -> str:
    return f"there are baselines for {', '.join(task for task in tasks if kind_with_baseline(_target_of(task)))}"


def _target_of(task: str) -> str | None:
    """Return the `_target_` of a task's data, read from its files, since composing all tasks takes seconds."""
    choice = _chosen(task, "override /data")
    if choice is None:
        return None
    node: Any = OmegaConf.load(config_files.file_of("data", choice))
    if "_target_" in node:
        return node["_target_"]
    schemas = (re.fullmatch(r"/(schema/\w+)@_here_", str(entry)) for entry in node.get("defaults", []))
    nodes = (ConfigStore.instance().load(f"{schema[1]}.yaml").node for schema in schemas if schema)
    return next((schema.get("_target_") for schema in nodes), None)


def _chosen(task: str, group: str) -> str | None:
    """Return the choice of a group in the defaults list of a task, or of the task that it extends."""
    file: Any = OmegaConf.load(config_files.file_of("task", task))
    entries = file.get("defaults", [])
    own = [entry[group] for entry in entries if OmegaConf.is_dict(entry) and group in entry]
    inherited = [_chosen(entry, group) for entry in entries if isinstance(entry, str) and entry != "_self_"]
    return next((choice for choice in (*own, *inherited) if choice), None)


def start_of(record: dict[str, Any], kind: Kind, overrides: list[str]) -> dict[str, Any]:
    """Return the record of the start of a training without the entries of networks."""
    from importlib.metadata import version

    record |= {"model": kind.baseline, "overrides": overrides, "chosen": None, "tried": None, "references": None}
    record |= dict.fromkeys(("dropout", "context_length", "run_key"))
    record["versions"] |= {"scikit-learn": version("scikit-learn")}
    return record


def report(folder: RunFolder, record: dict[str, Any]) -> None:
    """Print the metrics and the folder of the record."""
    from firstlight.console import Console
    from firstlight.training.terminal import metrics_table

    (name, choice), *_ = record["chosen"].items()
    console = Console()
    console.print(
        f"{record['task']}, {record['model']} with {name}={choice:g}, {record['parameters']:,} parameters:",
        soft_wrap=True,
    )
    console.print(metrics_table(record["metrics"]))
    if record["data"]["source"] == "sample":
        console.print(SAMPLE_NOTE, style="bold")
    console.print(f"The baseline is in {as_typed(folder.path)}", soft_wrap=True)


if __name__ == "__main__":
    run_module(__spec__.name)
