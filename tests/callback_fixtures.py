"""Small trainings with a real Trainer, for the tests of the callbacks."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import Checkpoint
from lightning.pytorch.loggers import Logger

from firstlight.callbacks.checkpoint import AtomicCheckpointIO
from firstlight.callbacks.evaluation import EvaluationCallback
from firstlight.classifier.data import ReviewData
from firstlight.classifier.module import Classification
from firstlight.classifier.network import Classifier
from firstlight.classifier.options import ClassifierConfig
from firstlight.data.options import Labels
from firstlight.generator.data import CharacterData
from firstlight.generator.module import Generation
from firstlight.generator.network import Generator
from firstlight.generator.options import GeneratorConfig
from firstlight.lit.schedules import constant
from firstlight.networks.variants import Norm, PoolingKind
from firstlight.translator.data import PairData
from stand_ins import trainer_of
from tests_support import sample_rows, write_lines

CONTEXT = 11


class Memory(Logger):
    """Logger that stores every call."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[int | None, dict[str, float]]] = []

    name, version = "memory", ""

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self.lines.append((step, dict(metrics)))

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None: ...

    def curve(self, name: str) -> list[tuple[int | None, float]]:
        """Return (step, value) of every call that has the metric."""
        return [(step, metrics[name]) for step, metrics in self.lines if name in metrics]


@dataclass
class Bench:
    """Training of a tiny classifier on generated reviews: 600 for training, 100 for validation, 100 for test."""

    folder: Path
    reviews: Path
    memory: Memory = field(default_factory=Memory)

    def data(self, **options: Any) -> ReviewData:
        defaults = {"labels": Labels.stars, "batch_size": 20, "evaluation_batch_size": 30, "context_length": CONTEXT}
        data = ReviewData(path=str(self.reviews), cache_dir=str(self.reviews / "cache"), **(defaults | options))
        data.ensure_setup()
        return data

    def module(self, data: ReviewData, *, lr: float = 0.1, dropout: float = 0.0, schedule: Any = constant) -> Any:
        torch.manual_seed(1)
        outputs = 1 if data.num_classes == 2 else data.num_classes
        length = data.options.context_length
        config = ClassifierConfig(
            dim=8, num_heads=2, context_length=length, norm=Norm.pre, pooling=PoolingKind.mean, dropout=dropout
        )
        network = Classifier(config, data.tokenizer.vocab_size, outputs)
        return Classification(network, partial(torch.optim.SGD, lr=lr), schedule)

    def trainer(self, *callbacks: Callback, loggers: tuple[Logger, ...] = (), **options: Any) -> Trainer:
        defaults = {
            "limit_train_batches": 6,
            "log_every_n_steps": 1,
            "use_distributed_sampler": False,
            "enable_checkpointing": any(isinstance(callback, Checkpoint) for callback in callbacks),
            "default_root_dir": self.folder,
            "logger": [self.memory, *loggers],
            "plugins": [AtomicCheckpointIO({"task": "stars"})],
        }
        return trainer_of(*callbacks, **(defaults | options))

    def fit(self, *callbacks: Callback, data: Any = None, module: Any = None, ckpt_path: Any = None, **options: Any):
        """Train with these callbacks, and return the trainer. trainer.lightning_module is the trained module."""
        data = data or self.data()
        trainer = self.trainer(*callbacks, **options)
        trainer.fit(module or self.module(data), datamodule=data, ckpt_path=ckpt_path)
        return trainer


@pytest.fixture
def bench(tmp_path: Path, reviews_folder: Path) -> Bench:
    return Bench(tmp_path, reviews_folder)


class Judged(EvaluationCallback):
    """Callback that stores the targets and predictions of every evaluation: (n,) int."""

    def __init__(self) -> None:
        self.targets: dict[str, list[int]] = {"val": [], "test": []}
        self.predictions: dict[str, list[int]] = {"val": [], "test": []}

    def add_batch(self, trainer: Trainer, pl_module: Any, stage: str, outputs: Any, batch: Any) -> None:
        self.targets[stage] += batch.targets.tolist()
        self.predictions[stage] += outputs["probabilities"].argmax(dim=1).tolist()


