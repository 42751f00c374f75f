"""Every logger gets the same values: history.jsonl, CSV, TensorBoard, W&B, Trackio and a logger of the user."""

import csv
import json
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from firstlight.errors import UserError
from firstlight.runs import trackio_logger, wandb_logger
from firstlight.runs.folder import refuse_links
from firstlight.runs.history import HistoryLogger
from firstlight.runs.trackio_logger import TrackioLogger
from firstlight.runs.wandb_logger import ResumableWandbLogger
from wandb_files import OF_EVERY_TASK, Run, no_key, read_run, runs_below

NO_METRICS = {"step", "epoch", "seconds", "told"}
CONFUSION_FILES = {
    f"{stage}/confusion_matrix{suffix}": f"confusion_matrix/{name}.{ending}"
    for stage, name in (("val", "validation"), ("test", "test"))
    for suffix, ending in (("", "png"), ("_table", "csv"))
}
FILES = {  # of every figure and table: where it lies in the run's folder
    "sentiment": CONFUSION_FILES | {"test/reviews": "reviews/test.csv"},
    "stars": CONFUSION_FILES | {"test/reviews": "reviews/test.csv"},
    "names": {"val/samples": "samples/00000006.txt"},
    "shakespeare": {"val/samples": "samples/00000006.txt"},
    "review_text": {"val/samples": "samples/00000006.txt"},
    "translation": {"val/translations": "samples/00000006.txt", "test/translations": "samples/test.txt"},
}

Curves = dict[str, list[tuple[int, float]]]


def curves(lines: list[dict[str, Any]]) -> Curves:
    """(step, value) of every metric, in lines of a metric each or of many."""
    found: Curves = {}
    for line in lines:
        for name in line.keys() - NO_METRICS:
            found.setdefault(name, []).append((line["step"], line[name]))
    return found


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def in_history(run: Run) -> Curves:
    return curves(json_lines(run.folder / "history.jsonl"))


def in_csv(run: Run) -> Curves:
    (path,) = run.folder.glob("csv/version_*/metrics.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{name: value for name, value in row.items() if value} for row in csv.DictReader(file)]
    return curves([{name: float(value) for name, value in row.items()} | {"step": int(row["step"])} for row in rows])


def in_tensorboard(run: Run) -> Curves:
    events = events_of(run)
    names = set(events.Tags()["scalars"]) - NO_METRICS
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in names}


def in_wandb(run: Run) -> Curves:
    items = [line["item"] for line in run.all("history")]
    media = tuple(f"{key.removesuffix('._type')}." for item in items for key in item if key.endswith("._type"))
    metrics = (
        {name: value for name, value in item.items() if not name.startswith(("_", "trainer/", *media))}
        | {"step": item["trainer/global_step"]}
        for item in items
    )
    return curves(list(metrics))


def in_trackio(run: Run) -> Curves:
    rows = trackio_rows(run.folder.parents[2] / "trackio", run.folder.name)
    return curves([{name: value for name, value in row.items() if not isinstance(value, dict)} for row in rows])


def trackio_rows(folder: Path, ending: str = "") -> list[dict[str, Any]]:
    """Return what Trackio's database has of the run whose name has this ending, in the order in which it came."""
    with sqlite3.connect(folder / "firstlight.db") as database:
        question = "SELECT step, metrics FROM metrics WHERE run_name LIKE ? ORDER BY id"
        return [json.loads(row) | {"step": step} for step, row in database.execute(question, (f"%{ending}",))]


def trackio_config(folder: Path, ending: str = "") -> dict[str, Any]:
    with sqlite3.connect(folder / "firstlight.db") as database:
        question = "SELECT config FROM configs WHERE run_name LIKE ?"
        ((config,),) = database.execute(question, (f"%{ending}",))
    return json.loads(config)


def in_own(run: Run) -> Curves:
    return curves(json_lines(run.folder / "own.jsonl"))


def events_of(run: Run) -> EventAccumulator:
    sizes = {"scalars": 0, "images": 0, "tensors": 0}
    return EventAccumulator(str(run.folder / "tensorboard"), size_guidance=sizes).Reload()


# --- metrics ---


@OF_EVERY_TASK
@pytest.mark.parametrize("told", [in_csv, in_tensorboard, in_wandb, in_trackio, in_own])
def test_every_logger_has_the_metrics_steps_and_values_of_the_history(logged, task, told) -> None:
    expected, found = in_history(logged(task)), told(logged(task))
    assert found.keys() == expected.keys()
    for name, points in expected.items():
        assert [step for step, _ in found[name]] == [step for step, _ in points], name
        values = [value for _, value in points]
        assert [value for _, value in found[name]] == pytest.approx(values, rel=1e-6, abs=1e-12), name


