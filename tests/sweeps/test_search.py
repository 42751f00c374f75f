"""A search chooses each trial by the earlier ones. A continued search makes the trials of an uninterrupted one."""

import contextlib
import json
import shutil
import signal
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages.journal._storage import JournalOperation

from firstlight.errors import UserError
from firstlight.lab.reports import importance
from firstlight.lab.reports.importance import importances
from firstlight.runs.predictions import read_predictions
from firstlight.runs.trials import readable, storage_of
from firstlight.sweeps import search
from firstlight.sweeps.study import Study, distribution
from tests_support import Done, Scripts, records, wait_until

SPACE = [
    "optimizer.lr=tag(log, interval(1e-3, 1e-1))",
    "model.num_layers=range(1, 4)",
    "schedule.warmup_steps=int(interval(3, 11))",
    "data.bucket_by_length=true,false",
]  # and dropout, by conf/hparams_search/optuna.yaml


@pytest.fixture(scope="module")
def command(tiny_training: list[str]) -> list[str]:
    """A search by TPE from its third trial on; without the number of trials."""
    sampler = ["hparams_search=optuna", "hydra.sweeper.sampler.n_startup_trials=2"]
    often = "callbacks.checkpoint.every_n_train_steps=10"
    return [*tiny_training, "logger=none", *sampler, often, "optimized_metric=val/loss", "sweep.name=mine", *SPACE]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, command: list[str]) -> Scripts:
    """The folder of an uninterrupted search of three trials."""
    scripts = Scripts(tmp_path_factory.mktemp("whole"))
    scripts.succeed("train", *command, "hydra.sweeper.n_trials=3")
    return scripts


def logs_of(folder: Path) -> list[str]:
    return [file.read_text() for file in sorted(folder.glob("*/train.log"))]


def folder_of(scripts: Scripts) -> Path:
    return scripts.folder / "logs" / "sweeps" / "mine"


def study_in(scripts: Scripts) -> optuna.Study:
    return optuna.load_study(storage=storage_of(folder_of(scripts) / "study.journal"), study_name=None)


def values_of(record: dict[str, Any]) -> dict[str, str]:
    """Return the overrides of a trial by their keys."""
    return dict(override.split("=", 1) for override in record["overrides"])


def tried(scripts: Scripts) -> dict[str, Any]:
    """Return the values and the metrics of every trial."""
    return {name: (values_of(record), record["metrics"]) for name, record in records(folder_of(scripts)).items()}


def said(done: Done) -> str:
    return done.stdout + done.stderr


def test_every_trial_is_drawn_from_the_space(whole: Scripts) -> None:
    found = records(folder_of(whole))
    assert list(found) == ["trial-0000", "trial-0001", "trial-0002"]
    values = [values_of(record) for record in found.values()]
    for each in values:
        assert 1e-3 <= float(each["optimizer.lr"]) <= 1e-1
        assert 0 <= float(each["dropout"]) <= 0.5
        assert each["model.num_layers"] in ("1", "2", "3")
        assert each["schedule.warmup_steps"] in map(str, range(3, 12))
        assert each["data.bucket_by_length"] in ("True", "False")
    assert len({each["optimizer.lr"] for each in values}) == len({each["dropout"] for each in values}) == 3
    assert not any(name.startswith("test/") for record in found.values() for name in record["metrics"])


def test_the_best_trial_is_the_one_of_the_lowest_loss(whole: Scripts) -> None:
    found = records(folder_of(whole))
    name = min(found, key=lambda name: found[name]["metrics"]["val/loss"])
    best = json.loads((folder_of(whole) / "best.json").read_text())
    loss = found[name]["metrics"]["val/loss"]
    assert (best["metric"], best["value"], best["run"]) == ("val/loss", loss, f"logs/sweeps/mine/{name}")
    assert {key: str(value) for key, value in best["values"].items()}.items() <= values_of(found[name]).items()


