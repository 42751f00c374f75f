"""Tests of evaluating a trained generator on its splits, or on another text."""

import json
import math
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import firstlight
from tests_support import Done, Scripts

CONTEXT = 13


@dataclass
class Home:
    """Folder with trained runs and their texts."""

    scripts: Scripts
    runs: dict[str, Path]

    def evaluate(self, kind: str, *arguments: str) -> tuple[dict[str, Any], Done]:
        """Evaluate a run successfully, and return its metrics.json and the finished process."""
        shutil.rmtree(self.runs[kind] / "evaluate", ignore_errors=True)
        done = self.scripts.succeed("evaluate", str(self.runs[kind]), *arguments)
        (file,) = (self.runs[kind] / "evaluate").glob("*/metrics.json")
        return json.loads(file.read_text(encoding="utf-8")), done

    def write(self, name: str, text: str) -> str:
        (self.scripts.folder / name).write_text(text, encoding="utf-8")
        return name


@pytest.fixture(scope="module")
def home(generators: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("home")
    shutil.copytree(generators, folder, dirs_exist_ok=True)
    return Home(Scripts(folder), {run.name: run for run in (folder / "runs").iterdir()})


@pytest.mark.parametrize("kind", ["text", "pairs", "words", "names"])
def test_an_evaluation_repeats_the_numbers_of_the_run(kind: str, home: Home) -> None:
    expected = json.loads((home.runs[kind] / "metrics.json").read_text())["metrics"]
    for stage, split in (("val", "validation"), ("test", "test")):
        numbers = {name.partition("/")[2]: value for name, value in expected.items() if name.startswith(f"{stage}/")}
        if not numbers:
            assert (kind, stage) in (("pairs", "test"), ("words", "test"))
            continue
        record, _ = home.evaluate(kind, "--split", split)
        found = {name.removeprefix(f"{split}/"): value for name, value in record["metrics"].items()}
        assert found.keys() - numbers.keys() <= {"unknown_share"}
        assert numbers == pytest.approx({name: found[name] for name in numbers}, rel=1e-4)


def test_the_test_split_is_measured_and_where_there_is_none_the_validation_split(home: Home) -> None:
    for kind, split in (("text", "test"), ("pairs", "validation"), ("names", "test")):
        record, done = home.evaluate(kind)
        assert record["split"] == split
        assert [path.name for path in (home.runs[kind] / "evaluate").iterdir()] == [split]
        assert record["tokens"] == json.loads((home.runs[kind] / "metrics.json").read_text())["data"]["tokens"][split]
        assert f"{record['metrics'][f'{split}/perplexity']:.4f}" in done.stdout
        assert "bits_per_character" in done.stdout


def test_all_of_another_text_is_measured(home: Home) -> None:
    text = "ka lo né. t€ va\n" * 11 + "mirβ"
    record, done = home.evaluate("text", "--data.path", home.write("other.txt", text))
    assert "unknown_share" in done.stdout
    (folder,) = (home.runs["text"] / "evaluate").iterdir()
    assert re.fullmatch("other-.*-whole", folder.name)
    losses = losses_with_context(home.runs["text"], text, CONTEXT, CONTEXT)
    whole = losses[: len(losses) // CONTEXT * CONTEXT]
    assert (record["split"], record["tokens"], record["data"]["path"]) == ("whole", len(text), "other.txt")
    assert record["metrics"].keys() == {
        f"whole/{name}"
        for name in (*("loss", "perplexity", "accuracy", "bits_per_character", "last_position_loss", "unknown_share"),)
    }
    for name, value in {
        "loss": losses.mean(),
        "perplexity": losses.mean().exp(),
        "bits_per_character": losses.mean() / math.log(2),
        "last_position_loss": whole.view(-1, CONTEXT)[:, -1].mean(),
        "unknown_share": 1 / (len(text) - 1),
    }.items():
        assert record["metrics"][f"whole/{name}"] == pytest.approx(float(value), rel=1e-4)


@torch.inference_mode()
def losses_with_context(run: Path, text: str, context: int, stride: int) -> torch.Tensor:
    """Return the loss of each character except the first, computed one by one: (characters - 1,).

    A character is read with what precedes it in its window. The first window starts with the text, the others start
    `stride` characters apart, and each character belongs to the first window that reaches it.
    """
    generator = firstlight.load(run)
    ids = torch.from_numpy(generator.tokenizer.encode_batch([text])[0]).long()
    losses = []
    for place in range(1, len(ids)):
        start = max(0, math.ceil((place - context) / stride)) * stride
        logits = generator.network(ids[None, start:place])[0, -1]
        losses.append(F.cross_entropy(logits, ids[place]))
    return torch.stack(losses).double()


@pytest.mark.parametrize(("stride", "context"), [pytest.param(1, CONTEXT, id="1"), pytest.param(3, 7, id="shorter")])
def test_with_a_stride_each_character_is_predicted_once_from_what_its_window_has(stride, context, home) -> None:
    text = "ka lo né. t€ va\n" * 5 + "miru"
    shorter = ["--context-length", str(context)] if context < CONTEXT else []
    where = ["--data.path", home.write("other.txt", text)]
    record, done = home.evaluate("text", *where, "--stride", str(stride), *shorter)
    expected = losses_with_context(home.runs["text"], text, context, stride)
    assert record["predicted"] == len(expected) == len(text) - 1
    (folder,) = (home.runs["text"] / "evaluate").iterdir()
    assert folder.name.endswith(f"whole-{f'context{context}-' if shorter else ''}stride{stride}")
    assert np.load(folder / "losses.npy") == pytest.approx(expected.numpy(), rel=1e-4)
    assert record["metrics"]["whole/perplexity"] == pytest.approx(float(expected.mean().exp()), rel=1e-4)
    assert "whole/last_position_loss" not in record["metrics"]
    assert f"all but the first {context} from {context - stride + 1} tokens or more" in done.stdout


def test_a_mistake_is_one_line(home: Home) -> None:
    for name, text in (("empty.txt", ""), ("single.txt", "k")):
        home.write(name, text)
    for kind, arguments, message in (
        ("text", "--data.label-column stars", "--data.label-column does not apply to this kind of run; leave it out"),
        ("text", f"--stride {CONTEXT + 1}", f"--stride {CONTEXT + 1} must lie between 1 and {CONTEXT}"),
        ("text", "--data.path empty.txt", "empty.txt:1: the file is empty; name a file with text"),
        ("text", "--data.path single.txt", "single.txt"),
        ("pairs", "--split test", "text.txt: the test split has fewer than 2 tokens; choose another --split"),
    ):
        assert message in home.scripts.refuse("evaluate", str(home.runs[kind]), *arguments.split())
