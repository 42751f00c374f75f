"""Tests of `teacher=`: runs that teach a network, exact resuming, and one-line mistakes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch

import firstlight
from firstlight.data import ReviewData
from firstlight.errors import UserError
from firstlight.kind.registry import KINDS
from firstlight.lit.losses import NetworkTeacher, probabilities
from firstlight.masked.data import MaskedReviewData
from firstlight.training import teachers
from firstlight.training.teachers import check_teacher, refuse_other_teacher
from tests_support import Scripts

DATA: dict[str, Any] = {"sentiment": ReviewData, "masked_reviews": MaskedReviewData}


def data_of(run: Any, tmp_path: Path, **options: Any) -> Any:
    """Return the data of a run, encoded again, with other options."""
    names = ("path", "tokenizer", *(["labels"] if "labels" in run.config["data"] else []))
    own = {name: run.config["data"][name] for name in names}
    kept = {"context_length": run.config["context_length"], "cache_dir": str(tmp_path)}
    data = DATA[run.metadata["task"]](**own | kept | options)
    data.ensure_setup()
    return data


@pytest.mark.parametrize("task", DATA)
def test_a_run_teaches_what_its_network_predicts_of_each_batch(task, trained, tmp_path) -> None:
    run: Any = firstlight.load(trained(task))
    data = data_of(run, tmp_path)
    with patch.object(teachers.log, "warning") as warning:  # a script of an earlier test may have set its own handlers
        check_teacher(run, data)
    assert "predicts texts that it was trained on" in warning.call_args.args[0]
    batch = next(iter(data.train_dataloader()))
    taught = NetworkTeacher([run.network], KINDS[run.kind].get("module").target_logits)(batch)
    assert torch.allclose(taught.exp(), probabilities(run.network(*batch.inputs)), atol=1e-5)


def test_a_run_that_does_not_fit_is_refused(trained: Callable[[str], Path], tmp_path: Path) -> None:
    run = firstlight.load(trained("sentiment"))
    data = data_of(run, tmp_path)
    data.options = replace(data.options, context_length=1009)
    with pytest.raises(UserError, match=r"^teacher=.*: the run reads \d+ tokens, but context_length=1009"):
        check_teacher(run, data)
    for options, wrong in (
        ({"tokenizer": {"max_size": 11}}, "the run has another tokenizer than this data"),
        ({"labels": "stars"}, "the run has another class names than this data"),
    ):
        with pytest.raises(UserError, match=rf"^teacher=.*{wrong}"):
            check_teacher(run, data_of(run, tmp_path, **options))
    data = data_of(run, tmp_path, split_seed=4)
    data.source = SimpleNamespace(fingerprint=run.data_fingerprint, splits=["train"])  # no split but those it draws
    with pytest.raises(UserError, match=r"^teacher=.*has seen texts of this validation; set data\.split_seed=0"):
        check_teacher(run, data)
    run.metadata["target_encoding"] = {}
    with pytest.raises(UserError, match=r"^teacher=.*: the run has another target encoding than this data"):
        check_teacher(run, data_of(run, tmp_path))


@pytest.mark.slow  # 1.5 s, four trainings; the other tests check that a teacher has the same predictions again
def test_a_resumed_run_with_a_teacher_ends_like_a_whole_one(scripts: Scripts, tiny_training: list[str]) -> None:
    common = ["task=stars", *tiny_training, "schedule=constant", "test=false"]
    teacher = scripts.train(*common, "trainer.max_steps=2", "seed=5")
    training = [*common, f"teacher={teacher}", "distillation.weight=0.7", "distillation.temperature=2"]
    whole = scripts.train(*training, "trainer.max_steps=5")
    resumed = scripts.train(*training, "trainer.max_steps=3")
    assert scripts.train(f"resume={resumed}", "trainer.max_steps=5") == resumed
    contents = [torch.load(run / "checkpoints/last.ckpt", weights_only=True) for run in (whole, resumed)]
    one, other = (content["state_dict"] for content in contents)
    assert all(torch.equal(one[name], weight) for name, weight in other.items())
    said = firstlight.load(whole).record["teacher"]
    assert (said["names"], said["runs"]) == ([str(teacher)], [str(teacher)])
    assert contents[0]["firstlight"]["teacher"] == said


def test_a_run_resumes_only_with_its_teacher() -> None:
    teacher = {"names": ["runs/a"], "fingerprint": "a"}
    refuse_other_teacher(teacher, dict(teacher))
    refuse_other_teacher(None, None)
    for now, then in ((None, teacher), (teacher, None), (teacher, teacher | {"fingerprint": "b"})):
        with pytest.raises(UserError, match=r"^teacher=(runs/a|null) is not the teacher (runs/a|null) that"):
            refuse_other_teacher(now, then)