def test_a_finished_search_asks_no_cluster(whole: Scripts, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # without Slurm
    before = tried(whole)
    on_slurm = [*command, "hydra/launcher=slurm"]
    whole.succeed("train", *on_slurm, "hydra.sweeper.n_trials=3")
    for other in ("hydra.sweeper.n_trials=4", "sweep.name=new"):
        more = whole.refuse("train", *on_slurm, other)
        assert more.startswith("error: hydra/launcher=slurm: sinfo is not installed here")
    assert tried(whole) == before
    assert not (folder_of(whole).parent / "new").exists()


@pytest.mark.slow  # 5 s; test_sweep.py interrupts and continues a sweep
def test_a_killed_search_continues_as_if_it_had_not_been_killed(scripts, command, whole) -> None:
    folder = folder_of(scripts)
    process = scripts.start("train", *command, "hydra.sweeper.n_trials=2")
    wait_until((folder / "trial-0001" / "checkpoints" / "last.ckpt").exists, process)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=120)
    killed = records(folder)
    assert [record["status"] for record in killed.values()] == ["finished", "running"]
    scripts.succeed("train", *command, "hydra.sweeper.n_trials=2")
    assert "Resumed at step" in (folder / "trial-0001" / "train.log").read_text()
    two = records(folder)
    assert two["trial-0000"] == killed["trial-0000"]
    assert [record["status"] for record in two.values()] == ["finished", "finished"]

    scripts.succeed("train", *command, "hydra.sweeper.n_trials=3")
    three = records(folder)
    assert {name: three[name] for name in two} == two
    assert tried(scripts) == tried(whole)


def test_a_trial_that_ended_before_the_search_stored_it_does_not_run_again(scripts, command, whole) -> None:
    shutil.copytree(whole.folder, scripts.folder, dirs_exist_ok=True)
    before, logs = records(folder_of(scripts)), logs_of(folder_of(scripts))
    (folder_of(scripts) / "best.json").unlink()
    path = folder_of(scripts) / "study.journal"
    content = path.read_text()
    told = content.rindex(f'{{"op_code":{JournalOperation.SET_TRIAL_STATE_VALUES:d},')
    assert '"trial_id":2,"state":1,' in content[told:].splitlines()[0]
    path.write_text(content[: told + 20])  # the computer crashed while it wrote the line
    scripts.succeed("train", *command, "hydra.sweeper.n_trials=3")
    assert logs_of(folder_of(scripts)) == logs, "no job runs again"
    assert records(folder_of(scripts)) == before
    assert study_in(scripts).trials[2].value == before["trial-0002"]["metrics"]["val/loss"]
    assert (folder_of(scripts) / "best.json").read_text() == (folder_of(whole) / "best.json").read_text()


@pytest.mark.slow  # 2 s; test_sweep.py tests a job that fails
def test_a_trial_whose_values_contradict_each_other_fails_and_the_search_continues(scripts, tiny_training) -> None:
    search = [*tiny_training, "trainer.max_steps=2", "logger=none", "sweep.name=mine", "hparams_search=optuna"]
    search += ["hydra.sweeper.n_trials=2", "model.num_heads=1,3"]
    done = scripts.run("train", *search)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "model.dim=16 is not divisible by model.num_heads=3" in last
    assert last.endswith("failed trials are not tried again; raise hydra.sweeper.n_trials to try more values")
    assert "Traceback" not in done.stdout + done.stderr
    found = records(folder_of(scripts))
    assert [record["status"] for record in found.values()] == ["finished"]
    again = scripts.succeed("train", *search)
    assert "2 jobs: 1 finished, 1 failed, 0 to go" in said(again)
    assert records(folder_of(scripts)) == found


def studied(effect: float, seed: int) -> optuna.Study:
    """Return a search of 20 trials with three keys, of which one may have an effect."""
    draw, made, space = np.random.default_rng(seed), optuna.create_study(), FloatDistribution(0, 1)
    for _ in range(20):
        values = dict(zip("abc", draw.uniform(size=3).tolist(), strict=True))
        result = effect * (values["b"] - 0.3) ** 2 + draw.normal(0, 0.05)
        distributions = dict.fromkeys(values, space)
        made.add_trial(optuna.trial.create_trial(params=values, distributions=distributions, value=result))
    return made


