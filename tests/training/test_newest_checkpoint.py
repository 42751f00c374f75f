"""A run whose last checkpoint is damaged or missing resumes from the newest readable one."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf

from firstlight.errors import UserError
from firstlight.lit.checkpoint import read_checkpoint
from firstlight.runs.folder import RunFolder
from firstlight.training.newest_checkpoint import newest_checkpoint, refuse_nothing_left
from tests_support import Scripts, contents

TRAINING = (  # 15 batches an epoch; validations after the steps 9 and 18, the last in the middle of an accumulated step
    *("task=stars", "model=tiny", "data.batch_size=40", "context_length=23", "trainer.accumulate_grad_batches=1"),
    *("trainer.max_epochs=2", "trainer.val_check_interval=9", "trainer.check_val_every_n_epoch=null"),
    *("trainer.log_every_n_steps=2", "callbacks.checkpoint.every_n_train_steps=4", "trainer.accelerator=cpu"),
    *("++callbacks.confusion_matrix=null", "test=false", "threads=1"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, reviews_folder: Path) -> Path:
    """A run that was not interrupted."""
    return Scripts(tmp_path_factory.mktemp("whole")).train(f"data.path={reviews_folder}", *TRAINING)


@pytest.fixture
def interrupted(whole: Path, tmp_path: Path) -> Path:
    """Its folder somewhere else."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def damage(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def step_of(file: Path) -> int:
    return int(read_checkpoint(file)["global_step"])


def test_the_last_checkpoint_of_before_is_kept(whole: Path) -> None:
    names = ("best.ckpt", "last.ckpt", "previous.ckpt")
    assert sorted(path.name for path in (whole / "checkpoints").iterdir()) == list(names)
    assert [step_of(whole / "checkpoints" / name) for name in names[1:]] == [30, 28]


def lose(file: Path) -> None:
    file.unlink()


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:1000])


def find(folder: Path, *, keeps_checkpoints: bool = True) -> Any:
    return newest_checkpoint(RunFolder(folder), keeps_checkpoints=keeps_checkpoints)


@pytest.mark.parametrize(("harm", "what"), [(damage, "damaged"), (truncate, "damaged"), (lose, "missing")])
def test_a_run_goes_on_from_the_newest_checkpoint_that_is_whole(harm, what, interrupted, caplog) -> None:
    checkpoints = interrupted / "checkpoints"
    assert (find(interrupted).path.name, caplog.messages) == ("last.ckpt", [])
    harm(checkpoints / "last.ckpt")
    assert (find(interrupted).path.name, find(interrupted).step) == ("previous.ckpt", 28)
    previous = checkpoints / "previous.ckpt"
    said = f"{interrupted}: last.ckpt is {what}; the run resumes from {previous}, at step 28"
    assert caplog.messages == [said] * 2
    harm(previous)
    assert find(interrupted).path.name == "best.ckpt"
    harm(checkpoints / "best.ckpt")
    before = contents(interrupted)
    with pytest.raises(UserError, match=rf"^{interrupted} cannot be resumed, .* history is kept: last\.ckpt is {what}"):
        find(interrupted)
    assert contents(interrupted) == before


def test_the_best_checkpoint_counts_if_it_is_newer(interrupted: Path) -> None:
    checkpoints = interrupted / "checkpoints"
    damage(checkpoints / "last.ckpt")
    shutil.copy(checkpoints / "previous.ckpt", checkpoints / "best.ckpt")
    content = read_checkpoint(checkpoints / "previous.ckpt")
    torch.save({**content, "global_step": 4}, checkpoints / "previous.ckpt")
    assert find(interrupted).path.name == "best.ckpt"


@pytest.mark.parametrize(
    ("change", "message"),
    [("batches", r"last\.ckpt is missing, previous\.ckpt is missing"), ("no place", r"best\.ckpt is damaged")],
)
def test_a_checkpoint_in_the_middle_of_a_step_or_without_its_place_in_an_epoch_does_not_count(
    change: str, message: str, interrupted: Path
) -> None:
    checkpoints = interrupted / "checkpoints"
    content = read_checkpoint(checkpoints / "best.ckpt")
    progress = content["loops"]["fit_loop"].pop("epoch_loop.batch_progress")
    if change == "batches":
        content["loops"]["fit_loop"]["epoch_loop.batch_progress"] = progress
        content["firstlight"]["config"]["trainer"]["accumulate_grad_batches"] = progress["current"]["ready"] + 1
    torch.save(content, checkpoints / "best.ckpt")
    for name in ("last.ckpt", "previous.ckpt"):
        lose(checkpoints / name)
    with pytest.raises(UserError, match=message):
        find(interrupted)


@pytest.mark.parametrize("change", [{"loops": "x"}, {"loops": {"fit_loop": []}}, {"global_step": "x"}])
def test_a_last_checkpoint_with_a_broken_state_of_the_training_does_not_count(change, interrupted) -> None:
    path = interrupted / "checkpoints" / "last.ckpt"
    torch.save({**torch.load(path, weights_only=True), **change}, path.with_name("new"))
    path.with_name("new").replace(path)
    refuse_nothing_left(OmegaConf.create({"trainer": {"max_steps": 30}}), RunFolder(interrupted))
    found = newest_checkpoint(RunFolder(interrupted), keeps_checkpoints=True)
    assert (found.path.name, found.step) == ("previous.ckpt", 28)


def test_a_run_that_was_killed_before_its_first_checkpoint_starts_again(interrupted, caplog) -> None:
    shutil.rmtree(interrupted / "checkpoints")
    with pytest.raises(UserError, match="cannot be resumed"):
        find(interrupted)  # its history has seen a validation, and more
    assert find(interrupted, keeps_checkpoints=False) is None
    lines = (interrupted / "history.jsonl").read_text().splitlines(keepends=True)
    (interrupted / "history.jsonl").write_text("".join(lines[:2]))
    assert find(interrupted) is None
    (interrupted / "checkpoints").mkdir()
    (interrupted / "checkpoints" / ".last.ckpt-abc").touch()  # killed while it wrote the first one
    assert find(interrupted) is None
    said = f"{interrupted}: the run ended before its first checkpoint; it starts again at step 0"
    assert caplog.messages == [said] * 3
    RunFolder(interrupted).remove_leftovers()
    assert not (interrupted / "checkpoints").exists()
    (interrupted / "checkpoints").mkdir()  # as when all files in it are deleted
    with pytest.raises(UserError, match="cannot be resumed"):
        find(interrupted)
