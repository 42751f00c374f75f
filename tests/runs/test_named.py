"""Which run `latest` and `best` name, for each command."""

import json
import math
import os
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from firstlight.errors import UserError
from firstlight.kind.load import run_for
from firstlight.kind.registry import KINDS
from firstlight.runs.folder import all_runs, lower_is_better
from firstlight.runs.named import find_run, find_runs, is_checkpoint
from run_folders import make_run

KIND_OF = {"stars": "classifier", "names": "generator", "shakespeare": "generator", "translation": "translator"}


def add(log_dir: Path, name: str, task: str, *, age: int, **metrics: Any) -> Path:
    """Make a run of a task with a checkpoint and a configuration; age: in seconds; metrics: of validation."""
    metrics = {f"val/{key}": value for key, value in metrics.items()}
    run = make_run(log_dir, f"{task}/runs/{name}", task=task, metrics=metrics)
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / "last.ckpt").touch()
    model = {field.name: None for field in fields(KINDS[KIND_OF[task]].model)}
    (run / "config.yaml").write_text(yaml.dump({"model": model}))
    os.utime(run / "metrics.json", (1_000_000 - age, 1_000_000 - age))
    return run


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Runs of four tasks; the classifier's is the newest."""
    runs = [("now", "stars", 0.9), ("new", "shakespeare", 1.75), ("two", "names", 2.25), ("one", "names", 2.125)]
    for age, (name, task, loss) in enumerate([*runs, ("old", "translation", 3.5)]):
        add(tmp_path / "logs", name, task, age=age, loss=loss)
    return tmp_path / "logs"


@pytest.mark.parametrize(
    ("command", "name", "run"),
    [
        ("evaluate", "latest", "stars/runs/now"),
        ("generate", "latest", "shakespeare/runs/new"),
        ("predict", "latest", "stars/runs/now"),
        ("evaluate", "latest:names", "names/runs/two"),
        ("generate", "best:val/loss:names", "names/runs/one"),
        ("predict", "latest:translation", "translation/runs/old"),
    ],
)
def test_a_command_finds_the_run_that_it_can_use(command, name, run, logs, capsys) -> None:
    assert run_for(command, name, logs).path == logs / run
    task = run.partition("/")[0]
    assert capsys.readouterr().err == f"note: {name} is {logs / run} (task={task})\n"


@pytest.mark.parametrize(
    ("command", "name", "message"),
    [
        ("generate", "latest:strs", "no trained run of a generator {below} has task=strs; there are runs of names"),
        ("generate", "latest:stars", "{logs}/stars/runs/now is a classifier; use `"),
        ("evaluate", "latest:stras", "no trained run {below} has task=stras; there are runs of names, shakespeare, "),
        ("generate", "best:val/loss", "runs of 2 tasks have this metric; write best:val/loss:names or "),
        ("evaluate", "best:val/loss:stras", "no trained run {below} has task=stras; there are runs of names, "),
        ("generate", "best:val/los:names", "no trained run of a generator {below} has this metric; there are val/"),
        ("evaluate", "latest:", "no trained run {below} has task=; there are runs of names, "),
        ("evaluate", "best:val/loss:", "no trained run {below} has task=; there are runs of names, "),
        ("evaluate", "lastest", "the run folder does not exist; did you mean latest?"),
        ("evaluate", "names", "the run folder does not exist; name an existing one, `latest`, `latest:<task>`, "),
    ],
)
def test_a_name_without_a_run_says_what_to_write(command: str, name: str, message: str, logs: Path) -> None:
    with pytest.raises(UserError) as caught:
        run_for(command, name, logs)
    assert str(caught.value).startswith(f"{name}: {message.format(below=f'below {logs}', logs=logs)}")


def test_a_task_of_one_run_needs_no_name_for_the_best(logs: Path) -> None:
    add(logs, "good", "translation", age=9, loss=0.25)
    assert run_for("predict", "best:val/loss:translation", logs).path.name == "good"
    for run in (logs / "stars", logs / "shakespeare", logs / "names"):
        run.rename(logs.parent / run.name)
    assert find_run("best:val/loss", logs).path.name == "good"


def test_best_is_the_lowest_loss_and_the_highest_accuracy(tmp_path: Path) -> None:
    first = add(tmp_path, "a", "stars", age=1, loss=0.3, accuracy=0.7)
    second = add(tmp_path, "b", "stars", age=2, loss=0.5, accuracy=0.9)
    assert find_run("best:val/loss", tmp_path).path == first
    assert find_run("best:val/accuracy", tmp_path).path == second
    assert lower_is_better("test/mean_absolute_error")


@pytest.mark.parametrize("value", ["low", [1], True, math.nan, math.inf])
def test_a_metric_that_is_not_a_number_is_ignored_with_a_warning(value, tmp_path, caplog) -> None:
    odd = add(tmp_path, "a", "stars", age=1, loss=value)
    good = add(tmp_path, "b", "stars", age=2, loss=0.5)
    (add(tmp_path, "c", "stars", age=3) / "metrics.json").write_text('{"metrics": [1]}')
    assert find_run("best:val/loss", tmp_path).path == good
    assert f"best:val/loss ignores {odd}: the value {value!r} is not a finite number" in caplog.messages
    assert any("it is not an object with metrics" in message for message in caplog.messages)