@pytest.fixture
def judged() -> Judged:
    return Judged()


def on(**hooks: Callable[[Trainer], object]) -> Callback:
    """Return a callback with these hooks: on(on_train_end=act) calls act(trainer) at the end."""
    callback = Callback()
    for name, act in hooks.items():
        setattr(callback, name, lambda trainer, *_, act=act: act(trainer))
    return callback


def at_call(hook: str, call: int, act: Callable[[Trainer], object]) -> Callback:
    """Return a callback that calls act(trainer) at one call of a hook, which is counted from 1."""
    calls = itertools.count(1)
    return on(**{hook: lambda trainer: next(calls) == call and act(trainer)})


@pytest.fixture
def at() -> Callable[..., Callback]:
    return at_call


def some_text(passages: int = 97, seed: int = 0) -> str:
    """Return passages of generated words, some of them with letters of several bytes."""
    random = Random(seed)
    syllables = ["ka", "lo", "mi", "né", "ru", "sö", "t€", "va"]
    words = ["".join(random.choices(syllables, k=random.randint(1, 3))) for _ in range(53)]
    return "".join(" ".join(random.choices(words, k=random.randint(3, 9))) + ".\n\n" for _ in range(passages))


def syllables(folder: Path, **options: Any) -> CharacterData:
    """Return the data of a short text, in batches of 20 windows of 11 tokens."""
    (folder / "text.txt").write_text("ka lo mi né, ru sö.\n\nva ka mi lo ru!\n\n" * 200, encoding="utf-8")
    defaults = {"context_length": CONTEXT, "batch_size": 20, "cache_dir": str(folder / "cache")}
    return CharacterData(path=str(folder / "text.txt"), **(defaults | options))


def sentences(folder: Path, **options: Any) -> PairData:
    """Return the data of 60 pairs of generated sentences in each split."""
    for split in ("train", "validation", "test"):
        write_lines(folder / f"{split}.jsonl", sample_rows("pairs", 60, split))
    tokenizer = {"kind": "subword", "max_size": 400}
    defaults = {"batch_tokens": 400, "tokenizer": tokenizer, "context_length": 80, "cache_dir": str(folder / "cache")}
    return PairData(path=str(folder), **(defaults | options))


@dataclass
class WriterBench(Bench):
    """Training of a tiny generator on generated text, which is the attribute `text`."""

    text: str = field(default_factory=some_text)

    def data(self, **options: Any) -> CharacterData:
        file = self.folder / "text.txt"
        file.write_text(self.text, encoding="utf-8")
        defaults = {"validation_fraction": 0.2, "batch_size": 7, "evaluation_batch_size": 5, "context_length": CONTEXT}
        data = CharacterData(path=str(file), cache_dir=str(self.folder / "cache"), **(defaults | options))
        data.ensure_setup()
        return data

    def module(self, data: Any, *, lr: float = 0.1, dropout: float = 0.0, schedule: Any = constant) -> Any:
        torch.manual_seed(1)
        length = data.options.context_length
        config = GeneratorConfig(
            dim=8, num_heads=2, context_length=length, norm=Norm.pre, embedding_std=0.5, dropout=dropout
        )
        network = Generator(config, data.tokenizer.vocab_size)
        return Generation(network, partial(torch.optim.SGD, lr=lr), schedule)

    @staticmethod
    def ids(data: CharacterData, split: str) -> list[int]:
        """Return the tokens of a split, in the order of the text."""
        return data.ids(data.stream(split)).tolist()


@pytest.fixture
def writer_bench(tmp_path: Path) -> WriterBench:
    return WriterBench(tmp_path, tmp_path)
