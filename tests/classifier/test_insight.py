"""Attributions: how the words of a text contribute to the prediction of a classifier."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import firstlight
from firstlight.classifier.insight import attributions
from firstlight.classifier.run import ClassifierRun
from firstlight.errors import UserError
from firstlight.lit.losses import probabilities
from firstlight.text.tokenizers import UNKNOWN_ID
from tests_support import Scripts

Trained = Callable[[str], Path]
REVIEW = "It works, and it looks good: Zyzzyva"


def log_odds(run: ClassifierRun, ids: list[int], label: str) -> float:
    with torch.no_grad():
        shares = probabilities(run.network(torch.tensor([ids])).double())[0]
    return float(shares[run.class_names.index(label)].logit())


@pytest.mark.parametrize("task", ["sentiment", "stars"])
def test_attributions_add_up_to_what_the_words_change(task: str, trained: Trained) -> None:
    run: Any = firstlight.load(trained(task))
    for label in (run.class_names[0], run.class_names[-1]):
        found = attributions(run, REVIEW, label)
        ids = run.tokenizer.encode(REVIEW)
        difference = log_odds(run, ids, label) - log_odds(run, [UNKNOWN_ID] * len(ids), label)
        assert found.scores.sum() == pytest.approx(difference, abs=2e-3)
        assert found.probability == pytest.approx(run.predict(REVIEW).probabilities[label], abs=1e-5)
        assert found.label == label


def test_every_word_has_a_score_and_an_unknown_one_says_nothing(trained: Trained) -> None:
    run: Any = firstlight.load(trained("sentiment"))
    found = attributions(run, REVIEW)
    assert found.words == ["it", "works", ",", "and", "it", "looks", "good", ":", "zyzzyva"]
    assert found.scores.shape == (9,)
    assert found.scores[-1] == 0
    assert found.scores[:-1].any()
    assert found.label == run.predict(REVIEW).label
    unknown = run.tokenizer.encode(REVIEW).count(UNKNOWN_ID)
    assert found.notes == [f"not in the vocabulary and read as [UNK]: {unknown} of 9"]


def test_a_long_review_is_cut_as_in_training_and_that_is_said(trained: Trained) -> None:
    run: Any = firstlight.load(trained("sentiment"))  # the context of 23 tokens has a first and a last half
    words = [f"{a}{b}" for a in ("good", "bad", "fine", "poor", "nice") for b in ("", "ly", "er", "est", "ing", "ed")]
    found = attributions(run, " ".join(words))
    assert found.words == [*words[:12], *words[-11:]]
    assert "the text has 30 tokens; the network reads 23 of them" in found.notes
    (part,) = run.attention(" ".join(words)).maps
    assert [name.strip("[]") for name in part.keys] == found.words
    assert run.attention(" ".join(words)).notes == found.notes


def test_a_review_without_words_is_an_error(trained: Trained) -> None:
    run: Any = firstlight.load(trained("sentiment"))
    for text in ("", "'`'"):
        for ask in (attributions, ClassifierRun.attention):
            with pytest.raises(UserError, match=r"the text (has no word that the network can read|is empty)"):
                ask(run, text)


def test_the_attributions_of_a_logistic_regression_are_its_weights(scripts: Scripts, reviews_folder: Path) -> None:
    data = [f"data.path={reviews_folder}", "trainer.max_steps=9", "trainer.accelerator=cpu"]
    run: Any = firstlight.load(scripts.train("model=logistic", *data))
    weights = run.network.weights.weight.detach()[:, 0].numpy()
    expected = weights[run.tokenizer.encode(REVIEW)] - weights[UNKNOWN_ID]
    assert expected.any()
    np.testing.assert_allclose(attributions(run, REVIEW, "positive").scores, expected, atol=1e-5)
    with pytest.raises(UserError, match="has no attention"):
        run.attention(REVIEW)