@OF_EVERY_TASK
def test_the_history_has_curves_of_training_and_validation(logged: Callable[[str], Run], task: str) -> None:
    """Else the loggers could agree on nothing."""
    found = in_history(logged(task))
    rate = f"lr-{'MuonAdamW' if task == 'translation' else 'AdamW'}/pg1"
    for name in ("train/loss", "train/accuracy", "train/tokens_per_second", rate):
        assert [step for step, _ in found[name]] == [1, 3, 5], name
    for name in ("val/loss", "val/accuracy"):
        assert [step for step, _ in found[name]] == [2, 5], name
    if task != "shakespeare":  # whose plays are split in two
        assert [step for step, _ in found["test/loss"]] == [6]


@OF_EVERY_TASK
def test_every_logger_is_told_the_configuration_and_what_it_is_composed_of(logged, task) -> None:
    run = logged(task)
    (csv_file,) = run.folder.glob("csv/version_*/hparams.yaml")
    told = {
        "csv": yaml.safe_load(csv_file.read_text()),
        "tensorboard": yaml.safe_load((run.folder / "tensorboard" / "hparams.yaml").read_text()),
        "wandb": {name: value for name, value in run.config.items() if not name.startswith("_wandb")},
        "own": json_lines(run.folder / "own.jsonl")[0]["told"],
    }
    in_trackio = trackio_config(run.folder.parents[2] / "trackio", run.folder.name)
    assert (in_trackio["_Group"], in_trackio["status"]) == (run.folder.parent.name, "finished")
    assert in_trackio["best"] == run.metrics["metrics"]
    told["trackio"] = {name: in_trackio[name] for name in told["own"]}
    networks = {"sentiment": "classifier", "stars": "classifier", "translation": "translator"}
    for name, config in told.items():
        assert config == told["own"], name
        assert (config["task"], config["model_name"], config["experiment"]) == (task, "tiny", None)
        assert config["network"] == networks.get(task, "generator")
        assert config["data_source"] == "local"
        assert config["context_length"] == config["model"]["context_length"] == 61
        assert config["sweep"]["name"] == run.folder.parent.name


def new_trackio(folder: Path, *, name: str, is_resumed: bool, **_: Any) -> TrackioLogger:
    return TrackioLogger(str(folder / name), name="a-run", group="a-group", tags=["one"], is_resumed=is_resumed)


def new_wandb(folder: Path, *, name: str, **_: Any) -> ResumableWandbLogger:
    (folder / name).mkdir(exist_ok=True)
    options = {"group": "a-group", "tags": ["one"], "id": "abcd1234", "resume": "allow"}
    return ResumableWandbLogger(save_dir=str(folder / name), mode="offline", **options)


def new_of_lightning(new: Callable[..., Any]) -> Callable[..., Any]:
    return lambda folder, *, name, is_resumed: new(folder, name=name, version="")


def steps_in_csv(folder: Path) -> list[int]:
    return [int(row["step"]) for row in csv.DictReader((folder / "metrics.csv").open())]


def steps_in_tensorboard(folder: Path) -> list[int]:
    return [each.step for each in EventAccumulator(str(folder)).Reload().Scalars("loss")]


def steps_in_wandb(folder: Path) -> list[int]:
    runs = [read_run(file) for file in sorted(folder.glob("wandb/offline-run-*/run-*.wandb"))]
    assert [run.summary["status"] for run in runs] == ["interrupted", "failed"]
    assert [run.summary["loss"] for run in runs] == [0.5, 0.5]  # of the best checkpoint, where no test follows
    assert runs[-1].history("loss")[-1] == (7, 7 / 4)
    assert [run.all("exit")[0]["exit_code"] for run in runs] == [1, 1]
    assert [(told["run_group"], told["tags"]) for (told,) in (run.all("run") for run in runs)] == [
        ("a-group", ["one"])
    ] * 2
    return [step for step, _ in runs[-1].history("loss")]  # the newest part has all numbers


def steps_in_trackio(folder: Path) -> list[int]:
    config, rows = trackio_config(folder), trackio_rows(folder)
    assert (config["status"], config["_Group"], config["tags"]) == ("failed", "a-group", ["one"])
    (picture,) = (row["figure"] for row in rows if "figure" in row)
    with Image.open(folder / "media" / picture["file_path"]) as shown:
        shown.load()
    assert [row["table"]["_value"] for row in rows if "table" in row] == [[{"a": 1, "b": "x"}]]
    losses = [row["loss"] for row in rows if "loss" in row]
    assert losses == [0, 1, 2, 3, 4 / 4, 5 / 4, 6 / 4, 7 / 4]  # after the checkpoint, those of the resumed run
    return [row["step"] for row in rows if "loss" in row]


