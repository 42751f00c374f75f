"""Use of the data modules and LightningModules with Lightning, without the entry scripts."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lightning as L
import pytest
import torch
from torch import nn

import callback_fixtures
import firstlight
from firstlight.data import CharacterData, PairData, ReviewData
from firstlight.errors import UserError
from firstlight.lit import Classification, Generation, Translation, linear
from stand_ins import trainer_of
from tests_support import ROOT

SIZES = {"dim": 8, "num_heads": 2, "num_layers": 1}
TEXTS = ["It broke after a week.", "", "I love it, and it works every day."]
PROMPTS = ["ka lo", "", "mi"]
WRITING = {"tokens": 13, "seed": 3, "temperature": 0.7}


@pytest.fixture(scope="module")
def reviews(reviews_folder: Path) -> Callable[..., ReviewData]:
    def make(**options: Any) -> ReviewData:
        defaults = {"labels": "binary", "context_length": 11, "batch_size": 20}
        return ReviewData(path=str(reviews_folder), cache_dir=str(reviews_folder / "cache"), **(defaults | options))

    return make


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., CharacterData]:
    return partial(callback_fixtures.syllables, tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., PairData]:
    return partial(callback_fixtures.sentences, tmp_path_factory.mktemp("pairs"))


@pytest.fixture
def trainer(tmp_path: Path) -> Callable[..., L.Trainer]:
    defaults = {"limit_train_batches": 4, "limit_val_batches": 2, "enable_checkpointing": True}
    return lambda **options: trainer_of(default_root_dir=tmp_path, **(defaults | options))


KINDS = ("reviews", "text", "sentences")


@pytest.fixture(params=KINDS)
def parts(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """A data module and its LightningModule of each kind."""
    data = request.getfixturevalue(request.param)()
    modules = {"reviews": Classification, "text": Generation, "sentences": Translation}
    return data, modules[request.param].for_data(data, **SIZES)


# --- data without a trainer ---


def test_a_loader_prepares_the_data_that_nobody_has_prepared(reviews: Any, text: Any, sentences: Any) -> None:
    for make in (reviews, text, sentences):
        for name in ("train", "val"):
            assert len(next(iter(getattr(make(), f"{name}_dataloader")()))) > 0


def test_every_pass_without_a_trainer_has_the_same_reviews_in_another_order(reviews: Any) -> None:
    data = reviews()
    loader = data.train_dataloader()
    passes = [[row for batch in loader for row in batch.rows.tolist()] for _ in range(2)]
    assert passes[0] != passes[1]
    assert sorted(passes[0]) == sorted(passes[1]) == data.rows("train").tolist()
    again = data.train_dataloader()
    assert [row for batch in again for row in batch.rows.tolist()] == passes[0]


def test_a_loader_without_a_trainer_resumes_where_its_state_was_taken(reviews: Any) -> None:
    data = reviews()
    loader, resumed = data.train_dataloader(), data.train_dataloader()
    whole = [batch.rows.tolist() for batch in loader]
    stopped = data.train_dataloader()
    for number, _ in enumerate(stopped, start=1):
        if number == 3:
            break
    resumed.load_state_dict(stopped.state_dict())
    assert [batch.rows.tolist() for batch in resumed][: len(whole) - 3] == whole[3:]


def test_a_loader_without_a_trainer_is_refused_where_several_processes_train(reviews: Any, monkeypatch: Any) -> None:
    data = reviews()
    data.ensure_setup()
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(UserError, match=r"datamodule=data"):
        next(iter(data.val_dataloader()))


# --- training ---


def test_a_module_trains_on_loaders_without_a_data_module(parts: tuple[Any, Any], trainer: Any) -> None:
    data, module = parts
    before = {name: weight.clone() for name, weight in module.named_parameters()}
    fitted = trainer(limit_train_batches=3, max_epochs=2)
    fitted.fit(module, data.train_dataloader(), data.val_dataloader())
    assert {"train/loss", "val/loss"} <= set(fitted.callback_metrics)
    assert fitted.global_step == 6
    assert any(not torch.equal(weight, before[name]) for name, weight in module.named_parameters())


def test_the_schedule_of_a_training_on_loaders_ends_with_it(reviews: Any, trainer: Any) -> None:
    data = reviews()
    module = Classification.for_data(data, **SIZES, optimizer=partial(torch.optim.SGD, lr=0.5), schedule=linear)
    fitted = trainer(max_epochs=3)
    fitted.fit(module, data.train_dataloader())
    assert fitted.optimizers[0].param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-9)
    assert fitted.global_step == 12


def test_a_batch_of_another_kind_is_refused_by_what_it_should_be(trainer: Any, reviews: Any) -> None:
    with pytest.raises(TypeError, match="must be a ReviewBatch or a pair of tensors"):
        trainer().fit(Classification.for_data(reviews(), **SIZES), [("a", "b")])


@pytest.mark.parametrize("options", [{"fast_dev_run": True}, {"overfit_batches": 2, "max_epochs": 3}])
def test_lightnings_debugging_options_work(parts: tuple[Any, Any], trainer: Any, options: dict[str, Any]) -> None:
    data, module = parts
    seen: list[Any] = []
    step = module.training_step
    module.training_step = lambda batch: seen.append(batch.targets.clone()) or step(batch)
    trainer(**({"limit_train_batches": None} | options)).fit(module, datamodule=data)
    assert len(seen) == (6 if "overfit_batches" in options else 1)
    if "overfit_batches" in options:
        assert all(torch.equal(seen[i], seen[i % 2]) for i in range(6))


def test_a_network_an_optimizer_and_a_schedule_of_ones_own_are_taken(trainer: Any, reviews: Any) -> None:
    class Mean(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scores = nn.Embedding(10_000, 1)

        def forward(self, token_ids: torch.Tensor, padding_mask: torch.Tensor) -> torch.Tensor:
            return (self.scores(token_ids) * padding_mask[..., None]).sum(dim=1)

    data = reviews()
    rates: list[float] = []

    def halves(optimizer: torch.optim.Optimizer, total_steps: int) -> Any:
        rates.append(total_steps)
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)

    module = Classification.for_data(data, network=Mean(), optimizer=torch.optim.SGD, schedule=halves)
    fitted = trainer()
    fitted.fit(module, datamodule=data)
    assert isinstance(fitted.optimizers[0], torch.optim.SGD)
    assert rates == [4]
    path = fitted.default_root_dir + "/own.ckpt"
    fitted.save_checkpoint(path)
    again = Classification.load_from_checkpoint(path, network=Mean())
    assert torch.equal(again.network.scores.weight, module.network.scores.weight)
    with pytest.raises(UserError, match=r"pass it, as in network="):
        Classification.load_from_checkpoint(path)


def test_the_notebook_lines_of_the_docs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained: Any) -> None:
    section = (ROOT / "docs/python.md").read_text(encoding="utf-8").split("## In a notebook\n")[1]
    blocks = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(blocks) == 8
    run = trained("sentiment")  # before the settings below, which also change a training
    monkeypatch.chdir(tmp_path)
    for name in ("ENABLE_PROGRESS_BAR", "ENABLE_MODEL_SUMMARY", "LOGGER"):  # the defaults of Trainer
        monkeypatch.setenv(f"PL_TRAINER_{name}", "False")
    monkeypatch.setenv("PL_TRAINER_ACCELERATOR", "cpu")
    monkeypatch.setenv("PL_TRAINER_FAST_DEV_RUN", "True")  # one batch
    (tmp_path / "my_novel.txt").write_text("ka lo mi né, ru sö.\n" * 200, encoding="utf-8")
    rows = [f"The dog sees {i} cats.,Le chien voit {i} chats." for i in range(50)]
    (tmp_path / "pairs.csv").write_text("\n".join(["en,fr", *rows]), encoding="utf-8")
    names: dict[str, Any] = {}
    lines = "".join(blocks).replace("logs/sentiment/runs/…", str(run)).replace("lines=True", "lines=True, nrows=1_000")
    exec(lines, names)  # noqa: S102
    assert (tmp_path / "confusion_matrix" / "test.png").is_file()
    for data, module in (("novel", "writer"), ("pairs", "translator")):
        L.Trainer().fit(names[module], datamodule=names[data])


# --- options ---


def classification(**options: Any) -> Callable[[Any], Classification]:
    return lambda data: Classification.for_data(data(), **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda data: data(labels="binry"), "data.labels='binry' must be one of binary, stars, classes"),
        (lambda data: data(lables="binary"), "ReviewData has no option lables; did you mean labels?"),
        (classification(num_head=2), "has no option num_head; did you mean num_heads?"),
        (classification(network=nn.Linear(3, 1), dim=8), "dim applies to firstlight's network only; leave it out"),
        (classification(optimizer=torch.optim.SGD, lr=0.1), "lr applies to"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_choices(reviews, make, message) -> None:
    with pytest.raises((TypeError, ValueError)) as error:
        make(reviews)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


# --- predictions and checkpoints ---


def test_a_checkpoint_predicts_texts_without_its_data_and_is_resumed_but_never_read_as_a_pickle(parts, trainer) -> None:
    data, module = parts
    before, first = next(iter(data.val_dataloader())), trainer()
    first.fit(module, datamodule=data)
    for one, other in zip(before, next(iter(data.val_dataloader())), strict=True):
        assert torch.equal(torch.as_tensor(one), torch.as_tensor(other)), "loaders give tokens after a training, too"
    path = first.checkpoint_callback.best_model_path
    with pytest.raises(ValueError, match="weights_only=False would run code"):
        type(module).load_from_checkpoint(path, weights_only=False)
    run, again = firstlight.load(path), type(module).load_from_checkpoint(path)
    for name, weight in module.network.state_dict().items():
        assert torch.equal(weight, again.network.state_dict()[name])
        assert torch.equal(weight, run.network.state_dict()[name])
    if isinstance(module, Generation):
        assert all(run.generate(prompt, **WRITING).startswith(prompt) for prompt in PROMPTS)
    else:
        answers = run.predict_many(TEXTS) if isinstance(module, Classification) else run.translate_many(TEXTS)
        assert len(list(answers)) == len(TEXTS)
    second = trainer(max_epochs=2)
    second.fit(again, datamodule=data, ckpt_path=path)
    assert second.global_step == 8


# --- other data ---


def test_data_of_another_vocabulary_is_refused_unless_it_uses_that_of_the_module(reviews: Any, trainer: Any) -> None:
    data, other = reviews(), reviews(tokenizer={"max_size": 11})
    module = Classification.for_data(data, **SIZES)
    for use in ("fit", "validate", "test"):
        with pytest.raises(UserError, match=r"vocabulary of the network; call data\.use_vocabulary_of"):
            getattr(trainer(), use)(module, datamodule=other)
    with pytest.raises(ValueError, match="the data is already set up"):
        other.use_vocabulary_of(module)
    other = reviews(tokenizer={"max_size": 11})
    other.use_vocabulary_of(module)
    assert "test/loss" in trainer().test(module, datamodule=other, verbose=False)[0]
    assert other.tokenizer.to_json() == data.tokenizer.to_json()


def test_other_classes_are_refused(reviews: Any, trainer: Any) -> None:
    module, data = Classification.for_data(reviews(), **SIZES), reviews(labels="stars")
    with pytest.raises(UserError, match="does not have the class names"):
        trainer().validate(module, datamodule=data, verbose=False)


def test_a_module_refuses_data_of_another_kind(text: Any) -> None:
    with pytest.raises(TypeError, match="Classification requires data of type ReviewData, not CharacterData"):
        Classification.for_data(text())
