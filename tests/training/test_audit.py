"""The audit of networks: those of firstlight pass, and each planted mistake is found by its own check."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from callback_fixtures import sentences, syllables
from firstlight.data import CharacterData, MaskedReviewData, ReviewData
from firstlight.lit import Classification, Generation, MaskedLanguageModeling, Translation
from firstlight.networks import Generator, KeyValueCache
from firstlight.training.audit import Check, audit

SIZES = {"dim": 8, "num_heads": 2, "num_layers": 1}


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> ReviewData:
    folder = tmp_path_factory.mktemp("audit")
    words = ["good", "bad", "works", "broke", "well", "the", "lamp", "is"]
    rows = [f"{' '.join(words[(i * k) % 8] for k in range(1, 3 + i % 7))},{i % 2}" for i in range(60)]
    (folder / "reviews.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    return ReviewData(path=str(folder / "reviews.csv"), labels="classes", context_length=16, cache_dir=str(folder))


@pytest.fixture(scope="module")
def novel(tmp_path_factory: pytest.TempPathFactory) -> CharacterData:
    return syllables(tmp_path_factory.mktemp("novel"))


def audited(module: Any, data: Any, **options: Any) -> dict[str, Check]:
    batch = next(iter(data.train_dataloader()))
    return {check.name: check for check in audit(module, batch, **options)}


def failed(found: dict[str, Check]) -> list[str]:
    return [name for name, check in found.items() if check.passed is False]


def test_the_classifier_passes_also_exported_and_compiled(reviews: ReviewData, compiled_without_code: None) -> None:
    module = Classification.for_data(reviews, **SIZES, dropout=0.5)
    before = {name: weight.clone() for name, weight in module.state_dict().items()}
    found = audited(module, reviews)
    assert failed(found) == []
    assert found["loss"].found.endswith("expected at initialization: 0.693")
    assert {name for name, check in found.items() if check.passed is None} == {"future", "cache"}
    assert all(torch.equal(weight, before[name]) for name, weight in module.state_dict().items())
    assert module.training


def test_the_other_kinds_pass(reviews: ReviewData, novel: CharacterData, tmp_path: Path) -> None:
    module = Generation.for_data(novel, **SIZES)
    found = audited(module, novel, compiled=False)
    assert failed(found) == []
    assert found["cache"].passed
    assert found["future"].passed
    masked = MaskedReviewData(path=reviews.options.path, context_length=16, cache_dir=str(tmp_path))
    found = audited(MaskedLanguageModeling.for_data(masked, **SIZES), masked, compiled=False)
    assert failed(found) == [], found
    assert found["padding"].passed
    data = sentences(tmp_path)
    found = audited(Translation.for_data(data, **SIZES), data, compiled=False)
    assert failed(found) == []
    assert found["padding"].passed
    assert found["future"].passed


class Bag(nn.Module):
    """A classifier with one mistake."""

    def __init__(self, vocab_size: int, mistake: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.mistake = mistake
        self.embedding = nn.Embedding(vocab_size, 8)
        self.output = nn.Linear(8, 1)
        if mistake == "gradients":
            self.unused = nn.Linear(8, 8)

    def forward(self, token_ids: Tensor, padding_mask: Tensor) -> Tensor:
        hidden = self.embedding(token_ids)
        if self.mistake == "padding":
            mean = hidden.mean(dim=1)
        else:
            mean = (hidden * padding_mask[..., None]).sum(dim=1) / padding_mask.sum(dim=1, keepdim=True).clamp(min=1)
        if self.mistake == "batch":
            mean = mean - mean.mean(dim=0)
        if self.mistake == "evaluation":
            mean = torch.dropout(mean, 0.5, train=True)
        if self.mistake == "loss":
            mean = 1000 * mean
        if self.mistake == "crash":
            raise ZeroDivisionError("a mistake of the user")
        return self.output(mean)


@pytest.mark.parametrize("mistake", ["", "gradients", "padding", "batch", "evaluation", "loss"])
def test_a_planted_mistake_is_found_by_its_check(reviews: ReviewData, mistake: str) -> None:
    reviews.ensure_setup()
    module = Classification(Bag(reviews.network_sizes()["vocab_size"], mistake))
    found = failed(audited(module, reviews, compiled=False))
    assert mistake in found if mistake else found == []
    beside = {"batch", "padding"} if mistake == "evaluation" else set()  # two passes differ there, too
    assert set(found) <= {mistake} | beside


def test_an_exception_of_the_network_is_a_line(reviews: ReviewData) -> None:
    reviews.ensure_setup()
    module = Classification(Bag(reviews.network_sizes()["vocab_size"], "crash"))
    assert "ZeroDivisionError: a mistake of the user" in audited(module, reviews, compiled=False)["loss"].found


class Forgetful(Generator):
    """A generator whose cache forgets the first keys after three tokens."""

    def forward(self, token_ids: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        if cache is not None and cache.length == 3:
            cache.layers[0].keys[:, :, :2] = 0
        return super().forward(token_ids, cache)


def test_a_generator_that_sees_the_future_and_a_wrong_cache_are_found(novel: CharacterData) -> None:
    module = Generation.for_data(novel, **SIZES, causal=False)
    assert failed(audited(module, novel, compiled=False)) == ["future"]
    module = Generation.for_data(novel, **SIZES)
    module.network.__class__ = Forgetful
    assert failed(audited(module, novel, compiled=False)) == ["cache"]