def test_a_pruned_trial_is_not_the_best_run(logs: Path) -> None:
    record = json.loads((logs / "names/runs/one/metrics.json").read_text())
    (logs / "names/runs/one/metrics.json").write_text(json.dumps(record | {"status": "pruned"}))
    assert find_run("best:val/loss:names", logs).path.name == "two"


def test_a_run_on_generated_data_is_best_only_where_no_other_is(logs: Path, caplog: pytest.LogCaptureFixture) -> None:
    def set_source(run: str, source: str) -> None:
        file = logs / "names/runs" / run / "metrics.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"data": {"source": source}}))

    set_source("one", "sample")
    set_source("two", "local")
    assert find_run("best:val/loss:names", logs).path.name == "two"
    assert "best:val/loss:names ignores 1 run on generated data" in caplog.text
    set_source("two", "sample")
    assert find_run("best:val/loss:names", logs).path.name == "one"


@pytest.mark.parametrize(
    ("metric", "modes", "best"),
    [
        ("val/loss", ("max", "max", "max"), "two"),
        ("val/score", ("min", "max", "min"), "one"),
        ("val/score", ("min", "min", "min"), "two"),
    ],
)
def test_one_run_does_not_turn_the_direction_of_a_metric_round(metric, modes, best, tmp_path) -> None:
    def optimize(run: Path, mode: str, value: float) -> None:
        record = json.loads((run / "metrics.json").read_text())
        optimized = {"optimized_metric": metric, "optimized_mode": mode, "metrics": {metric: value}}
        (run / "metrics.json").write_text(json.dumps(record | optimized))

    for name, mode, value in zip(("one", "two", "three"), modes, (0.9, 0.5, 0.7), strict=True):
        optimize(add(tmp_path / "logs", name, "names", age=1), mode, value)
    optimize(add(tmp_path / "logs", "other", "stars", age=1), "max", 0.1)  # another task has other metrics
    assert find_run(f"best:{metric}:names", tmp_path / "logs").path.name == best


def test_a_damaged_run_hides_no_other(logs: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = add(logs, "broken", "names", age=-5)
    (broken / "metrics.json").write_text("{")
    assert find_run("latest:names", logs).path == logs / "names/runs/two"
    assert f"latest:names ignores {broken / 'metrics.json'} is cut short or broken" in caplog.text


def test_the_folder_of_a_sweep_names_its_finished_runs(logs: Path) -> None:
    sweep = logs / "sweeps" / "folds"
    runs = [make_run(sweep, f"fold_{fold}", task="stars") for fold in (2, 0, 1)]
    assert [run.path for run in find_runs(str(sweep), logs)] == sorted(runs)
    assert [run.path for run in find_runs(str(runs[0]), logs)] == [runs[0]]
    assert [run.path for run in find_runs("latest:names", logs)] == [logs / "names/runs/two"]
    make_run(sweep, "fold_3", task="stars", status="interrupted")
    with pytest.raises(UserError, match=r"folds: the run .*fold_3 is interrupted, not finished; finish the sweep"):
        find_runs(str(sweep), logs)
    (logs / "empty").mkdir()
    with pytest.raises(UserError, match="empty: the folder is not a run and holds no runs"):
        find_runs(str(logs / "empty"), logs)


def test_a_hidden_folder_may_be_a_run_unless_it_is_being_removed(logs: Path) -> None:
    for name in (".now", ".now-abcd1234.tmp"):
        shutil.copytree(logs / "stars/runs/now", logs / name)
    hidden = [run.path for run in all_runs(logs) if run.path.name.startswith(".")]
    assert hidden == [logs / ".now"]


def test_latest_is_a_run_that_was_started_by_itself(logs: Path) -> None:
    job = add(logs, "../../sweeps/mine/seed-1", "names", age=-9, loss=0.5)
    (logs / "sweeps/mine/multirun.yaml").touch()
    assert find_run("latest", logs).path == logs / "stars/runs/now"
    assert find_run("latest:names", logs).path == logs / "names/runs/two"
    for name in ("latest-sweep", "latest-sweep:names", "best:val/loss:names"):
        assert find_run(name, logs).path.resolve() == job.resolve()
    with pytest.raises(UserError, match=r"latest-sweep:stars: no .* has task=stars in a sweep; there are runs of na"):
        find_run("latest-sweep:stars", logs)
    with pytest.raises(UserError, match=r"latest: no .* outside of sweeps; write latest-sweep for the newest job of"):
        find_run("latest", logs / "sweeps")
    with pytest.raises(UserError, match=r"latest-sweep: no trained run below .* in a sweep; train one, or set"):
        find_run("latest-sweep", logs / "stars")


def test_a_folder_is_a_run_and_no_checkpoint_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.ckpt").mkdir()
    assert not is_checkpoint(tmp_path / "a.ckpt")
    assert is_checkpoint(tmp_path / "best.ckpt")
    assert is_checkpoint(f"{'a' * 5000}.ckpt")
