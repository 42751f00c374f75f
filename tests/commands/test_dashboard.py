"""The W&B workspace: what is written offline, held against what real runs have told W&B."""

import functools
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import wandb
import wandb_workspaces.workspaces as ws

from firstlight.kind.registry import KINDS
from tests_support import Scripts
from wandb_files import OF_EVERY_TASK, TASKS, Run

TASKS_OF = {
    "Comparison": TASKS,
    "All runs": TASKS,
    "Classifiers": ("sentiment", "stars"),
    "Ordered classes": ("stars",),
    "Generators": ("names", "shakespeare", "review_text"),
    "Generators of characters": ("names", "shakespeare"),
    "Translators": ("translation",),
    "Masked language models": (),  # their metrics are also those of generators
}
COMPARED = ("task", "model_name", "dropout", "context_length")

Panel = dict[str, Any]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory) -> dict[str, Any]:
    """What `python src/dashboard.py` writes."""
    scripts = Scripts(tmp_path_factory.mktemp("dashboard"))
    done = scripts.succeed("dashboard")
    written = json.loads((scripts.folder / "logs" / "dashboard.json").read_text(encoding="utf-8"))
    said = f"wrote logs/dashboard.json: {len(TASKS_OF)} sections, {len(list(panels_of(written)))} panels"
    assert done.stdout.splitlines() == [said, "to send it to W&B, add --push"]
    return written


def panels_of(workspace: dict[str, Any], view: str | None = None) -> Iterator[tuple[str, Panel]]:
    """(section, panel), of one kind or of all."""
    for section in workspace["spec"]["section"]["panelBankConfig"]["sections"]:
        for panel in section["panels"]:
            if view in (None, panel["viewType"]):
                yield section["name"], panel


def shown_by(panel: Panel) -> dict[str, list[str]]:
    """What a panel reads of a run: the names of metrics, media, tables, summaries and config, and patterns of names."""
    config = panel["config"]
    match panel["viewType"]:
        case "Run History Line Plot":
            assert config["xAxis"] == "trainer/global_step"
            pattern = config.get("metricRegex")
            return {"metric": config["metrics"]} | ({"pattern": [pattern]} if pattern else {})
        case "Bar Chart":
            return {"metric": config["metrics"]}
        case "Media Browser":
            return {"image": config["mediaKeys"]}
        case "Vega2":
            return {"table": [argument["value"] for argument in arguments_of(panel) if argument["name"] == "tableKey"]}
        case "Weave":
            return {"table": [config["panel2Config"]["exp"]["fromOp"]["inputs"]["key"]["val"]]}
        case "Parallel Coordinates Plot":
            return by_place(column["accessor"] for column in config["columns"])
        case "Parameter Importance":
            return {"summary": [config["targetKey"]]}
        case "Scatter Plot":
            return by_place([config["xAxis"], config["yAxis"]])
        case "Run Comparer":
            return {}
    pytest.fail(f"a panel of a new kind: {panel['viewType']}")


def arguments_of(panel: Panel) -> Iterator[dict[str, Any]]:
    (runs,) = panel["config"]["userQuery"]["queryFields"]
    for field in runs["fields"]:
        yield from field.get("args") or []


