"""A checkpoint with damaged bytes, or with metadata that does not fit the weights, gives a one-line error."""

import itertools
import json
import math
import random
import shutil
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from torch.utils._pytree import tree_flatten

from faults.conftest import TASKS, RunOf
from faults.damage import VALUES, Damage, answered, assert_refused, damages, is_refused, replaced, try_damages
from faults.trials import Trials, number_of, scaled
from firstlight.kind.load import load
from firstlight.lit.checkpoint import METADATA, read_checkpoint
from tests_support import Scripts

BYTES = 250  # trials of damaged bytes for each kind of network
METADATA_CASES = 250  # trials of other values in the metadata
TOKENIZERS = 100  # trials of another tokenizer in the metadata
WEIGHTS = 120  # trials of other tensors
OVERFLOWS = 40  # trials of weights that are too large
VERSIONS = 5  # versions that wrote a checkpoint or a record
REPLACED = 25  # times that a checkpoint is read while it is replaced
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


class Best:
    """The best checkpoint of a run of a task."""

    def __init__(self, task: str, run: Path) -> None:
        self.task, self.run, self.path = task, run, run / "checkpoints" / "best.ckpt"
        self.whole = read_checkpoint(self.path)

    def use_with(self, **changes: Any) -> None:
        """Use the run with other values in the checkpoint."""
        torch.save({**self.whole, **changes}, self.path)
        use(self.run)


@pytest.fixture(params=TASKS)
def best(request: pytest.FixtureRequest, copied: RunOf) -> Best:
    return Best(request.param, copied(request.param))


@pytest.mark.faults("damaged bytes: checkpoints")
def test_damaged_bytes_are_noticed(trials: Trials, best: Best) -> None:
    def use_damaged() -> None:
        if answered(lambda: load(best.run)) is not None:
            assert_same(read_checkpoint(best.path), best.whole)

    try_damages(trials, best.path, use_damaged, BYTES, f"best.ckpt of {best.task}")


@pytest.mark.faults("damaged bytes: checkpoints")
def test_metadata_of_other_values_is_refused_or_read(trials: Trials, best: Best) -> None:
    metadata = best.whole[METADATA]

    def check(change: tuple[float, int]) -> None:
        where, number = change
        best.use_with(**{METADATA: replaced(metadata, where, VALUES[number])})

    changes = st.tuples(st.floats(0, 1), st.integers(0, len(VALUES) - 1))
    trials.examples(changes, check, METADATA_CASES, f"metadata of {best.task}")

    def check_tokenizer(damage: Damage) -> None:
        text = damage.apply(metadata["tokenizer"].encode()).decode("utf-8", "replace")
        best.use_with(**{METADATA: {**metadata, "tokenizer": text}})

    trials.examples(damages("value"), check_tokenizer, TOKENIZERS, f"tokenizer of {best.task}")


@pytest.mark.faults("damaged bytes: checkpoints")
def test_weights_of_another_shape_or_type_are_refused(trials: Trials, best: Best) -> None:
    weights = best.whole["state_dict"]

    def check(change: tuple[str, str]) -> None:
        name, kind = change
        changed = {**weights, name: TENSORS[kind](weights[name])}
        if kind == "none":
            del changed[name]
        best.use_with(state_dict=changed)

    changes = st.tuples(st.sampled_from(sorted(weights)), st.sampled_from(sorted(TENSORS)))
    trials.examples(changes, check, WEIGHTS, f"weights of {best.task}")


@pytest.mark.faults("damaged bytes: last.ckpt of a resumed run")
@pytest.mark.parametrize("task", TASKS)
def test_a_run_with_a_damaged_last_checkpoint_goes_on_or_is_refused(task, trials, copied, tmp_path) -> None:
    run = copied(task)
    scripts = Scripts(tmp_path)

    def check(damage: Damage) -> None:
        again = copied_again(run, tmp_path / "again")
        last = again / "checkpoints" / "last.ckpt"
        last.write_bytes(damage.apply(last.read_bytes()))
        done = scripts.run("train", f"resume={again}", "trainer.max_steps=60", f"paths.cache_dir={tmp_path / 'cache'}")
        if not is_refused(done):
            steps = [line for line in (again / "history.jsonl").read_text().splitlines() if '"step": 4,' in line]
            assert len(steps) <= len(set(steps)), "the history has steps twice"

    trials.examples(damages(), check, RESUMED, f"last.ckpt of {task}")


