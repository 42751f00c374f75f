"""A sweep or a search with damaged files is continued by the same command, or gives a one-line error."""

import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest

from faults.conftest import TrainingOf
from faults.damage import Damage, answered, damages, is_refused
from faults.trials import Trials
from firstlight.sweeps.study import Study
from tests_support import Scripts, records

DAMAGES = 12  # trials for each file
STUDIES = 150  # trials of a study without its runs, each of which takes 0.1 s


def commands(training: list[str]) -> dict[str, list[str]]:
    """Return the commands of a sweep of two jobs and a search of two trials, with two steps each."""
    short = [*training, "trainer.max_steps=2", "trainer.limit_val_batches=1"]
    search = ["hparams_search=optuna", "hydra.sweeper.n_trials=2", "optimizer.lr=interval(0.001,0.1)"]
    return {"sweep": [*short, "seed=1,2", "sweep.name=sweep"], "search": [*short, *search, "sweep.name=search"]}


@pytest.mark.faults("damaged bytes: sweeps and searches")
@pytest.mark.parametrize("kind", ["sweep", "search"])
def test_a_damaged_sweep_goes_on_or_is_refused(kind: str, trials: Trials, training: TrainingOf, tmp_path: Path) -> None:
    command = commands(training("sentiment"))[kind]
    scripts = Scripts(tmp_path)
    scripts.succeed("train", "-m", *command)
    sweep = tmp_path / "logs" / "sweeps" / kind
    job = min(path.parent for path in sweep.glob("*/metrics.json"))
    files = [job / "metrics.json", job / "history.jsonl", sweep / "multirun.yaml"]
    files += [sweep / "study.journal", sweep / "best.json"] if kind == "search" else []
    kept = shutil.copytree(sweep, tmp_path / "kept")

    def check(file: Path, damage: Damage) -> None:
        shutil.rmtree(sweep)
        shutil.copytree(kept, sweep)
        file.write_bytes(damage.apply(file.read_bytes()))
        if not is_refused(scripts.run("train", "-m", *command)):
            assert [record["status"] for record in records(sweep).values()] == ["finished"] * 2

    for file in files:
        trials.examples(damages("value"), partial(check, file), DAMAGES, f"{kind} {file.relative_to(sweep)}")


@pytest.mark.faults("damaged bytes: sweeps and searches")
def test_a_damaged_study_is_read_or_refused(trials: Trials, tmp_path: Path) -> None:
    space: Any = SimpleNamespace(
        folder=tmp_path,
        goals={"val/loss": "minimize"},
        seeds=[1],
        folds=[],
        distributions={"optimizer.lr": optuna.distributions.FloatDistribution(0.001, 0.1)},
    )

    def read() -> None:
        study = Study(space, lambda added: optuna.samplers.RandomSampler(seed=added), None)
        values = {trial.number: study.values(trial.number) for trial in study.trials()}
        for numbers in study.batches(2, 1):
            for number in numbers:
                values[number] = study.values(number)
                study.study.tell(number, 0.5)
        assert {trial.number for trial in study.best()} <= values.keys()

    read()
    whole = (tmp_path / "study.journal").read_bytes()

    def check(damage: Damage) -> None:
        for file in tmp_path.iterdir():  # also the lock of the journal
            file.unlink()
        (tmp_path / "study.journal").write_bytes(damage.apply(whole))
        answered(read)

    trials.examples(damages(), check, STUDIES, "study.journal")
