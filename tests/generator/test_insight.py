"""Insights into one text of a generator: next tokens, surprise and attention."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import firstlight
from firstlight.errors import UserError
from firstlight.generator.run import GeneratorRun

CONTEXT = 13
PROMPT = "ka lo mi né ru sö"


@pytest.fixture(scope="module")
def runs(generators: Path) -> dict[str, GeneratorRun]:
    return {name: firstlight.load(generators / "runs" / name) for name in ("text", "names")}


def test_the_next_tokens_are_those_of_the_network_the_likeliest_first(runs: dict[str, GeneratorRun]) -> None:
    run = runs["text"]
    found = run.next_tokens(PROMPT, 5)  # longer than the context
    ids = torch.from_numpy(run.tokenizer.encode(PROMPT).astype(int))[None, -CONTEXT:]
    with torch.no_grad():
        logits = run.network(ids)[0, -1].double()
    logits[run.tokenizer.unknown_id] = -math.inf
    expected, order = logits.softmax(dim=0).topk(5)
    np.testing.assert_allclose(found.probabilities, expected.numpy(), rtol=1e-6)
    names = {" ": "␣", "\n": "⏎"}
    assert found.tokens == [names.get(run.tokenizer.words[i], run.tokenizer.words[i]) for i in order]
    assert found.prompt == PROMPT
    assert found.notes == [f"the prompt has 17 tokens, but the network sees only the last {CONTEXT}"]


def test_all_next_tokens_together_are_certain_and_none_is_the_unknown_symbol(runs: dict[str, GeneratorRun]) -> None:
    run = runs["names"]
    found = run.next_tokens("ka", 1000)
    assert len(found.tokens) == run.tokenizer.vocab_size - len(run.tokenizer.unwritten)
    assert found.probabilities.sum() == pytest.approx(1)
    assert "[end]" in found.tokens
    assert "." not in found.tokens
    with pytest.raises(UserError, match="count=0 must be at least 1"):
        run.next_tokens("ka", 0)


def test_surprise_is_what_each_token_costs_given_a_context_before_it(runs: dict[str, GeneratorRun]) -> None:
    run = runs["text"]
    text = f"{PROMPT}.\nka"
    found = run.surprise(text)
    assert "".join(found.pieces) == text
    ids = [*run.tokenizer.encode("\n"), *run.tokenizer.encode(text)]  # the first token follows a line break
    for i in range(1, len(ids)):
        with torch.no_grad():
            seen = torch.tensor([[int(token) for token in ids[max(0, i - CONTEXT) : i]]])
            share = run.network(seen)[0, -1].softmax(dim=0)[int(ids[i])]
        assert found.bits[i - 1] == pytest.approx(-math.log2(share), abs=1e-4)
    assert found.notes == [f"each of the {len(text)} tokens is predicted from at most {CONTEXT} before it"]
    assert found.bits_per_character.tolist() == found.bits.tolist()


def test_a_name_begins_after_the_end_of_another(runs: dict[str, GeneratorRun]) -> None:
    run = runs["names"]
    found = run.surprise("kalo")
    expected = run.next_tokens("", 1000)
    assert found.bits[0] == pytest.approx(-math.log2(expected.probabilities[expected.tokens.index("k")]), abs=0.05)
    assert found.notes == []


def test_an_unknown_character_is_said(runs: dict[str, GeneratorRun]) -> None:
    for ask in (GeneratorRun.surprise, GeneratorRun.next_tokens, GeneratorRun.attention):
        assert any("unknown to the run" in note for note in ask(runs["text"], "ka ß").notes)  # type: ignore[operator]


def test_an_empty_text_is_an_error(runs: dict[str, GeneratorRun]) -> None:
    for ask in (GeneratorRun.surprise, GeneratorRun.attention):
        with pytest.raises(UserError, match="the text is empty; pass a text with at least one word"):
            ask(runs["text"], " \n")  # type: ignore[operator]


def test_a_generators_attention_has_a_map_for_each_block_and_looks_back(runs: dict[str, GeneratorRun]) -> None:
    (part,) = runs["text"].attention(PROMPT).maps
    assert part.name == "block 1"
    assert part.queries == part.keys == list(PROMPT[-CONTEXT:].replace(" ", "␣")), "the end is seen"
    assert part.weights.shape[1:] == (CONTEXT, CONTEXT)
    np.testing.assert_allclose(part.weights.sum(axis=2), 1, atol=1e-5)
    assert not np.triu(part.weights, 1).any()
