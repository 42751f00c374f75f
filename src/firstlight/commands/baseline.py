"""`baseline`: the metrics of a model that counts words or n-grams on the data of a task."""

import time
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from firstlight.command_options import JsonOption, parse
from firstlight.commands.frame import STARTED_AT
from firstlight.config.checks import compose_task
from firstlight.errors import Interrupted, UserError
from firstlight.files.atomic import write_atomically
from firstlight.kind.data_changes import DataChanges
from firstlight.kind.kind import Fitted, Kind
from firstlight.kind.registry import KINDS
from firstlight.runs.folder import SAMPLE_NOTE, RunFolder, as_typed
from firstlight.runs.identity import plain
from firstlight.terminal_text import only_json, say, write_json

OF_CLASSIFIERS = ("max_words", "group_prior", "method")  # arguments of its `fit`


@dataclass
class TaskData(DataChanges):
    """Options that replace data.<key> of the task.

    Args:
        group_weights: The weight of the training texts of a group, such as books 2; 1 for the other groups.
        max_train_rows: The number of training rows, documents or windows to use.
        validation_fraction: The share for validation if the data has no validation split.
        test_fraction: The share for the test if the data has no test split.
        split: For a text: the part for validation, its end or passages at random.
        split_seed: The seed that draws the rows or passages for validation and test.
        folds: The number of parts of cross-validation.
        fold: The number of the part that is the test split, from 0.
        fold_rows: The rows that are divided: those of training, or all.
        fold_seed: The seed of the division.
        fold_group: The group whose rows alone are divided; requires --data.group-column.
    """

    group_weights: dict[str, float] | None = None
    max_train_rows: int | None = None
    validation_fraction: float | None = None
    test_fraction: float | None = None
    split: Literal["sequential", "passages"] | None = None
    split_seed: int | None = None
    folds: int | None = None
    fold: int | None = None
    fold_rows: Literal["train", "all"] | None = None
    fold_seed: int | None = None
    fold_group: str | None = None


@dataclass
class OtherTexts(DataChanges):
    """Options of other data, on which a classifier is measured too. They replace those of the task."""


@dataclass
class BaselineOptions(JsonOption):
    """Train and measure a classical baseline on the data of a task: TF-IDF, NB-SVM, n-grams or counts of neighbors.

    Args:
        task: The task whose data is used.
        method: For labeled texts: tfidf, or nb-svm, a regression of words, pairs, triples and characters, weighted by
            naive Bayes, which takes longer and is often better (Wang and Manning 2012).
        folds: Cross-validation: the number of parts of the rows, each of which is the test split once. Finished parts
            are not measured again.
        max_words: For TF-IDF: the number of most frequent words to use, without pairs of words; None: words and pairs.
        group_prior: For labeled texts: weight each text by 1 / P(class | group); requires --data.group-column.
        log_dir: The folder for the results, below <task>/baseline/.
        config_dir: A folder with your own settings, used in addition to ./conf.
    """

    task: str
    data: TaskData = field(default_factory=TaskData)
    method: Literal["tfidf", "nb-svm"] = "tfidf"
    folds: int | None = None
    max_words: int | None = None
    group_prior: bool = False
    other: OtherTexts = field(default_factory=OtherTexts)
    log_dir: Path = Path("logs")
    config_dir: Path | None = None


def main() -> None:
    """Parse the command line and measure."""
    options = parse(BaselineOptions, "baseline")
    with only_json(wanted=options.json):
        if options.folds is None:
            measure_baseline(options)
        else:
            measure_folds(options, options.folds)


def measure_folds(options: BaselineOptions, folds: int) -> None:
    """Measure each fold that is not finished, and print the pooled result. Raises UserError."""
    if folds < 2 or options.data.folds is not None or options.data.fold is not None:
        raise UserError(f"--folds {folds} must be at least 2, without --data.folds and --data.fold; change it")
    paths = []
    for fold in range(folds):
        each = replace(options, folds=None, json=False, data=replace(options.data, folds=folds, fold=fold))
        if found := finished(each):
            say(f"Fold {fold} is finished: {as_typed(found)}")
        paths.append(found or measure_baseline(each))
    from firstlight.lab.reports.all_runs import SavedPredictions, direction_of, gather
    from firstlight.lab.reports.folds import cross_validation  # imports SciPy

    folder = paths[0].parent
    runs = [run for run in gather(folder) if folder / run.folder in paths]
    pooled = cross_validation(runs, SavedPredictions(folder, "test"), direction_of(runs))
    if options.json:
        records = [{"folder": path, **RunFolder(path).read()} for path in paths]
        write_json({"folds": records, "pooled": pooled.plain()})
    else:
        pooled.show()


def finished(options: BaselineOptions) -> Path | None:
    """Return the folder of the newest finished baseline with the same options, code and data; None without one."""
    from hydra.utils import instantiate

    from firstlight.runs.record import hash_of_code

    config, _ = compose(options)
    same = {"status": "finished", "overrides": overrides_of(options), "code": hash_of_code(config)}
    fingerprint = instantiate(config.data, _convert_="object").source.fingerprint
    for file in sorted(Path(config.paths.output_dir).parent.glob("*/metrics.json"), reverse=True):
        record = RunFolder(file.parent).read()
        if same.items() <= record.items() and record["data"]["fingerprint"] == fingerprint:
            return file.parent
    return None


