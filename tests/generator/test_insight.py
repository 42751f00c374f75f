"""Insights into one text of a generator: next tokens, surprise and attention."""

import math
from typing import Any

import numpy as np
import pytest
import torch

import firstlight
from firstlight.errors import UserError
from firstlight.generator.run import GeneratorRun
from tests_support import Scripts

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


def test_the_next_tokens_are_those_of_the_network_the_likeliest_first(generators: dict[str, Any]) -> None:
    run = generators["text"]
    found = run.next_tokens("the big cat sat on", 5)  # longer than the context
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
    found = run.next_tokens("an", 1000)
    assert len(found.tokens) == run.tokenizer.vocab_size - len(run.tokenizer.unwritten)
    assert found.probabilities.sum() == pytest.approx(1)
    assert "[end]" in found.tokens
    assert "." not in found.tokens
    with pytest.raises(UserError, match="count=0 must be at least 1"):
        run.next_tokens("an", 0)


def test_surprise_is_what_each_token_costs_given_a_context_before_it(generators: dict[str, Any]) -> None:
    run = generators["text"]
    text = "the old dog sat on the x.\nthe"
    found = run.surprise(text)
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
    found = run.surprise("anna")
    expected = run.next_tokens("", 1000)
    assert found.bits[0] == pytest.approx(-math.log2(expected.probabilities[expected.tokens.index("a")]), abs=0.02)
    assert found.notes == []


def test_an_unknown_character_is_said(generators: dict[str, Any]) -> None:
    for ask in (GeneratorRun.surprise, GeneratorRun.next_tokens, GeneratorRun.attention):
        assert any("unknown to the run" in note for note in ask(generators["text"], "the ß").notes)  # type: ignore[operator]


def test_an_empty_text_is_an_error(generators: dict[str, Any]) -> None:
    for ask in (GeneratorRun.surprise, GeneratorRun.attention):
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
