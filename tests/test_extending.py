"""The classes and settings of docs/extending.md and docs/own-tasks.md work as the pages say."""

import csv
import json
import random
import re
import sys

import pytest

from firstlight.commands import new
from tests_support import ROOT, Scripts, captured


def files_of(page: str) -> list[tuple[str, str]]:
    """Return the names and the contents of the files that a page shows."""
    return re.findall(r"^```(?:python|yaml)\n# ((?:\w+)/\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


PAGE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
FILES = [(name, content) for name, content in files_of(PAGE) if name.startswith(("birds/", "conf/"))]
OWN_TASKS = (ROOT / "docs/own-tasks.md").read_text(encoding="utf-8")
TAGGER = ROOT / "tests/kind"  # the folder of the package
WINES = {"cheap": 4, "simple": 6, "good": 12, "fine": 20, "great": 35, "rare": 80}
TOPICS = {"economy": "bank", "politics": "minister", "sport": "goal"}
COMMANDS = re.findall(r"^firstlight train (task=birds .*)$", PAGE, re.MULTILINE)
SHORT = ("trainer.max_epochs=2", "trainer.log_every_n_steps=1", "threads=1", "trainer=cpu")
NO_FIGURE = "++callbacks.confusion_matrix=null"  # which takes half of the time


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    """A new project with the files of the page."""
    folder = tmp_path_factory.mktemp("extending")
    with pytest.MonkeyPatch.context() as patch, captured():
        patch.chdir(folder)
        for name in [name for name in sys.modules if name.partition(".")[0] == "birds"]:
            del sys.modules[name]  # for all tests of this file, because it is the package of another project
        patch.setattr("sys.argv", ["firstlight", "birds"])
        new.main()
    for name, content in FILES:
        path = folder / "birds" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return Scripts(folder / "birds")


def test_the_page_shows_a_loss_an_attention_a_metric_data_and_an_optimizer() -> None:
    names = {name for name, _ in FILES}
    assert {f"birds/{name}.py" for name in ("losses", "attention", "metrics", "optimizers")} <= names
    assert {"conf/task/birds.yaml", "conf/optimizer/lion.yaml"} <= names
    assert len(COMMANDS) == 5


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_trains(project: Scripts, command: str) -> None:
    done = project.run("train", *command.split(), *SHORT, NO_FIGURE)
    assert done.returncode == 0, done.stderr
    run = project.newest_run()
    measured = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["metrics"]
    assert {"val/loss", "test/loss"} <= set(measured)
    for name in re.findall(r"callbacks\.(\w+)\._target_", command):
        assert {f"val/{name}", f"test/{name}"} <= set(measured)
        assert f"train/{name}" in (run / "history.jsonl").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def own_tasks(tmp_path_factory: pytest.TempPathFactory) -> Scripts:
    """A folder with the package `scores` of the page, and data for both of its tasks."""
    folder = tmp_path_factory.mktemp("own_tasks")
    own = [(name, content) for name, content in files_of(OWN_TASKS) if not name.startswith("tagging/")]
    for name, content in [*own, ("scores/__init__.py", "")]:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    draw, rows = random.Random(3), {"wines": [("text", "price")], "news": [("text", "topics")]}
    for _ in range(240):
        rest = draw.choices(("red", "with", "oak", "and", "a"), k=5)
        wine, topics = draw.choice(list(WINES)), draw.sample(list(TOPICS), draw.choice((0, 1, 2)))
        rows["wines"].append((" ".join([*rest, wine]), f"{WINES[wine] * draw.uniform(0.9, 1.1):.2f}"))
        rows["news"].append((" ".join([*rest, *map(TOPICS.__getitem__, topics)]), "|".join(topics)))
    (folder / "data").mkdir()
    for name, lines in rows.items():
        with (folder / "data" / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(lines)
    return Scripts(folder)


@pytest.mark.parametrize("task", ["price", "topics"])
def test_a_number_and_several_labels_are_learned_evaluated_and_predicted(task: str, own_tasks: Scripts) -> None:
    typed = re.search(rf"^firstlight train (task={task} .*)$", OWN_TASKS, re.MULTILINE)
    few = [] if task == "price" else ["min_steps=350"]  # a third of those of the page
    done = own_tasks.run_alone("train", *typed[1].split(), *few, "trainer.accelerator=cpu", "threads=1", "quiet=true")
    assert done.returncode == 0, done.stderr
    run = own_tasks.newest_run()
    metrics = json.loads((run / "metrics.json").read_text())["metrics"]
    assert own_tasks.run_alone("evaluate", str(run)).returncode == 0
    measured = json.loads((run / "evaluate/test/metrics.json").read_text())["metrics"]
    assert measured == {name: pytest.approx(metrics[name], rel=1e-4) for name in measured}
    file = f"data/{'wines' if task == 'price' else 'news'}.csv"
    assert own_tasks.run_alone("predict", str(run), "--input", file, "--output", "out.csv").returncode == 0
    with (own_tasks.folder / "out.csv").open(newline="") as opened:
        rows = list(csv.DictReader(opened))
    if task == "price":
        errors = [abs(float(row["price"]) - float(row["given_price"])) for row in rows]
        assert metrics["test/mean_absolute_error"] < 8
        assert sum(errors) / len(errors) < 8, "predictions are in the unit of the column"
    else:
        hits = [(float(row[name]) > 0.5) == (name in row["topics"].split("|")) for row in rows for name in TOPICS]
        assert metrics["test/f1"] > 0.8
        assert sum(hits) / len(hits) > 0.8
        assert own_tasks.run_alone("explore", str(run), "--figures", "lengths", "curves").returncode == 0


def test_the_doctor_examines_other_targets_and_no_loss_is_expected(own_tasks: Scripts) -> None:
    typed = ("task=price", "data.path=data/wines.csv", "trainer.accelerator=cpu", "threads=1")
    done = own_tasks.run_alone("train", "--doctor", *typed)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {name: mark for mark, name in re.findall(r"^(ok|-|FAIL) +(\w+)", done.stdout, re.MULTILINE)}
    assert [name for name, mark in found.items() if mark == "-"] == ["loss", "future", "cache"]
    assert {"gradients", "batch", "padding", "memorizing", "length"} <= found.keys()
    assert "expected at initialization" not in done.stdout


def test_what_a_package_does_not_have_is_one_line(own_tasks: Scripts) -> None:
    run = own_tasks.newest_run()
    for typed, message in (
        (["playground", str(run)], f"{run}: the package scores has no panel.py; write one, or name another run"),
        (["train", "task=price", f"teacher={run}"], "Scoring computes its loss without a teacher"),
        (["train", "task=price", "data.target_column=text"], "column text: could not convert string to float"),
    ):
        done = own_tasks.run_alone(*typed)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert message in done.stderr


def test_the_page_shows_the_files_of_the_tagger() -> None:
    shown = {name: content for name, content in files_of(OWN_TASKS) if name.startswith("tagging/")}
    assert {"tagging/data.py", "tagging/module.py"} <= shown.keys()
    assert shown == {name: (TAGGER / name).read_text(encoding="utf-8") for name in shown}
