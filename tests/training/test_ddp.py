"""Two processes on the CPU: one output tree, and the numbers of one process with twice the batch."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from lightning.pytorch.strategies import StrategyRegistry

from firstlight.config.checks import check
from firstlight.config.schema import compose
from tests_support import Scripts, records


@pytest.fixture(scope="module")
def as_one_and_two(tiny_training: list[str]) -> list[str]:
    """A training of which two processes should make what one makes with twice the batch."""
    return [*tiny_training, "task=stars", "dropout=0", "model.token_dropout=0", "data.bucket_by_length=false"]


@pytest.fixture(scope="module")
def by_one(tmp_path_factory: pytest.TempPathFactory, as_one_and_two: list[str]) -> Path:
    """The run of one process."""
    return Scripts(tmp_path_factory.mktemp("one")).train(*as_one_and_two, "data.batch_size=40")


@pytest.mark.parametrize(
    "trainer",
    [
        ["trainer=ddp_sim"],  # two processes by fork
        # The same by two new processes, of which the second imports torch: 5 s
        pytest.param(["trainer.devices=2", "trainer.strategy=ddp"], marks=pytest.mark.slow),
    ],
)
def test_two_processes_measure_what_one_does_with_twice_the_batch(trainer, scripts, as_one_and_two, by_one) -> None:
    two = ["data.batch_size=20", "hydra.run.dir=two", *trainer, "+logger.trackio.folder=two/trackio"]
    two += ["+logger.trackio._target_=firstlight.runs.trackio_logger.TrackioLogger"]
    done = scripts.run_alone("train", *as_one_and_two, *two, fresh=False)
    assert done.returncode == 0, done.stderr
    runs = (by_one, scripts.folder / "two")
    one, two = (json.loads((run / "metrics.json").read_text()) for run in runs)
    assert two["steps"] == one["steps"] == 30
    assert two["status"] == "finished"
    # The first process counts its own tokens, as many times as there are processes.
    assert two["tokens"] == pytest.approx(one["tokens"], rel=0.03)
    assert two["flops"] / two["tokens"] == pytest.approx(one["flops"] / one["tokens"])
    assert two["tokens_per_second"] > 0
    for name in ("val/loss", "val/accuracy", "val/macro_f1", "val/mean_absolute_error", "test/loss", "test/accuracy"):
        assert two["metrics"][name] == pytest.approx(one["metrics"][name], abs=1e-5), name
    curves = [[json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()] for run in runs]
    losses = [[line["train/loss"] for line in curve if "train/loss" in line] for curve in curves]
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)
    assert len(losses[1]) == 6
    moments = [[(line["step"], line.keys()) for line in curve] for curve in curves]
    assert moments[1] == moments[0]
    with sqlite3.connect(runs[1] / "trackio" / "firstlight.db") as database:
        rows = [
            (run, step, json.loads(row))
            for run, step, row in database.execute("SELECT run_id, step, metrics FROM metrics")
        ]
    assert [(step, row["train/loss"]) for _, step, row in rows if "train/loss" in row] == [
        (line["step"], line["train/loss"]) for line in curves[1] if "train/loss" in line
    ]
    assert len({run for run, _, _ in rows}) == 1
    columns = [next(run.glob("csv/version_0/metrics.csv")).read_text().splitlines()[0] for run in runs]
    assert columns[1] == columns[0]
    assert sorted(path.name for path in scripts.folder.iterdir()) == ["logs", "two"]
    assert sorted(path.name for path in (scripts.folder / "logs").iterdir()) == ["cache"]
    checkpoints = {path.name for path in (scripts.folder / "two" / "checkpoints").iterdir()}
    assert checkpoints == {"best.ckpt", "last.ckpt", "previous.ckpt"}


@pytest.mark.parametrize(
    "chosen",
    [
        ["trainer.devices=2", "hydra/launcher=submitit_slurm", "hydra.launcher.tasks_per_node=2"],
        ["hydra/launcher=slurm", "hydra.launcher.tasks_per_node=4"],  # devices is -1
    ],
)
def test_slurm_starts_the_processes_of_a_sweep_which_would_start_it_again(scripts, tiny_training, chosen) -> None:
    """Without Slurm, that is refused, as in tests/config/mistakes.yaml."""
    done = scripts.succeed("train", "-m", *tiny_training[:-1], "trainer=ddp", *chosen, "seed=1,2", "dry_run=true")
    assert done.stdout.count("planned") == 2


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["hydra.launcher.nodes=2"], "seed=1: hydra.launcher.nodes=2 must equal trainer.num_nodes=1"),
        (["hydra.launcher.tasks_per_node=2"], "seed=1: hydra.launcher.tasks_per_node=2 must equal trainer.devices=1"),
        (["trainer=ddp", "trainer.devices=2"], "seed=1: hydra.launcher.tasks_per_node=1 must equal trainer.devices=2"),
    ],
)
def test_slurm_starts_as_many_processes_as_a_training_has(scripts, tiny_training, overrides, message) -> None:
    sweep = ["-m", *tiny_training[:-1], "hydra/launcher=slurm", "seed=1,2", "dry_run=true"]
    assert scripts.refuse("train", *sweep, *overrides).startswith(f"error: {message}")


def test_several_machines_may_train_together() -> None:
    overrides = ["trainer=ddp", "trainer.num_nodes=2", "trainer.precision=bf16-mixed"]
    overrides += ["trainer.accumulate_grad_batches=2", "task=names"]
    config = compose(overrides)
    check(config)
    names = ("accelerator", "devices", "num_nodes", "precision", "strategy", "accumulate_grad_batches")
    assert [config.trainer[name] for name in names] == ["gpu", -1, 2, "bf16-mixed", "ddp", 2]
    for group in ("ddp", "ddp_sim"):
        assert compose([f"trainer={group}"]).trainer.strategy in StrategyRegistry.available_strategies()


@pytest.mark.slow  # submitit waits 10 s; test_launchers.py tests the launchers without it
def test_submitit_runs_a_job(scripts: Scripts, tiny_training: list[str]) -> None:
    quick = ["logger=none", "trainer.max_steps=2", "sweep.name=mine", "hydra/launcher=submitit_local"]
    done = scripts.run_alone("train", "-m", *tiny_training, *quick, "seed=3")
    assert done.returncode == 0, done.stderr
    folder = scripts.folder / "logs" / "sweeps" / "mine"
    ((name, record),) = records(folder).items()
    assert (name, record["status"], record["steps"], record["seed"]) == ("job", "finished", 2, 3)
    assert list((folder / ".submitit").glob("*/*_log.out"))
    assert "1 jobs: 1 finished, 0 failed, 0 to go" in done.stdout + done.stderr


@pytest.mark.slow  # two processes; a classifier is compared in make test
def test_two_processes_translate_as_one_does_with_twice_the_batch(scripts: Scripts) -> None:
    """Where each batch holds sentences of one length, in even numbers: else the processes' means weigh differently."""
    rng = np.random.default_rng(0)
    words = {"dog": "Hund", "cat": "Katze", "horse": "Pferd", "house": "Haus", "tree": "Baum"}
    (scripts.folder / "pairs").mkdir()
    for split, counts in {
        "train": {3: 12 * 8, 5: 8 * 11, 7: 6 * 13},  # words of a sentence, whose end is one more: 48 tokens a batch
        "validation": {2: 7, 5: 9, 7: 7},
        "test": {3: 1, 4: 12},
    }.items():
        sides: dict[str, list[str]] = {"en": [], "de": []}
        for length, count in counts.items():
            for sentence in rng.choice([*words], (count, length)):
                sides["en"].append(" ".join(sentence))
                sides["de"].append(" ".join(words[word] for word in sentence[::-1]))
        for ending, lines in sides.items():
            (scripts.folder / "pairs" / f"{split}.{ending}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    common = ["task=translation", "data.path=pairs", "tokenizer=word", "model=tiny", "dropout=0", "context_length=11"]
    common += ["data.evaluation_batch_size=11", "optimizer.lr=0.01", "schedule.warmup_steps=5", "trainer.max_epochs=3"]
    common += ["trainer.log_every_n_steps=5", "trainer.accelerator=cpu", "trainer.precision=64-true"]
    one = scripts.run_alone("train", *common, "data.batch_tokens=48", "hydra.run.dir=one")
    assert one.returncode == 0, one.stderr
    two = scripts.run_alone(
        *("train", *common, "data.batch_tokens=24", "hydra.run.dir=two"), *("trainer.devices=2", "trainer.strategy=ddp")
    )
    assert two.returncode == 0, two.stderr
    records = [json.loads((scripts.folder / run / "metrics.json").read_text()) for run in ("one", "two")]
    assert records[1]["steps"] == records[0]["steps"] == 3 * (8 + 11 + 13)
    for split in ("val", "test"):
        for name in ("loss", "perplexity", "accuracy", "bleu", "chrf", "bleu_beam4", "chrf_beam4"):
            metric = f"{split}/{name}"
            assert records[1]["metrics"][metric] == pytest.approx(records[0]["metrics"][metric], rel=1e-6), metric
    assert 1 < records[0]["metrics"]["val/bleu"] < 100
    # Every sentence has been translated once, an odd number by two processes: as by one that only evaluates.
    scripts.succeed("evaluate", "two", "--split", "validation")
    found = json.loads((scripts.folder / "two" / "evaluate" / "validation" / "metrics.json").read_text())
    assert found["rows"] == 23
    for name, value in found["metrics"].items():
        assert records[1]["metrics"][name.replace("validation", "val")] == pytest.approx(value, rel=1e-5), name
    assert len(list((scripts.folder / "two" / "samples").iterdir())) == 4  # the test's too
