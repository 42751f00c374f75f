"""A generator of the reviews' words becomes a classifier of reviews."""

import json
from pathlib import Path

import pytest
import torch

import firstlight
from tests_support import Scripts

QUICK = ["model=tiny", "context_length=23", "trainer.max_steps=5", "trainer.val_check_interval=1.0"]


@pytest.fixture(scope="module")
def read_reviews(tmp_path_factory: pytest.TempPathFactory, reviews_folder: Path) -> Path:
    """A run of task=review_text on the small data set."""
    scripts = Scripts(tmp_path_factory.mktemp("read"))
    return scripts.train("task=review_text", f"data.path={reviews_folder}", *QUICK)


def test_a_classifier_takes_all_of_a_generator_but_its_head(read_reviews, reviews_folder, scripts) -> None:
    done = scripts.succeed(
        *("train", "experiment=finetune/causal", f"init_from={read_reviews}", f"data.path={reviews_folder}"),
        *("optimizer.lr=0", *QUICK),
    )
    (taken,) = [line for line in done.stdout.splitlines() if "weights copied" in line]
    assert taken.endswith("not copied: network.head.outputs.weight, network.head.outputs.bias")
    (words,) = [line for line in done.stdout.splitlines() if "init_from: the other run has" in line]
    known, _, total = words.removeprefix("init_from: the other run has ").partition(" words")[0].partition(" of ")
    assert known == total  # the vocabulary is the same
    states = [
        torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
        for run in (read_reviews, scripts.newest_run())
    ]
    for name, weight in states[1].items():
        if not name.startswith("network.head"):
            assert torch.equal(weight, states[0][name]), name


def test_a_classifier_of_pairs_starts_from_a_generator_of_single_texts(read_reviews, reviews_folder, scripts) -> None:
    texts = [json.loads(line)["text"] for line in (reviews_folder / "train.jsonl").read_text().splitlines()]
    rows = [{"a": texts[i], "b": texts[i + 1], "label": "yes" if i % 3 else "no"} for i in range(0, 300, 2)]
    (scripts.folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run = scripts.train(
        *("experiment=finetune/causal", "task=reviews", "data.path=pairs.jsonl", "data.text_column=[a,b]"),
        *(f"init_from={read_reviews}", "optimizer.lr=0", "test=false", "++callbacks.confusion_matrix=null", *QUICK),
    )
    before, after = (firstlight.load(each) for each in (read_reviews, run))
    blocks = [each.network.blocks.state_dict() for each in (before, after)]
    assert all(torch.equal(weight, blocks[1][name]) for name, weight in blocks[0].items())
    for word in after.tokenizer.words[5:50]:
        vectors = (each.network.embedding.weight[each.tokenizer.words.index(word)] for each in (before, after))
        assert torch.equal(next(vectors), next(vectors))
    assert after.predict((texts[0], texts[1])).label in ("yes", "no")


@pytest.mark.parametrize("experiment", ["finetune/entailment_causal", "finetune/similarity"])
def test_a_causal_classifier_of_pairs_takes_all_of_a_generator_but_its_head(
    read_reviews: Path, scripts: Scripts, sample_cache: str, experiment: str
) -> None:
    run = scripts.train(
        *(f"experiment={experiment}", f"init_from={read_reviews}", "module.text_loss_weight=0.5", sample_cache),
        *("++callbacks.confusion_matrix=null", "test=false", "trainer.limit_val_batches=2", *QUICK),
    )
    log = (run / "train.log").read_text()
    assert "not copied: network.head.outputs.weight, network.head.outputs.bias\n" in log
    assert firstlight.load(run).config["model"]["causal"]


def test_the_generator_of_reviews_writes_words_of_its_vocabulary(read_reviews: Path, scripts: Scripts) -> None:
    done = scripts.succeed("generate", str(read_reviews), "--prompt", "the pump", "--tokens", "7", "--seed", "1")
    assert done.stdout.startswith("the pump ")
    vocabulary = set((read_reviews / "vocabulary.txt").read_text().split())
    assert set(done.stdout.split()[2:]) <= vocabulary - {"[UNK]"}
