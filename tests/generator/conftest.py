"""Generators that the tests of writing and of evaluating share. They are trained once, and each file copies them."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests_support import Scripts

SIZES = [
    "model=tiny",
    "model.num_layers=1",
    "context_length=13",
    "data.batch_size=17",
    "data.evaluation_batch_size=5",
    "trainer.accelerator=cpu",
    "callbacks.text_samples.num_tokens=7",
]
TEXT = ["task=text", "data.path=text.txt", "trainer.max_epochs=1"]
RUNS = {
    "text": [*TEXT, "data.test_fraction=0.1"],
    "pairs": [*TEXT, "tokenizer=subword", "tokenizer.max_size=293"],
    "words": [*TEXT, "tokenizer=word", "tokenizer.min_document_frequency=1"],
    "names": ["task=names", "data.path=names.txt", "trainer.max_epochs=7"],
}
SYLLABLES = ["ka", "lo", "mi", "né", "ru", "sö", "t€", "va"]


def made_up_words(count: int) -> list[str]:
    chosen = random.Random(0)
    return ["".join(chosen.choices(SYLLABLES, k=chosen.randint(1, 3))) for _ in range(count)]


def train_generators(folder: Path) -> None:
    words, scripts = made_up_words(53), Scripts(folder)
    passages = (" ".join(words[i : i + 7]) + ".\n\n" for _ in range(7) for i in range(0, 49, 3))
    (folder / "text.txt").write_text("".join(passages), encoding="utf-8")
    (folder / "names.txt").write_text("\n".join(made_up_words(211)), encoding="utf-8")
    for name, arguments in RUNS.items():
        shutil.copytree(scripts.train(*SIZES, *arguments), folder / "runs" / name)
    shutil.rmtree(folder / "logs")


@pytest.fixture(scope="session")
def generators(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """Return a folder with two texts, and with a run for each entry of RUNS in `runs`. Tests only read it."""
    return made_once("generators", train_generators)