def test_the_key_with_an_effect_is_the_most_important_and_without_one_none_is(monkeypatch) -> None:
    monkeypatch.setattr(importance, "SHUFFLES", 39)
    shares, p = importances(studied(3.0, seed=1))
    assert (next(iter(shares)), p) == ("b", 1 / 40)
    assert sum(shares.values()) == pytest.approx(1)
    assert sum(importances(studied(0.0, seed))[1] < 0.05 for seed in (1, 2, 3, 4)) <= 1


def test_a_report_of_a_short_search_says_how_many_trials_the_importance_requires(whole: Scripts) -> None:
    printed = whole.succeed("report", str(folder_of(whole))).stdout
    assert "3 trials are finished, and 20 are required to show the importance of the keys." in printed


def test_a_damaged_study_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "study.journal"

    def read() -> None:
        optuna.create_study(storage=storage_of(path), study_name="search", load_if_exists=True)

    read()
    optuna.load_study(storage=storage_of(path), study_name="search").ask()
    with readable(path):
        read()
    whole = path.read_bytes()
    first, *_ = whole.splitlines(keepends=True)
    for damaged in (b"no journal", first[:30] + b"\n" + whole, b"[" * 10_000 + b"\n" + whole, b"{}\n", whole + b"\0"):
        path.write_bytes(damaged)
        message = (
            r"^\S*study.journal cannot be read \(.*\); move the folder of the search, or choose another sweep.name$"
        )
        with pytest.raises(UserError, match=message), readable(path):
            read()
        assert path.read_bytes() == damaged


def test_a_study_whose_lines_are_repeated_is_refused(tmp_path: Path) -> None:
    distributions = {"optimizer.lr": FloatDistribution(0.001, 0.1)}
    goals = {"val/loss": "minimize"}
    space: Any = SimpleNamespace(folder=tmp_path, goals=goals, distributions=distributions, seeds=[1], folds=[])

    def opened() -> Study:
        return Study(space, lambda number: optuna.samplers.RandomSampler(seed=number), None)

    for number in range(2):
        assert opened().ask() == number
    assert len(opened().trials()) == 2
    path = tmp_path / "study.journal"
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(UserError, match=r"lines are repeated.*; move the folder of the search, or choose another"):
        opened()


@pytest.mark.parametrize(
    ("changed", "then", "now"),
    [
        ("dropout=interval(0.0, 0.4)", "dropout=FloatDistribution(high=0.5, ", "dropout=FloatDistribution(high=0.4, "),
        ("optimized_metric=val/accuracy", "optimized_metric=val/loss", "optimized_metric=val/accuracy"),
        pytest.param(
            *("model.num_layers=1", "model.num_layers=IntDistribution(high=3, ", "no model.num_layers"),
            marks=pytest.mark.slow,  # also another space
        ),
    ],
)
def test_another_search_under_the_same_name_is_refused(changed, then, now, whole, command) -> None:
    key = changed.partition("=")[0]
    typed = [*(each for each in command if not each.startswith(f"{key}=")), changed]
    before = tried(whole)
    error = whole.refuse("train", *typed, "hydra.sweeper.n_trials=7")
    assert f"study.journal is a search with {then}" in error
    assert f"and this command has {now}" in error
    assert error.endswith("; choose another sweep.name\n")
    assert tried(whole) == before


def test_a_dry_run_shows_the_space_and_makes_nothing(scripts: Scripts, command: list[str]) -> None:
    done = scripts.succeed("train", *command, "hydra.sweeper.n_trials=7", "dry_run=true")
    lines = done.stdout.splitlines()
    assert "7 trials in logs/sweeps/mine, for the best val/loss; dry_run=true runs none" in lines
    shown = {line.strip().partition(":")[0] for line in lines if "Distribution(" in line}
    assert shown == {"dropout", *(each.partition("=")[0] for each in SPACE)}
    assert not folder_of(scripts).exists()