def by_place(accessors: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for accessor in accessors:
        place, _, name = accessor.partition(":")
        found.setdefault(place, []).append(name)
    return found


def names_in(run: Run) -> dict[str, set[str]]:
    """What a run has told W&B, by kind."""
    items = [line["item"] for line in run.all("history")]
    keys = {key for item in items for key in item}
    kinds = {key.removesuffix("._type"): item[key] for item in items for key in item if key.endswith("._type")}
    media = tuple(f"{key}." for key in kinds)
    return {
        "metric": {key for key in keys if not key.startswith(("_", *media))},
        "image": {key for key, kind in kinds.items() if kind == "image-file"},
        "table": {key for key, kind in kinds.items() if kind == "table-file"},
        "summary": {key for key, value in run.summary.items() if isinstance(value, int | float)},
        "config": {f"{key}.value" for key, value in run.config.items() if isinstance(value, int | float | str)},
    }


@OF_EVERY_TASK
def test_everything_that_a_panel_shows_is_in_real_runs(workspace, logged: Callable[[str], Run], task: str) -> None:
    run = logged(task)
    there = names_in(run)
    has_test = task != "shakespeare"  # whose plays are split in two
    checked = 0
    for section, panel in panels_of(workspace):
        if task not in TASKS_OF[section]:
            continue
        for kind, names in shown_by(panel).items():
            if kind == "pattern":
                assert all(any(re.search(pattern, name) for name in there["metric"]) for pattern in names), names
                continue
            wanted = {name for name in names if has_test or not name.startswith("test/")}
            assert wanted <= there[kind], (section, panel["viewType"], kind, wanted - there[kind])
            checked += len(wanted)
    assert checked >= 20


@OF_EVERY_TASK
def test_a_task_is_shown_in_no_section_of_another_kind(workspace, logged: Callable[[str], Run], task: str) -> None:
    """What tells the kinds apart: else one section would do."""
    there = names_in(logged(task))
    for section, tasks in TASKS_OF.items():
        shown = [shown_by(panel) for name, panel in panels_of(workspace) if name == section]
        wanted = {(kind, name) for each in shown for kind, names in each.items() if kind != "pattern" for name in names}
        if tasks and task not in tasks:
            assert any(name not in there[kind] for kind, name in wanted), (section, task)


def test_masked_models_are_shown_by_their_metrics(workspace) -> None:
    shown = [shown_by(panel)["metric"] for name, panel in panels_of(workspace) if name == "Masked language models"]
    names = {f"{split}/{name}" for split in ("train", "val", "test") for name in KINDS["masked"].metrics(None)}
    assert {"val/perplexity", "val/accuracy", "test/accuracy"} <= {name for each in shown for name in each} <= names


def test_the_four_things_that_everyone_sweeps_are_compared(workspace) -> None:
    ((_, parallel),) = panels_of(workspace, "Parallel Coordinates Plot")
    assert shown_by(parallel)["config"] == [f"{name}.value" for name in COMPARED]
    pinned = workspace["spec"]["section"]["runSets"][0]["runFeed"]["columnPinned"]
    assert {f"config:{name}.value" for name in COMPARED} < set(pinned)


@pytest.mark.parametrize("stage", ["val", "test"])
def test_the_interactive_confusion_matrix_is_the_one_that_a_run_logs(workspace, logged, stage: str) -> None:
    logs = logged("stars").config[f"_wandb.visualize.{stage}/confusion_matrix_chart"]
    config = logs["panel_config"]
    key = f"{stage}/confusion_matrix_chart_table"
    (ours,) = (panel["config"] for _, panel in panels_of(workspace, "Vega2") if shown_by(panel)["table"] == [key])
    assert logs["panel_type"] == "Vega2"
    for name in ("panelDefId", "fieldSettings", "stringSettings", "transform"):
        assert ours[name] == config[name], name


def test_the_same_command_writes_the_same_bytes(scripts: Scripts) -> None:
    files = [scripts.folder / f"{name}.json" for name in ("here", "alone")]
    from_nothing = functools.partial(scripts.run_alone, fresh=True)  # strings have other hashes there
    for file, run in zip(files, (scripts.run, from_nothing), strict=True):
        done = run("dashboard", "--output", file.name, "--project", "mine", "--entity", "us")
        assert done.returncode == 0, done.stderr
    assert files[0].read_bytes() == files[1].read_bytes()
    written = json.loads(files[0].read_text())
    assert (written["project"], written["entity"]) == ("mine", "us")
    assert not (scripts.folder / "logs").exists()


# --- pushing ---


class Server:
    """Takes what is sent to W&B."""

    default_entity = "somebody"
    app_url = "https://wandb.test"

    def __init__(self, **_: Any) -> None:
        self._service_api = self
        self.sent: list[dict[str, Any]] = []

    def execute_graphql(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        assert "upsertView" in query
        self.sent.append(variables)
        return {"upsertView": {"view": {"id": "17", "name": "nw-abcdefghijk-v"}}}


@pytest.fixture
def server(monkeypatch) -> Server:
    """A W&B that answers, and a key for it."""
    server = Server()
    monkeypatch.setattr("firstlight.runs.wandb_logger.has_key", lambda: True)
    monkeypatch.setattr(wandb, "Api", lambda **options: server)
    return server


def test_what_is_pushed_is_what_is_written(scripts: Scripts, server: Server) -> None:
    done = scripts.succeed("dashboard", "--push", "--project", "mine")
    (sent,) = server.sent
    written = json.loads((scripts.folder / "logs" / "dashboard.json").read_text())
    assert json.loads(sent["spec"]) == written["spec"]
    assert (sent["entityName"], sent["projectName"], sent["displayName"]) == ("somebody", "mine", "firstlight")
    assert sent["type"] == "project-view"
    assert "W&B: pushed to https://wandb.test/somebody/mine?nw=abcdefghijk" in done.stdout


def test_without_a_key_the_file_is_written_and_nothing_pushed(scripts: Scripts, server: Server, monkeypatch) -> None:
    monkeypatch.setattr("firstlight.runs.wandb_logger.has_key", lambda: False)
    assert "--push requires a key: run `wandb login`, or set WANDB_API_KEY" in scripts.refuse("dashboard", "--push")
    assert server.sent == []
    assert (scripts.folder / "logs" / "dashboard.json").is_file()


def test_a_push_that_fails_is_one_line(scripts: Scripts, server: Server, monkeypatch) -> None:
    def save(_: Any) -> None:
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(ws.Workspace, "save", save)
    done = scripts.run("dashboard", "--push")
    line = "error: --push: W&B refused the workspace (ConnectionError: no route to host)\n"
    assert (done.returncode, done.stderr) == (1, line)


def test_without_the_extra_the_remedy_is_named(scripts: Scripts, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb_workspaces.workspaces", None)
    remedy = "the dashboard requires wandb-workspaces: pip install -c constraints.txt -e '.[dashboard]'"
    assert remedy in scripts.refuse("dashboard")
    assert not (scripts.folder / "logs").exists()
