import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf
from PIL import Image

from firstlight.errors import UserError
from firstlight.runs import wandb_logger
from firstlight.runs.wandb_logger import ResumableWandbLogger, logger_options
from tests_support import Scripts
from wandb_files import Run, no_key, runs_below

# --- what is left to the run ---


@pytest.fixture
def key(monkeypatch) -> Iterator[dict[str, bool]]:
    """Whether there is a key, no WANDB_MODE and no agent."""
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delenv("WANDB_SWEEP_ID", raising=False)
    found = {"there": False}
    monkeypatch.setattr(wandb_logger, "has_key", lambda: found["there"])
    yield found
    assert "WANDB_MODE" not in os.environ, "the next run of this process would be offline too"


def options(
    folder: str = "logs/stars/runs/2026-01-02", *, sweep: str | None = None, is_sample: bool = False, **node: Any
) -> dict[str, Any]:
    defaults = {"name": None, "group": None, "offline": None, "tags": ["a"], "log_model": False}
    parts = {"paths": {"output_dir": folder}, "sweep": {"name": sweep}, "logger": {"wandb": defaults | node}}
    config = OmegaConf.create(parts)
    return logger_options(config, config.logger.wandb, "stars", is_sample=is_sample)


def test_without_a_key_a_run_is_kept_offline_and_says_so(key, caplog, monkeypatch) -> None:
    with caplog.at_level("INFO", "firstlight"):
        assert options()["mode"] == "offline"
        assert caplog.messages == ["W&B: no key, so this run is kept offline; `wandb login` to change that"]
        key["there"] = True
        assert (options()["mode"], options(offline=True)["mode"]) == ("online", "offline")
        assert len(caplog.messages) == 1
    with monkeypatch.context() as patch:
        patch.setenv("WANDB_MODE", "disabled")
        assert "mode" not in options()


def test_online_can_be_asked_for_and_needs_a_key(key) -> None:
    with pytest.raises(UserError, match=r"^logger\.wandb\.offline=false needs a key: run `wandb login`"):
        options(offline=False)
    key["there"] = True
    assert options(offline=False)["mode"] == "online"


def test_a_key_that_can_be_none_is_named(monkeypatch) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_API_KEY", "abc")
    with pytest.raises(UserError, match=r"^W&B: WANDB_API_KEY invalid: .*; correct it, or unset it$"):
        options()


def test_lightnings_own_switches_are_off(key) -> None:
    """Its `offline` changes WANDB_MODE for the whole process, its `log_model` wants its own checkpoints."""
    for node in ({}, {"offline": True}, {"log_model": True}):
        assert options(**node).items() >= {"offline": False, "log_model": False}.items()


@pytest.mark.parametrize(
    ("folder", "node", "given"),
    [
        ("logs/stars/runs/2026-01-02", {}, {"name": "stars-2026-01-02", "group": "2026-01-02"}),
        ("logs/sweeps/dropout/model-tiny", {"sweep": "dropout"}, {"name": "stars-model-tiny", "group": "dropout"}),
        ("elsewhere/model-tiny", {"sweep": "mine/dropout"}, {"group": "mine/dropout"}),
        ("/data/sweeps/logs/stars/runs/2026-01-02", {}, {"group": "2026-01-02", "tags": None}),
        ("logs/stars/runs/2026-01-02", {"name": "mine", "group": "ours"}, {"name": None, "group": None}),
        ("logs/stars/runs/2026-01-02", {"is_sample": True}, {"tags": ["a", "sample"]}),
    ],
)
def test_a_run_is_named_after_its_task_and_folder_grouped_by_its_sweep_and_tagged(key, folder, node, given) -> None:
    """None: the logger's own node decides."""
    found = options(folder, **node)
    assert {name: found.get(name) for name in given} == given


def test_the_runs_of_a_sweep_of_wandbs_own_are_a_group(key, monkeypatch) -> None:
    monkeypatch.setenv("WANDB_SWEEP_ID", "7wx23k")
    assert options()["group"] == "7wx23k"
    assert options(group="ours").get("group") is None