def test_without_optuna_the_remedy_is_one_line(scripts, command, monkeypatch) -> None:
    monkeypatch.setattr(search, "find_spec", lambda name: None if name == "optuna" else find_spec(name))
    error = scripts.refuse("train", *command)
    assert "hparams_search=optuna needs Optuna: pip install -c constraints.txt -e '.[optuna]'" in error
    assert not folder_of(scripts).exists()


@pytest.mark.slow  # 10 s, since the workers start from nothing; test_launchers.py tests the workers
def test_trials_run_at_the_same_time_in_batches(scripts: Scripts, command: list[str]) -> None:
    at_once = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "hydra.sweeper.n_trials=3", "trainer.max_steps=2"]
    done = scripts.run_alone("train", *command, *at_once, fresh=True)
    assert done.returncode == 0, done.stderr
    assert "3 jobs in logs/sweeps/mine, 2 at a time" in done.stdout.splitlines()
    assert "3 jobs: 3 finished, 0 failed, 0 to go" in said(done)
    first, second, third = study_in(scripts).trials
    ends = first.datetime_complete, second.datetime_complete
    assert max(first.datetime_start, second.datetime_start) < min(ends), "two jobs at a time"
    assert max(ends) < third.datetime_start
    found = records(folder_of(scripts))
    assert len({values_of(record)["optimizer.lr"] for record in found.values()}) == 3
    for name in found:
        assert "The run is in" in (folder_of(scripts) / name / "output.txt").read_text()
    best = json.loads((folder_of(scripts) / "best.json").read_text())
    assert best["value"] == min(record["metrics"]["val/loss"] for record in found.values())


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("interval(0.1, 0.7)", FloatDistribution(0.1, 0.7)),
        ("interval(1, 7)", FloatDistribution(1.0, 7.0)),
        ("int(interval(1, 7))", IntDistribution(1, 7)),
        ("tag(log, interval(1e-4, 1e-1))", FloatDistribution(1e-4, 1e-1, log=True)),
        ("int(tag(log, interval(2, 64)))", IntDistribution(2, 64, log=True)),
        ("range(1, 8)", IntDistribution(1, 7)),
        ("range(1, 8, 3)", IntDistribution(1, 7, step=3)),
        ("range(0.0, 1.0, 0.25)", FloatDistribution(0.0, 0.75, step=0.25)),
        ("tag(log, range(1, 8))", IntDistribution(1, 7, log=True)),
        ("small,tiny", CategoricalDistribution(["small", "tiny"])),
        ("choice(2, 3, 5)", CategoricalDistribution(["2", "3", "5"])),
        ("'a,b',c", CategoricalDistribution(["'a,b'", "c"])),
    ],
)
def test_what_is_typed_is_what_optuna_draws_from(typed: str, expected: Any) -> None:
    assert distribution(OverridesParser.create().parse_override(f"key={typed}")) == expected


def test_a_logarithm_of_steps_is_refused_and_not_left_out() -> None:
    with pytest.raises(UserError, match=r"^key=tag\(log, range\(1, 8, 3\)\): "):
        distribution(OverridesParser.create().parse_override("key=tag(log, range(1, 8, 3))"))


