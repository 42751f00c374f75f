"""Tests of the insights of a run into one text: attributions, next tokens, surprise and attention."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import firstlight
from firstlight.classifier import insight
from firstlight.classifier.insight import GRADIENT_TIMES_INPUT, INTEGRATED_GRADIENTS, attributions
from firstlight.classifier.run import ClassifierRun
from firstlight.errors import UserError
from firstlight.generator.insight import next_tokens, surprise
from firstlight.generator.run import GeneratorRun
from firstlight.text.tokenizers import UNKNOWN_ID
from tests_support import Scripts

Trained = Callable[[str], Path]
REVIEW = "It works, and it looks good: Zyzzyva"
LINES = "".join(f"the {a} {b} sat on the {c}.\n\n" for a in ("big", "old") for b in ("cat", "dog") for c in "xyz") * 40
CONTEXT = 11
QUICK = ["trainer.max_steps=20", "data.batch_size=8", f"context_length={CONTEXT}", "trainer.accelerator=cpu"]


@pytest.fixture(scope="module")
def generators(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return a character-level generator and one of names, trained for a few steps."""
    scripts = Scripts(tmp_path_factory.mktemp("generators"))
    (scripts.folder / "text.txt").write_text(LINES, encoding="utf-8")
    (scripts.folder / "names.txt").write_text("\n".join(f"{a}{b}na" for a in "abcdehk" for b in "aeiou") * 9)
    small = ["model=tiny", "model.num_layers=2", *QUICK]
    return {
        "text": firstlight.load(scripts.train("task=text", "data.path=text.txt", "model.positions=learned", *small)),
        "names": firstlight.load(scripts.train("task=names", "data.path=names.txt", *small)),
    }


def log_odds(run: ClassifierRun, ids: list[int], label: str) -> float:
    with torch.no_grad():
        probability = run.network(torch.tensor([ids]))
    shares = probability.sigmoid() if probability.shape[1] == 1 else probability.softmax(dim=1)
    share = float(shares[0, 0]) if probability.shape[1] == 1 else float(shares[0, run.class_names.index(label)])
    share = 1 - share if label == "negative" else share
    return math.log(share / (1 - share))


@pytest.mark.parametrize("task", ["sentiment", "stars"])
def test_integrated_gradients_add_up_to_what_the_words_change(task: str, trained: Trained) -> None:
    run: Any = firstlight.load(trained(task))
    for label in run.class_names:
        found = attributions(run, REVIEW, label, method=INTEGRATED_GRADIENTS)
        ids = run.tokenizer.encode(REVIEW)
        difference = log_odds(run, ids, label) - log_odds(run, [UNKNOWN_ID] * len(ids), label)
        assert found.scores.sum() == pytest.approx(difference, abs=2e-3)
        assert found.probability == pytest.approx(run.predict(REVIEW).probabilities[label], abs=1e-5)
        assert found.label == label


@pytest.mark.parametrize("method", [INTEGRATED_GRADIENTS, GRADIENT_TIMES_INPUT])
def test_every_word_has_a_score_and_an_unknown_one_says_nothing(method: str, trained: Trained) -> None:
    run: Any = firstlight.load(trained("sentiment"))
    found = attributions(run, REVIEW, method=method)
    assert found.words == ["it", "works", ",", "and", "it", "looks", "good", ":", "zyzzyva"]
    assert found.scores.shape == (9,)
    assert found.scores[-1] == 0
    assert found.scores[:-1].any()
    assert found.method == method
    assert found.label == run.predict(REVIEW).label
    unknown = run.tokenizer.encode(REVIEW).count(UNKNOWN_ID)
    assert found.notes == [f"not in the vocabulary and read as [UNK]: {unknown} of 9"]


def test_gradient_times_input_is_the_slope_at_the_text(trained: Trained) -> None:
    """Compare with finite differences of the log-odds on the path from the text to unknown words."""
    run: Any = firstlight.load(trained("sentiment"))
    found = attributions(run, "great", "positive", method=GRADIENT_TIMES_INPUT)
    (word,) = run.tokenizer.encode("great")
    table = run.network.embedding.weight
    real, unknown = table[word].detach().clone(), table[UNKNOWN_ID].detach().clone()

    def odds(share: float) -> float:
        with torch.no_grad():
            table[word] = real + share * (unknown - real)
            return float(run.network.double()(torch.tensor([[word]]))[0, 0])

    before, after = odds(-1e-3), odds(1e-3)
    assert found.scores[0] == pytest.approx(-(after - before) / 2e-3, rel=0.02)