@pytest.mark.faults("overflow: weights of checkpoints")
def test_weights_that_overflow_give_no_answer(trials: Trials, best: Best, tmp_path: Path) -> None:
    whole = best.whole["state_dict"]
    weights = {name: weight for name, weight in whole.items() if weight.is_floating_point()}

    def check(change: tuple[str, float]) -> None:
        name, exponent = change
        larger = {each: weight * 10**exponent for each, weight in weights.items() if name in ("all", each)}
        best.use_with(state_dict=whole | larger)

    changes = st.tuples(st.sampled_from(["all", *sorted(weights)]), st.floats(1, 38))
    trials.examples(changes, check, OVERFLOWS, f"overflow of {best.task}")
    best.use_with(state_dict={name: weight * 1e15 for name, weight in whole.items()})
    for name in ("evaluate", "explore"):
        with trials.one(f"overflow of {best.task}: {name}", seconds=120):
            done = Scripts(tmp_path).run(name, str(best.run))
            assert "nan" not in done.stdout
            is_refused(done)


@pytest.mark.faults("later versions: checkpoints and records")
def test_a_run_of_a_later_version_is_refused(trials: Trials, copied: RunOf, tmp_path: Path) -> None:
    run, scripts = copied("sentiment"), Scripts(tmp_path)
    path, record = run / "checkpoints" / "best.ckpt", run / "metrics.json"
    whole, recorded = read_checkpoint(path), json.loads(record.read_text())
    draw = random.Random(number_of("versions"))
    for _ in range(scaled(VERSIONS)):
        version = f"{draw.randint(0, 3)}.{draw.randint(4, 40)}.{draw.randint(0, 9)}"
        for is_of_metadata in (True, False):
            torch.save({**whole, METADATA: whole[METADATA] | ({"version": version} if is_of_metadata else {})}, path)
            versions = recorded["versions"] | ({} if is_of_metadata else {"firstlight": version})
            record.write_text(json.dumps({**recorded, "versions": versions}))
            uses = [["predict", str(run), "--text", "a"], ["evaluate", str(run)], ["explore", str(run)]]
            uses += [] if is_of_metadata else [["train", f"resume={run}", "trainer.max_steps=60"]]
            for arguments in uses:
                with trials.one(f"version {version}, of the metadata: {is_of_metadata}: {arguments[0]}", seconds=60):
                    done = scripts.run(*arguments)
                    assert_refused(done.returncode, done.stderr)
                    assert f"was written by firstlight {version.rpartition('.')[0]}, this is" in done.stderr


@pytest.mark.faults("replaced: checkpoints that are read")
def test_a_checkpoint_that_a_training_replaces_is_read(trials: Trials, copied: RunOf, tmp_path: Path) -> None:
    run, scripts = copied("sentiment"), Scripts(tmp_path)
    path = run / "checkpoints" / "best.ckpt"
    whole, ended = read_checkpoint(path), threading.Event()
    others = [{**whole, "padding": torch.zeros(size)} for size in (1, 300_000)]

    def replace() -> None:
        for number in itertools.count():
            if ended.is_set():
                return
            torch.save(others[number % 2], path.with_name(f".{path.name}-new"))
            path.with_name(f".{path.name}-new").replace(path)

    training = threading.Thread(target=replace)
    training.start()
    try:
        for number in range(scaled(REPLACED)):
            with trials.one(f"loaded while it is replaced, {number}", seconds=60):
                assert load(run).predict("It is great.").label
        for arguments in (["--figures", "embeddings"], []):
            name = "explore" if arguments else "evaluate"
            with trials.one(f"{name} while it is replaced", seconds=120):
                scripts.succeed(name, str(run), *arguments)
    finally:
        ended.set()
        training.join()


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
    (ours, places), (theirs, other_places) = tree_flatten(first), tree_flatten(second)
    assert places == other_places
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other