@pytest.mark.parametrize(
    ("values", "is_refused"),
    [
        ({"dropout": 0.25, "model": "tiny"}, False),
        ({"dropout": 0.25, "model": "tiny", "+callbacks.x": "{_target_: os.system, command: touch canary}"}, True),
        ({"dropout": 0.25, "model": "../../elsewhere"}, True),
        ({"dropout": 7.0, "model": "tiny"}, True),
    ],
)
def test_a_study_from_another_person_adds_nothing_to_the_command_line(values: dict[str, Any], is_refused: bool) -> None:
    study = optuna.create_study()
    theirs = {
        key: FloatDistribution(0, 9) if isinstance(value, float) else CategoricalDistribution([value])
        for key, value in values.items()
    }
    study.add_trial(optuna.create_trial(params=values, distributions=theirs, value=1.0))
    ours = {"dropout": FloatDistribution(0, 0.5), "model": CategoricalDistribution(["tiny", "small"])}
    found: Any = SimpleNamespace(
        space=SimpleNamespace(distributions=ours), path=Path("study.journal"), trials=study.get_trials
    )
    with (
        pytest.raises(UserError, match=r"study.journal: trial 0 is not of this search \(.*\); move the file")
        if is_refused
        else contextlib.nullcontext()
    ):
        assert Study.values(found, 0) == values


def test_the_result_of_a_trial_is_the_mean_over_its_seeds_of_which_finished_ones_do_not_run_again(
    scripts, tiny_training
) -> None:
    quick = [*tiny_training, "logger=none", "hparams_search=optuna", "sweep.name=mine", "hydra.sweeper.n_trials=1"]
    quick += ["trainer.max_steps=2", "optimized_metric=val/loss", "seed=7", "hydra/sweeper/pruner=wilcoxon"]
    quick += ["trainer.val_check_interval=1", "trainer.check_val_every_n_epoch=null"]
    done = scripts.succeed("train", *quick, "hydra.sweeper.seeds=2")
    assert "2 jobs: 2 finished, 0 failed, 0 to go" in said(done)
    found = records(folder_of(scripts))
    losses = {name: record["metrics"]["val/loss"] for name, record in found.items()}
    assert {name: record["seed"] for name, record in found.items()} == {"trial-0000_seed-7": 7, "trial-0000_seed-8": 8}
    assert found["trial-0000_seed-7"]["dropout"] == found["trial-0000_seed-8"]["dropout"]
    (trial,) = study_in(scripts).trials
    one, two = losses.values()
    assert one != two
    assert (trial.user_attrs["seed=7"], trial.user_attrs["seed=8"]) == (one, two)
    assert trial.value == pytest.approx((one + two) / 2)
    best = json.loads((folder_of(scripts) / "best.json").read_text())
    assert (best["value"], best["seeds"]) == (trial.value, losses)
    (kept,) = (folder_of(scripts) / "losses").iterdir()  # of the first seed, which the pruner sees
    predictions = read_predictions(kept)
    assert kept.name == "trial-0000_0000.npz"
    assert predictions.losses.mean() == pytest.approx(trial.intermediate_values[0], rel=1e-3)

    path = folder_of(scripts) / "study.journal"  # as if the process had been killed before the second seed
    content = path.read_text()
    path.write_text(content[: content.rindex(f'{{"op_code":{JournalOperation.SET_TRIAL_STATE_VALUES:d},')])
    shutil.rmtree(folder_of(scripts) / "trial-0000_seed-8")
    scripts.succeed("train", *quick, "hydra.sweeper.seeds=2")
    again = records(folder_of(scripts))
    assert again["trial-0000_seed-7"] == found["trial-0000_seed-7"]
    assert again["trial-0000_seed-8"]["metrics"] == found["trial-0000_seed-8"]["metrics"]
    refused = scripts.refuse("train", *quick)
    assert "is a search with hydra.sweeper.seeds=[7, 8], and this command has no hydra.sweeper.seeds" in refused
    assert "requires a single seed=" in scripts.refuse("train", *quick, "hydra.sweeper.seeds=2", "seed=1,2")