def test_without_captum_the_gradient_is_taken_and_said(trained: Trained, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(insight, "find_spec", lambda name: None)
    assert attributions(firstlight.load(trained("sentiment")), REVIEW).method == GRADIENT_TIMES_INPUT  # type: ignore[arg-type]


def test_a_long_review_is_cut_as_in_training_and_that_is_said(trained: Trained) -> None:
    run: Any = firstlight.load(trained("sentiment"))  # the context of 23 tokens has a first and a last half
    words = [f"{a}{b}" for a in ("good", "bad", "fine", "poor", "nice") for b in ("", "ly", "er", "est", "ing", "ed")]
    found = attributions(run, " ".join(words))
    assert found.words == [*words[:12], *words[-11:]]
    assert "the text has 30 tokens; the network reads 23 of them" in found.notes
    (part,) = run.attention(" ".join(words)).maps
    assert [name.strip("[]") for name in part.keys] == found.words
    assert run.attention(" ".join(words)).notes == found.notes


def test_a_review_without_words_and_an_unknown_class_are_errors(trained: Trained) -> None:
    run: Any = firstlight.load(trained("sentiment"))
    for text in ("", "'`'"):
        for ask in (attributions, ClassifierRun.attention):
            with pytest.raises(UserError, match=r"the text (has no word that the network can read|is empty)"):
                ask(run, text)
    with pytest.raises(UserError, match="the class 'great' must be one of negative, positive"):
        attributions(run, REVIEW, "great")


@pytest.mark.slow  # 0.7 s; test_movies.py trains and reads each baseline
def test_the_attributions_of_a_logistic_regression_are_its_weights(scripts: Scripts, reviews_folder: Path) -> None:
    data = [f"data.path={reviews_folder}", "trainer.max_steps=9", "trainer.accelerator=cpu"]
    run: Any = firstlight.load(scripts.train("model=logistic", *data))
    weights = run.network.weights.weight.detach()[:, 0].numpy()
    expected = weights[run.tokenizer.encode(REVIEW)] - weights[UNKNOWN_ID]
    assert expected.any()
    for method in (INTEGRATED_GRADIENTS, GRADIENT_TIMES_INPUT):
        np.testing.assert_allclose(attributions(run, REVIEW, "positive", method=method).scores, expected, atol=1e-5)
    with pytest.raises(UserError, match="has no attention"):
        run.attention(REVIEW)


def test_the_next_tokens_are_those_of_the_network_the_likeliest_first(generators: dict[str, Any]) -> None:
    run = generators["text"]
    found = next_tokens(run, "the big cat sat on", 5)  # longer than the context
    ids = torch.from_numpy(run.tokenizer.encode("the big cat sat on").astype(int))[None, -CONTEXT:]
    with torch.no_grad():
        logits = run.network(ids)[0, -1].double()
    logits[run.tokenizer.unknown_id] = -math.inf
    expected, order = logits.softmax(dim=0).topk(5)
    np.testing.assert_allclose(found.probabilities, expected.numpy(), rtol=1e-6)
    names = {" ": "␣", "\n": "⏎"}
    assert found.tokens == [names.get(run.tokenizer.words[i], run.tokenizer.words[i]) for i in order]
    assert found.prompt == "the big cat sat on"
    assert found.notes == [f"the prompt has 18 tokens, but the network sees only the last {CONTEXT}"]


def test_all_next_tokens_together_are_certain_and_none_is_the_unknown_symbol(generators: dict[str, Any]) -> None:
    run = generators["names"]
    found = next_tokens(run, "an", 1000)
    assert len(found.tokens) == run.tokenizer.vocab_size - len(run.tokenizer.unwritten)
    assert found.probabilities.sum() == pytest.approx(1)
    assert "[end]" in found.tokens
    assert "." not in found.tokens
    with pytest.raises(UserError, match="count=0 must be at least 1"):
        next_tokens(run, "an", 0)


def test_surprise_is_what_each_token_costs_given_a_context_before_it(generators: dict[str, Any]) -> None:
    run = generators["text"]
    text = "the old dog sat on the x.\nthe"
    found = surprise(run, text)
    assert "".join(found.pieces) == text
    ids = [*run.tokenizer.encode("\n"), *run.tokenizer.encode(text)]  # the first token follows a line break
    for i in range(1, len(ids)):
        with torch.no_grad():
            seen = torch.tensor([[int(token) for token in ids[max(0, i - CONTEXT) : i]]])
            share = run.network(seen)[0, -1].softmax(dim=0)[int(ids[i])]
        assert found.bits[i - 1] == pytest.approx(-math.log2(share), abs=1e-4)
    assert found.notes == [f"each of the {len(text)} tokens is predicted from at most {CONTEXT} tokens before it"]
    assert found.bits_per_character.tolist() == found.bits.tolist()


def test_a_name_begins_after_the_end_of_another(generators: dict[str, Any]) -> None:
    run = generators["names"]
    found = surprise(run, "anna")
    expected = next_tokens(run, "", 1000)
    assert found.bits[0] == pytest.approx(-math.log2(expected.probabilities[expected.tokens.index("a")]), abs=0.02)
    assert found.notes == []


def test_an_unknown_character_is_said(generators: dict[str, Any]) -> None:
    for ask in (surprise, next_tokens, GeneratorRun.attention):
        assert any("unknown to the run" in note for note in ask(generators["text"], "the ß").notes)  # type: ignore[operator]


def test_an_empty_text_is_an_error(generators: dict[str, Any]) -> None:
    for ask in (surprise, GeneratorRun.attention):
        with pytest.raises(UserError, match="the text is empty; pass a text with at least one word"):
            ask(generators["text"], " \n")  # type: ignore[operator]


def test_a_generators_attention_has_a_map_for_each_block_and_looks_back(generators: dict[str, Any]) -> None:
    found = generators["text"].attention("the big cat sat")
    assert [part.name for part in found.maps] == ["block 1", "block 2"]
    for part in found.maps:
        assert part.queries == part.keys == list("big␣cat␣sat"), "the end is seen"
        assert part.weights.shape == (4, CONTEXT, CONTEXT)
        np.testing.assert_allclose(part.weights.sum(axis=2), 1, atol=1e-5)
        assert not np.triu(part.weights, 1).any()