@pytest.mark.parametrize(
    ("new", "steps"),
    [
        (new_of_lightning(CSVLogger), steps_in_csv),
        (new_of_lightning(TensorBoardLogger), steps_in_tensorboard),
        (new_wandb, steps_in_wandb),
        (new_trackio, steps_in_trackio),
    ],
    ids=["csv", "tensorboard", "wandb", "trackio"],
)
def test_a_resumed_run_has_each_step_once_and_its_status(new, steps, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", "")  # what a logger sets is taken back
    for name, value in (no_key(tmp_path) | {"WANDB_SILENT": "true"}).items():
        monkeypatch.setenv(name, value)
    for first, last in ((0, 6), (4, 8)):  # the first part wrote two steps after its last checkpoint
        logger, history = new(tmp_path, name="own", is_resumed=first > 0), HistoryLogger(tmp_path / "history.jsonl")
        history.start(first, [logger])
        for step in range(first, last):
            for each in (history, logger):
                each.log_metrics({"loss": step / first if first else step}, step)
        if isinstance(logger, TrackioLogger):
            logger.log_picture("figure", Image.new("RGB", (3, 2)), 5)
            logger.log_table("table", ["a", "b"], [[1, "x"]], 5)
        logger.finalize("success")
        for each in (wandb_logger, trackio_logger):
            each.finish({"status": "failed" if first else "interrupted", "parameters": 7, "metrics": {"loss": 0.5}})
        if isinstance(logger, TrackioLogger):
            assert trackio_config(tmp_path / "own")["status"] == ("failed" if first else "interrupted")
    assert steps(tmp_path / "own") == list(range(8))
    assert [line["step"] for line in json_lines(tmp_path / "history.jsonl")] == list(range(8))


def test_a_missing_extra_is_one_line(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", "")
    monkeypatch.setitem(sys.modules, "trackio.utils", None)
    with pytest.raises(UserError, match=r"^logger=trackio requires trackio: pip install .*\[trackio\]'$"):
        TrackioLogger(str(tmp_path))


# --- figures and tables ---


def media_in_wandb(run: Run) -> dict[str, list[int]]:
    """The steps of every figure and table, without those that W&B's own chart is made of."""
    items = [line["item"] for line in run.all("history")]
    names = {key.removesuffix("._type") for item in items for key in item if key.endswith("._type")}
    return {
        name: [step for step, _ in run.history(f"{name}._type")] for name in names if not name.endswith("_chart_table")
    }


def media_in_tensorboard(folder: Path) -> dict[str, list[int]]:
    events = EventAccumulator(str(folder / "tensorboard"), size_guidance={"images": 0, "tensors": 0}).Reload()
    found = {name: events.Images(name) for name in events.Tags()["images"]}
    found |= {
        name.removesuffix("/text_summary"): events.Tensors(name) for name in events.Tags()["tensors"] if name[0] != "_"
    }
    return {name: [event.step for event in each] for name, each in found.items()}


def media_in_trackio(logs: Path, ending: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in trackio_rows(logs / "trackio", ending):
        for name in (name for name, value in row.items() if isinstance(value, dict)):
            found.setdefault(name, []).append(row["step"])
    return found


@OF_EVERY_TASK
def test_tensorboard_has_the_figures_and_tables_that_wandb_has(logged: Callable[[str], Run], task: str) -> None:
    found = media_in_tensorboard(logged(task).folder)
    assert found == media_in_wandb(logged(task))
    assert found.keys() == FILES[task].keys()


@OF_EVERY_TASK
def test_trackio_has_the_figures_and_tables_that_wandb_has(logged: Callable[[str], Run], task: str) -> None:
    run = logged(task)
    assert media_in_trackio(run.folder.parents[2], run.folder.name) == media_in_wandb(run)


@OF_EVERY_TASK
def test_every_figure_and_table_is_a_file_of_the_run_too(logged: Callable[[str], Run], task: str) -> None:
    """CSV can show none of them."""
    run = logged(task)
    for name, file in FILES[task].items():
        path = run.folder / file
        if path.suffix == ".png":
            with Image.open(path) as picture:
                picture.load()
        elif path.suffix == ".txt":
            text = " ".join(path.read_text(encoding="utf-8").split())
            for row in run.table(name)["data"]:
                assert all(" ".join(cell.split()) in text for cell in row if isinstance(cell, str)), name
        elif name != "val/confusion_matrix_table":  # the file is that of the best checkpoint, after the training
            table = run.table(name)
            with path.open(encoding="utf-8", newline="") as read:
                header, *rows = csv.reader(read)
            assert header == table["columns"]
            assert [row[:2] for row in rows] == [row[:2] for row in table["data"]]
            for row, expected in zip(rows, table["data"], strict=True):
                shown = [(cell, value) for cell, value in zip(row, expected, strict=True) if not isinstance(value, str)]
                assert [float(cell) for cell, _ in shown] == pytest.approx([value for _, value in shown])


def test_the_confusion_matrix_in_the_folder_is_that_of_the_best_checkpoint(logged) -> None:
    run = logged("stars")
    steps = dict(media_in_wandb(run))["val/confusion_matrix_table"]
    points = in_history(run)["val/accuracy"]
    assert steps == [step for step, _ in points]
    with (run.folder / "confusion_matrix" / "validation.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    right = sum(int(row["count"]) for row in rows if row["true"] == row["predicted"])
    share = right / sum(int(row["count"]) for row in rows)
    assert share == pytest.approx(run.metrics["metrics"]["val/accuracy"]) == pytest.approx(max(v for _, v in points))


# --- after the run ---


@pytest.fixture
def copied(logged: Callable[[str], Run], tmp_path: Path) -> Run:
    """Return the run of stars in a copy of its log folder."""
    run = logged("stars")
    shutil.copytree(run.folder.parents[2], tmp_path / "logs", symlinks=True)
    (copy,) = runs_below(tmp_path / "logs" / run.folder.relative_to(run.folder.parents[2]))
    return copy


def test_explore_adds_its_figures_to_the_run_in_each_logger_after_its_last_step(copied, scripts, tmp_path) -> None:
    folder, logs = copied.folder, copied.folder.parents[2]
    config, media = trackio_config(logs / "trackio", folder.name), media_in_wandb(copied)
    numbers = [read(copied) for read in (in_tensorboard, in_trackio)]
    words = (str(folder), "--log", "--figures", "attention", "curves")
    done = scripts.run_alone("explore", *words, environ=no_key(tmp_path))
    assert done.returncode == 0, done.stderr
    added = {"explore/attention": [7], "explore/curves": [7]}  # the test was at step 6
    (part,) = (run for run in runs_below(folder) if run.files != copied.files)
    assert (in_wandb(part), media_in_wandb(part)) == ({}, added)
    assert media_in_trackio(logs, folder.name) == media_in_tensorboard(folder) == media | added
    assert [read(copied) for read in (in_tensorboard, in_trackio)] == numbers
    assert trackio_config(logs / "trackio", folder.name) == config
    assert part.all("run")[0]["run_id"] == copied.all("run")[0]["run_id"]
    for name in config.keys() - {"status", "parameters", "best", "tags", "_Created", "_Group", "_Username"}:
        assert part.config[name] == config[name], name
    assert part.summary.items() >= {"status": "finished", **copied.metrics["metrics"]}.items()
    assert (folder / "wandb" / "latest-run").resolve() == copied.files.parent  # what docs/reports.md uploads
    refuse_links(folder)  # W&B's own links do not prevent a later command


def test_report_adds_its_tables_and_figures_to_each_logger_as_a_run_of_its_own(copied, scripts, tmp_path) -> None:
    sweep, logs = copied.folder.parent, copied.folder.parents[2]
    Image.new("RGB", (3, 2)).save(sweep / "ladder.png")
    done = scripts.run_alone("report", str(sweep), "--log", environ=no_key(tmp_path))
    assert done.returncode == 0, done.stderr
    run = read_run(next(sweep.glob("wandb/offline-run-*/run-*.wandb")))
    added = media_in_wandb(run)
    assert added == media_in_tensorboard(sweep) == media_in_trackio(logs, f"report of {sweep.name}")
    assert added["report/ladder"] == [0]
    assert sum(name.startswith("report/stars") for name in added) == 1
    told = run.all("run")[0]
    assert (told["job_type"], told["run_group"], told["display_name"]) == (
        "report",
        sweep.name,
        f"report of {sweep.name}",
    )


def test_a_film_alone_is_refused(trained, scripts) -> None:
    assert "--log does not add the film" in scripts.refuse("explore", str(trained("sentiment")), "--log", "--film")


@pytest.mark.parametrize("command", ["explore", "report"])
def test_a_run_without_such_a_logger_is_refused(command, trained, scripts) -> None:
    problem = scripts.refuse(command, str(trained("sentiment")), "--log")
    assert re.search(r" without a logger that shows figures; omit --log, or use logger=wandb or ", problem)
    assert not (trained("sentiment") / "report.html").exists()