def test_the_result_of_a_trial_is_the_mean_over_its_folds(scripts, tiny_training) -> None:
    quick = [*tiny_training, "logger=none", "hparams_search=optuna", "sweep.name=mine", "hydra.sweeper.n_trials=1"]
    scripts.succeed("train", *quick, "trainer.max_steps=2", "optimized_metric=val/loss", "folds=2")
    found = records(folder_of(scripts))
    assert set(found) == {"trial-0000_data.fold-0", "trial-0000_data.fold-1"}
    (trial,) = study_in(scripts).trials
    losses = [found[f"trial-0000_data.fold-{fold}"]["metrics"]["val/loss"] for fold in (0, 1)]
    assert trial.user_attrs == {f"data.fold={fold}": loss for fold, loss in enumerate(losses)}
    assert trial.value == pytest.approx(sum(losses) / 2)
    assert not [key for key in trial.params if "fold" in key]
    refused = scripts.refuse("train", *quick, "trainer.max_steps=2", "optimized_metric=val/loss")
    assert "is a search with data.fold=0,1" in refused


def test_a_trial_that_is_pruned_at_its_first_seed_is_neither_failed_nor_ranked_and_does_not_run_again(
    scripts, tiny_training
) -> None:
    quick = [*tiny_training, "logger=none", "hparams_search=optuna", "sweep.name=mine", "hydra.sweeper.n_trials=1"]
    quick += ["trainer.max_steps=4", "trainer.val_check_interval=2", "trainer.check_val_every_n_epoch=null"]
    pruner = "hydra.sweeper.pruner._target_=optuna.pruners.ThresholdPruner"
    quick += ["optimized_metric=val/loss", pruner, "+hydra.sweeper.pruner.upper=0", "hydra.sweeper.seeds=2"]
    done = scripts.succeed("train", *quick)
    study = study_in(scripts)
    (trial,) = study.trials
    found = records(folder_of(scripts))
    record = found["trial-0000_seed-1"]
    assert (record["status"], record["reason"]) == ("pruned", "pruned at step 2 by ThresholdPruner")
    assert (record["steps"], trial.state.name) == (2, "PRUNED")
    assert study.metric_names == ["val/loss"]
    assert record["metrics"]["val/loss"] == trial.value == trial.intermediate_values[0]
    assert "1 jobs: 0 finished, 1 pruned, 0 failed, 0 to go" in said(done)
    assert not (folder_of(scripts) / "best.json").exists()
    scripts.succeed("train", *quick)
    assert records(folder_of(scripts)) == found


@pytest.mark.slow  # 2.5 s; tests below the command line
def test_several_objectives_have_a_pareto_front(scripts: Scripts, tiny_training: list[str]) -> None:
    quick = [*tiny_training, "logger=none", "hparams_search=optuna", "sweep.name=mine", "hydra.sweeper.n_trials=2"]
    quick += ["trainer.max_steps=2", "model.num_layers=1,2", "optimizer.lr=0.01", "dropout=0"]
    quick += ["hydra/sweeper/sampler=random", "hydra.sweeper.sampler.seed=2"]  # one layer, then two
    several = ["hydra.sweeper.objectives=[parameters,val/loss]", "hydra.sweeper.direction=[maximize,minimize]"]
    done = scripts.succeed("train", *quick, *several)
    found = records(folder_of(scripts))
    values = {name: (each["parameters"], each["metrics"]["val/loss"]) for name, each in found.items()}
    assert values["trial-0001"][0] > values["trial-0000"][0]
    is_beaten = values["trial-0001"][1] <= values["trial-0000"][1]
    front = ["trial-0001"] if is_beaten else ["trial-0001", "trial-0000"]
    best = json.loads((folder_of(scripts) / "best.json").read_text())
    assert best["objectives"] == {"parameters": "maximize", "val/loss": "minimize"}
    assert [Path(trial["run"]).name for trial in best["front"]] == front
    assert [tuple(trial["objectives"].values()) for trial in best["front"]] == [values[name] for name in front]
    assert f"The Pareto front of parameters and val/loss: {len(front)} of 2 trials" in said(done)

    again = scripts.refuse("train", *quick, several[0], "hydra.sweeper.n_trials=3")
    assert "study.journal is a search with hydra.sweeper.direction=[maximize,minimize], and this" in again
