"""Two processes on the CPU: one output tree, and the numbers of one process with twice the batch."""

import json

import numpy as np
import pytest

from firstlight.data.options import Preparation
from firstlight.data.text_sources import sample_text
from tests_support import Scripts


@pytest.mark.slow
def test_two_processes_measure_what_one_does_with_twice_the_batch(scripts: Scripts, tiny_training: list[str]) -> None:
    common = [*tiny_training, "task=stars", "dropout=0", "model.token_dropout=0", "data.bucket_by_length=false"]
    one = scripts.run_alone("train", *common, "data.batch_size=40", "hydra.run.dir=one")
    assert one.returncode == 0, one.stderr
    two = scripts.run_alone(
        *("train", *common, "data.batch_size=20", "hydra.run.dir=two"),
        *("trainer.devices=2", "trainer.strategy=ddp"),
    )
    assert two.returncode == 0, two.stderr
    records = [json.loads((scripts.folder / run / "metrics.json").read_text()) for run in ("one", "two")]
    assert records[1]["steps"] == records[0]["steps"] == 30
    for name in ("val/loss", "val/accuracy", "val/macro_f1", "val/mean_absolute_error", "test/loss", "test/accuracy"):
        assert records[1]["metrics"][name] == pytest.approx(records[0]["metrics"][name], abs=1e-5), name
    curves = [
        [json.loads(line) for line in (scripts.folder / run / "history.jsonl").read_text().splitlines()]
        for run in ("one", "two")
    ]
    losses = [[line["train/loss"] for line in curve if "train/loss" in line] for curve in curves]
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)
    assert sorted(path.name for path in scripts.folder.iterdir()) == ["logs", "one", "two"]


@pytest.mark.slow
@pytest.mark.parametrize("task", ["text", "names"])
def test_two_processes_read_a_text_as_one_does_with_twice_the_batch(task: str, scripts: Scripts) -> None:
    (scripts.folder / "play.txt").write_text(sample_text(Preparation.text)[:40_000], encoding="utf-8")
    (scripts.folder / "names.txt").write_text(
        "\n".join(sample_text(Preparation.lines).split()[:1500]), encoding="utf-8"
    )
    path = {"text": "play.txt", "names": "names.txt"}[task]
    common = [f"task={task}", f"data.path={path}", "dropout=0", "context_length=16", "model.dim=16"]
    common += ["trainer.max_epochs=1", "trainer.log_every_n_steps=5", "trainer.accelerator=cpu"]
    one = scripts.run_alone("train", *common, "data.batch_size=16", "hydra.run.dir=one")
    assert one.returncode == 0, one.stderr
    two = scripts.run_alone(
        *("train", *common, "data.batch_size=8", "hydra.run.dir=two"),
        *("trainer.devices=2", "trainer.strategy=ddp"),
    )
    assert two.returncode == 0, two.stderr
    records = [json.loads((scripts.folder / run / "metrics.json").read_text()) for run in ("one", "two")]
    assert records[1]["steps"] == records[0]["steps"] > 20
    for name in ("val/loss", "val/perplexity", "val/bits_per_character", "val/accuracy", "val/last_position_loss"):
        assert records[1]["metrics"][name] == pytest.approx(records[0]["metrics"][name], rel=1e-5), name
    assert len(list((scripts.folder / "two" / "samples").iterdir())) == 1


@pytest.mark.slow
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
        *("train", *common, "data.batch_tokens=24", "hydra.run.dir=two"),
        *("trainer.devices=2", "trainer.strategy=ddp"),
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
    done = scripts.run("evaluate", "two", "--split", "validation")
    assert done.returncode == 0, done.stderr
    found = json.loads((scripts.folder / "two" / "evaluate" / "validation" / "metrics.json").read_text())
    assert found["rows"] == 23
    for name, value in found["metrics"].items():
        assert records[1]["metrics"][name.replace("validation", "val")] == pytest.approx(value, rel=1e-5), name
    assert len(list((scripts.folder / "two" / "samples").iterdir())) == 4  # the test's too