def test_a_run_that_is_switched_off_is_finished_without_a_word(tmp_path, monkeypatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    with wandb.init(mode="disabled", dir=str(tmp_path)):
        wandb_logger.finish({"status": "finished", "parameters": 17, "metrics": {}})
    assert wandb.run is None
    wandb_logger.finish({"status": "finished", "parameters": 17, "metrics": {}})  # where there is none


# --- a resumed run ---


def folder_config(folder: Path, *, resumed: bool) -> DictConfig:
    return OmegaConf.create({"paths": {"output_dir": str(folder)}, "resume": "auto" if resumed else None})


def test_a_run_keeps_its_id_in_its_folder(key, tmp_path, monkeypatch) -> None:
    node = OmegaConf.create({})
    first = wandb_logger.identity(folder_config(tmp_path, resumed=False), node)
    assert first["resume"] == "allow"
    assert re.fullmatch("[a-z0-9]{8}", first["id"])
    assert wandb_logger.identity(folder_config(tmp_path, resumed=True), node) == first
    another = wandb_logger.identity(folder_config(tmp_path, resumed=False), node)
    assert another["id"] != first["id"]
    for broken in (b"../../elsewhere", b"\xff\xfe", b""):
        (tmp_path / "wandb_id.txt").write_bytes(broken)
        given = wandb_logger.identity(folder_config(tmp_path, resumed=True), node)
        assert re.fullmatch("[a-z0-9]{8}", given["id"])
    assert wandb_logger.identity(folder_config(tmp_path, resumed=True), OmegaConf.create({"id": "mine"})) == {}
    monkeypatch.setenv("WANDB_RUN_ID", "anagents")
    assert wandb_logger.identity(folder_config(tmp_path, resumed=True), node) == {}


class FakeRun:
    """What a logger needs of a run of W&B, and what was logged: (W&B's step, the training's, a value)."""

    id = "abcd1234"

    def __init__(self, folder: Path, mode: str, starting_step: int = 0) -> None:
        self.dir = str(folder / "files")
        self.starting_step = starting_step
        self.settings = SimpleNamespace(mode=mode)
        self.lines: list[tuple[int, int, float]] = []

    def log(self, content: dict[str, Any], step: int) -> None:
        self.lines.append((step, content["trainer/global_step"], content["loss"]))

    def define_metric(self, *_: Any, **__: Any) -> None:
        """Lightning says which metric is the axis."""


@pytest.mark.parametrize(
    ("starting_step", "steps"), [(0, [4, 9, 14, 19]), (5, [9, 14, 19]), (10, [14, 19]), (15, [19]), (25, [])]
)
def test_online_what_the_server_has_is_not_logged_twice(tmp_path, starting_step: int, steps: list[int]) -> None:
    """The training resumes at step 10, after it had logged the steps 4 and 9."""
    run = FakeRun(tmp_path, "online", starting_step)
    logger = ResumableWandbLogger(experiment=run)
    logger.go_on([(4, {"loss": 0.4}), (9, {"loss": 0.9})])
    for step in (14, 19):
        logger.log_metrics({"loss": step / 10}, step)
    assert run.lines == [(step, step, step / 10) for step in steps]


# --- what the runs of a sweep leave, and one with a rate that no training survives ---


@pytest.fixture
def finished(logged: Callable[[str], Run]) -> Run:
    """Return the first of three runs of a sweep."""
    return logged("stars")


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory, reviews_folder: Path) -> Run:
    """Return a run whose loss is no number after a step."""
    folder = tmp_path_factory.mktemp("wandb")
    overrides = [
        *(f"data.path={reviews_folder}", "task=stars", "model=tiny", "context_length=23", "optimizer.lr=1e30"),
        *("trainer.max_steps=6", "trainer.limit_train_batches=3", "trainer.log_every_n_steps=3"),
        *("trainer.accelerator=cpu", "test=false", "logger=wandb", "logger.wandb.log_model=true"),
    ]
    assert Scripts(folder).run_alone("train", *overrides, environ=no_key(folder)).returncode == 1
    (run,) = runs_below(folder / "logs")
    return run


def test_the_runs_of_a_sweep_have_its_name_as_group_and_their_tags(logged) -> None:
    for task in ("stars", "names", "translation"):
        run = logged(task)
        (told,) = run.all("run")
        assert told["run_group"] == run.folder.parent.name == run.config["sweep"]["name"]
        assert (told["project"], told["job_type"], told["tags"]) == ("firstlight", "train", ["one", "two"])
        assert told["display_name"] == f"{task}-{run.folder.name}"


def test_a_run_that_crashes_has_failed(failed: Run, finished: Run) -> None:
    runs = (failed, finished)
    assert [[end.get("exit_code", 0) for end in run.all("exit")] for run in runs] == [[1], [0]]
    assert [run.summary["status"] for run in runs] == ["failed", "finished"]
    assert [run.metrics["status"] for run in runs] == ["failed", "finished"]
    assert finished.summary["parameters"] == finished.metrics["parameters"]


@pytest.mark.parametrize(("stage", "steps"), [("val", [2, 5]), ("test", [6])])
def test_the_confusion_matrix_is_a_picture_a_table_and_a_chart(finished, stage: str, steps) -> None:
    pictures = finished.history(f"{stage}/confusion_matrix.path")
    assert [step for step, _ in pictures] == steps
    for _, path in pictures:
        with Image.open(finished.files / path) as picture:
            picture.load()
            assert picture.format == "PNG"
    table = finished.table(f"{stage}/confusion_matrix_table")
    assert table["columns"] == ["true", "predicted", "count", "share_of_true"]
    assert len(table["data"]) == 25
    chart = finished.table(f"{stage}/confusion_matrix_chart_table")
    assert chart["columns"] == ["Actual", "Predicted", "nPredictions"]
    counts = {(true, predicted): count for true, predicted, count, _ in table["data"]}
    assert {(true, predicted): count for true, predicted, count in chart["data"]} == counts
    assert sum(counts.values()) == 100
    panel = finished.config[f"_wandb.visualize.{stage}/confusion_matrix_chart"]
    assert panel["panel_config"]["stringSettings"]["title"].startswith("Confusion matrix, ")


def test_the_best_checkpoint_is_an_artifact_where_it_is_asked_for(finished, failed) -> None:
    (model,) = (artifact for artifact in finished.all("artifact") if artifact["type"] == "model")
    assert set(model["aliases"]) == {"latest", "best"}
    (entry,) = model["manifest"]["contents"]
    assert entry["path"] == "best.ckpt"
    assert int(entry["size"]) == (finished.folder / "checkpoints" / "best.ckpt").stat().st_size
    assert not [artifact for artifact in failed.all("artifact") if artifact["type"] == "model"]


def test_each_job_of_a_sweep_says_how_to_upload_it(logged) -> None:
    for task in ("stars", "names", "translation"):
        run = logged(task)
        said = (run.folder / "output.txt").read_text()
        assert said.count("W&B: no key, so this run is kept offline") == 1
        assert re.findall(r"W&B: kept offline; to upload it: wandb sync (\S+)", said) == [str(run.files.parent)]
        assert "deprecated" not in said
        assert "already in progress" not in said