def measure_baseline(options: BaselineOptions) -> Path:
    """Fit on train, choose on validation, measure test once, write and print the record. Return its folder."""
    config, kind = compose(options)
    HydraConfig.instance().set_config(config)  # from which a record takes the task
    folder = RunFolder(Path(config.paths.output_dir))
    from firstlight.callbacks.stop_signals import signal_behind, signals_raise, signals_restored
    from firstlight.runs.record import finish, record_of_start  # torch and Lightning: seconds, after the checks

    with folder.locked(), signals_restored():
        model = options.method if kind.baseline == "tfidf" else kind.baseline
        record = record_of_start(config, folder) | {"model": model, "overrides": overrides_of(options)}
        record |= dict.fromkeys(("chosen", "tried", "references"))
        record |= dict.fromkeys(("dropout", "context_length", "run_key"))  # which only networks have
        record["versions"] |= {"scikit-learn": version("scikit-learn")}
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
    if options.json:
        write_json({"folder": folder.path, **record})
    else:
        report(folder, record)
    return folder.path


def _measure(
    kind: Kind, config: DictConfig, options: BaselineOptions, folder: RunFolder, record: dict[str, Any]
) -> None:
    """Fit and measure, and write the results into record."""
    from hydra.utils import instantiate

    data = instantiate(config.data, _convert_="object")
    data.ensure_setup()
    record["data"] = data.describe()
    record["seconds"]["start_up"] = round(time.perf_counter() - STARTED_AT, 2)
    folder.write(record)
    started_at, processor_started_at = time.perf_counter(), time.process_time()
    given = given_of_classifiers(options)
    fitted: Fitted = kind.function("baseline", "fit")(data, config.optimized_metric, folder.path, **given)
    record["seconds"]["fit"] = round(time.perf_counter() - started_at, 2)
    record["seconds"]["fit_processor"] = round(time.process_time() - processor_started_at, 2)
    tried = {f"{choice:g}": metrics for choice, metrics in fitted.tried.items()}
    record |= {"chosen": {fitted.name: fitted.chosen}, "tried": {fitted.name: tried}, "parameters": fitted.parameters}
    record["metrics"] |= fitted.validation
    started_at = time.perf_counter()
    if data.has_split("test"):
        record["metrics"] |= fitted.test()
    else:
        say(f"{data.source.where} has no test split; no test metrics are reported")
    record["references"] = fitted.references()
    if options.other.given():
        assert fitted.other is not None
        record["metrics"] |= fitted.other(plain(config)["data"], options.other, options.log_dir)
    record["seconds"]["test"] = round(time.perf_counter() - started_at, 2)


def compose(options: BaselineOptions) -> tuple[DictConfig, Kind]:
    """Return the checked configuration of the task, and its kind. Raises UserError if the task has no baseline."""
    timestamp = datetime.now().strftime("%Y-%m-%d_%H-%M-%S-%f")  # as Hydra names the folders of runs
    folder = options.log_dir / options.task / "baseline" / timestamp
    config = compose_task(options.task, options.data, options.log_dir, folder)
    target = config.data._target_
    kinds = (kind for kind in KINDS.values() for node in kind.schema.values() if node._target_ == target)
    kind = next((kind for kind in kinds if kind.baseline is not None), None)
    if kind is None:
        problem = f"--task {options.task}: there is no baseline for its data ({target})"
        raise UserError(f"{problem}; choose a task of a classifier or a generator")
    for name, value in given_of_classifiers(options).items() if kind.baseline != "tfidf" else ():
        option = " ".join((f"--{name.replace('_', '-')}", *(() if value is True else (str(value),))))
        raise UserError(f"{option} requires a task of labeled texts; leave it out")
    if options.method != "tfidf" and options.max_words is not None:
        raise UserError(f"--max-words {options.max_words} requires --method tfidf; leave it out")
    if options.max_words is not None and options.max_words < 1:
        raise UserError(f"--max-words {options.max_words} must be at least 1")
    if kind.baseline != "tfidf" and (given := options.other.given()):
        raise UserError(f"--other.{next(iter(given)).replace('_', '-')} applies to classifiers; leave it out")
    return config, kind


def given_of_classifiers(options: BaselineOptions) -> dict[str, Any]:
    """Return the options of the baselines of classifiers that differ from their defaults, by name."""
    found = {name: getattr(options, name) for name in OF_CLASSIFIERS}
    return {name: value for name, value in found.items() if value != getattr(BaselineOptions, name)}


def overrides_of(options: BaselineOptions) -> list[str]:
    """Return the options as they are recorded, in the form of overrides."""
    return [
        f"task={options.task}",
        *(f"data.{key}={'null' if value is None else value}" for key, value in options.data.options().items()),
        *(f"{name}={str(value).lower()}" for name, value in given_of_classifiers(options).items()),
        *(f"other.{key}={value}" for key, value in options.other.given().items()),
    ]


def report(folder: RunFolder, record: dict[str, Any]) -> None:
    """Print the metrics and the folder of the record."""
    from firstlight.console import Console
    from firstlight.training.terminal import metrics_table

    (name, choice), *_ = record["chosen"].items()
    console = Console()
    model = f"{record['task']}, {record['model']} with {name}={choice:g}"
    console.print(f"{model}, {record['parameters']:,} parameters:", soft_wrap=True)
    console.print(metrics_table(record["metrics"]))
    if record["data"]["source"] == "sample":
        console.print(SAMPLE_NOTE, style="bold")
    console.print(f"The baseline is in {as_typed(folder.path)}", soft_wrap=True)
