"""A checkpoint with damaged bytes, or with a card that does not fit the weights, gives a one-line error."""

import math
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import torch

from faults.conftest import TASKS
from faults.damage import VALUES, Damage, answered, assert_refused, damaged, damages, replaced
from faults.trials import Trials
from firstlight.kinds.load import load
from firstlight.lit.checkpoint import CARD, read_checkpoint
from tests_support import Scripts

BYTES = 250  # trials of damaged bytes for each kind of network
CARDS = 250  # trials of other values in the card
TOKENIZERS = 100  # trials of another tokenizer in the card
WEIGHTS = 120  # trials of other tensors
RESUMED = 8  # trainings of each kind that are resumed from a damaged last.ckpt

TENSORS: dict[str, Callable[[torch.Tensor], Any]] = {
    "none": lambda weight: None,
    "a text": lambda weight: "text",
    "a number": lambda weight: 3,
    "NaN": lambda weight: torch.full_like(weight, math.nan),
    "one NaN": lambda weight: weight.clone().index_fill_(0, torch.tensor([0]), math.nan) if weight.dim() else weight,
    "infinite": lambda weight: torch.full_like(weight, math.inf),
    "empty": lambda weight: weight.new_empty(0),
    "transposed": lambda weight: weight.T.contiguous() if weight.dim() == 2 else weight[None],
    "one row less": lambda weight: weight[1:] if weight.dim() else weight[None],
    "one more dimension": lambda weight: weight[None],
    "integers": lambda weight: weight.long(),
    "halves": lambda weight: weight.half(),
    "complex": lambda weight: weight.to(torch.complex64),
    "booleans": lambda weight: weight > 0,
    "sparse": lambda weight: weight.to_sparse(),
    "expanded": lambda weight: weight.new_zeros(1).expand(10**12),
    "on the meta device": lambda weight: weight.to("meta"),
}


@pytest.mark.faults("damaged bytes: checkpoints")
@pytest.mark.parametrize("task", TASKS)
def test_damaged_bytes_are_noticed(task: str, trials: Trials, copied: Callable[[str], Path]) -> None:
    run = copied(task)
    whole = read_checkpoint(run / "checkpoints" / "best.ckpt")

    def check(damage: Damage) -> None:
        with damaged(run / "checkpoints" / "best.ckpt", damage):
            loaded = answered(lambda: load(run))
            if loaded is not None:
                assert_same(read_checkpoint(run / "checkpoints" / "best.ckpt"), whole)

    trials.examples(damages(), check, BYTES, f"best.ckpt of {task}")


@pytest.mark.faults("damaged bytes: checkpoints")
@pytest.mark.parametrize("task", TASKS)
def test_a_card_of_other_values_is_refused_or_read(
    task: str, trials: Trials, copied: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(task)
    path = run / "checkpoints" / "best.ckpt"
    whole = read_checkpoint(path)

    def check(change: tuple[float, int]) -> None:
        where, number = change
        card = replaced(whole[CARD], where, VALUES[number])
        torch.save({**whole, CARD: card}, path)
        use(run)

    trials.examples(st.tuples(st.floats(0, 1), st.integers(0, len(VALUES) - 1)), check, CARDS, f"card of {task}")

    def check_tokenizer(damage: Damage) -> None:
        text = damage.apply(whole[CARD]["tokenizer"].encode()).decode("utf-8", "replace")
        torch.save({**whole, CARD: {**whole[CARD], "tokenizer": text}}, path)
        use(run)

    trials.examples(damages("value"), check_tokenizer, TOKENIZERS, f"tokenizer of {task}")


@pytest.mark.faults("damaged bytes: checkpoints")
@pytest.mark.parametrize("task", TASKS)
def test_weights_of_another_shape_or_type_are_refused(task: str, trials: Trials, copied: Callable[[str], Path]) -> None:
    run = copied(task)
    path = run / "checkpoints" / "best.ckpt"
    whole = read_checkpoint(path)
    names = sorted(whole["state_dict"])

    def check(change: tuple[str, str]) -> None:
        name, kind = change
        weights = {**whole["state_dict"], name: TENSORS[kind](whole["state_dict"][name])}
        if kind == "none":
            del weights[name]
        torch.save({**whole, "state_dict": weights}, path)
        use(run)

    changes = st.tuples(st.sampled_from(names), st.sampled_from(sorted(TENSORS)))
    trials.examples(changes, check, WEIGHTS, f"weights of {task}")


@pytest.mark.faults("damaged bytes: last.ckpt of a resumed run")
@pytest.mark.parametrize("task", TASKS)
def test_a_run_with_a_damaged_last_checkpoint_goes_on_or_is_refused(
    task: str, trials: Trials, copied: Callable[[str], Path], tmp_path: Path
) -> None:
    run = copied(task)
    scripts = Scripts(tmp_path)

    def check(damage: Damage) -> None:
        again = copied_again(run, tmp_path / "again")
        last = again / "checkpoints" / "last.ckpt"
        last.write_bytes(damage.apply(last.read_bytes()))
        done = scripts.run("train", f"resume={again}", "trainer.max_steps=60", f"paths.cache_dir={tmp_path / 'cache'}")
        if done.returncode:
            assert_refused(done.returncode, done.stderr)
        else:
            steps = [line for line in (again / "history.jsonl").read_text().splitlines() if '"step": 4,' in line]
            assert len(steps) <= len(set(steps)), "the history has steps twice"

    trials.examples(damages(), check, RESUMED, f"last.ckpt of {task}")


def copied_again(run: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(run, target))


def use(run: Path) -> None:
    """Load a run, and check that its answers have no NaN."""
    loaded = answered(lambda: load(run))
    if loaded is None:
        return
    if loaded.kind == "classifier":
        prediction = answered(partial(loaded.predict, "It is great, and it works."))
        if prediction is not None:
            assert all(math.isfinite(share) for share in prediction.probabilities.values()), prediction
    elif loaded.kind == "generator":
        answered(partial(loaded.generate, "a", tokens=5))
    else:
        answered(partial(loaded.translate, "A man.", beam_size=2))
    answered(partial(repr, loaded))


def assert_same(first: Any, second: Any) -> None:
    """Fail unless two checkpoints have the same content."""
    if isinstance(first, torch.Tensor):
        assert torch.equal(first, second)
    elif isinstance(first, dict):
        assert first.keys() == second.keys()
        for key, value in first.items():
            assert_same(value, second[key])
    elif isinstance(first, list | tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            assert_same(one, other)
    else:
        assert first == second
