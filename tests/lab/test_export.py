"""Tests of the page that `playground --export` writes: it answers as the runs do, without a server or a network."""

import base64
import copy
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from browser import Opened, open_file
from firstlight.classifier.panel import ClassifierPanel
from firstlight.decoding.generate import Sampling
from firstlight.errors import UserError
from firstlight.generator.panel import GeneratorPanel
from firstlight.generator.plays import clean
from firstlight.kind.load import load
from firstlight.kind.panel import Inputs
from firstlight.lab.playground.page import described, exported, exported_page, exported_script, panel_of
from firstlight.networks import (
    LSTM,
    BagOfWords,
    Classifier,
    ClassifierConfig,
    Generator,
    GeneratorConfig,
    LogisticRegression,
    MultiHeadAttention,
)
from tests_support import Scripts, some_text

WAIT = 30_000  # milliseconds, on a busy machine
REVIEWS = [
    "It is <b>GREAT</b>, and it broke after two days &amp; 17 hours.",
    "The café's battery is NOT great!!! But the rest… is good.",
    "zyzzyva " * 9 + "fine",
    "I love it. " * 200,
]
MOST_BYTES = 150_000  # of our own script


class OwnAttention(MultiHeadAttention):
    """A user's attention."""


@pytest.fixture(scope="module")
def runs(played: Callable[[str], Path], trained: Callable[[str], Path]) -> list[Any]:
    """Return a run of each kind: 0 is a classifier, 1 a generator, 2 a translator and 3 a masked language model."""
    return [
        load(folder) for folder in (trained("stars"), played("names"), played("translation"), trained("masked_reviews"))
    ]


@pytest.fixture(scope="module")
def opened(runs: list[Any], browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Yield the exported page of a run of each kind, opened with the network off."""
    folder = tmp_path_factory.mktemp("exported")
    names = [str(run.path) for run in runs]
    done = Scripts(folder).run("playground", *names, "--export", "page.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("page.html (")
    found = open_file(browser, folder / "page.html", offline=True)
    yield found
    assert found.errors == []
    assert len(found.requests) == 1, "nothing but the file is requested"


def test_a_person_uses_every_kind_of_run(opened: Opened) -> None:
    page = opened.page
    page.locator("[data-kind=classifier] textarea").fill(REVIEWS[0])
    page.wait_for_selector("[data-run='0'] .word:text-is('broke')", timeout=WAIT)
    assert page.locator("[data-run='0'] b b, [data-run='0'] .word b").count() == 0
    page.click(".bar[data-label='2 stars']")
    page.wait_for_selector(".says b:text-is('2 stars')", timeout=WAIT)
    page.locator("[data-kind=generator] [name=tokens]").fill("60")
    texts = []
    for seed in ("7", "8", "7"):
        page.locator("[data-kind=generator] [name=seed]").fill(seed)
        page.get_by_role("button", name="Write").click()
        page.wait_for_selector("text=/\\d+ characters in/", timeout=WAIT)
        texts.append(page.locator(".output").evaluate("e => e.textContent"))
    assert texts[0] == texts[2] != texts[1]
    page.locator(".token").nth(2).click()
    assert page.locator(".considered .row.drawn").count() == 1
    page.locator("[data-kind=masked] textarea").fill("It [MASK] after a week")
    page.wait_for_selector("[data-run='3'] .verdict:has-text('after a week')", timeout=WAIT)
    page.locator("[data-kind=translator] textarea").fill("A man <b>sleeps</b>.")
    page.wait_for_selector("[data-run='2'] .verdict.translation", timeout=WAIT)
    assert page.locator("[name=beam_size]").count() == 0, "a page translates greedily"


def test_the_page_does_not_name_folders(opened: Opened, runs: list[Any]) -> None:
    assert str(runs[0].path) not in opened.page.content()


def test_reviews_have_the_probabilities_of_the_run(opened: Opened, runs: list[Any]) -> None:
    compute = "(texts) => texts.map((t) => [...sharesOf(networkOf(0).run(networkOf(0).encode(t).ids))])"
    np.testing.assert_allclose(opened.page.evaluate(compute, REVIEWS), runs[0].probabilities(REVIEWS), atol=1e-5)
    notes = opened.page.evaluate("(texts) => texts.map((t) => networkOf(0).encode(t).notes)", REVIEWS)
    assert notes == [runs[0].read(runs[0].words(text)).notes for text in REVIEWS]


def test_a_generator_writes_what_the_run_writes(opens: Callable[..., Opened], played: Callable[[str], Path]) -> None:
    run: Any = load(played("shakespeare"))
    page = opens("about:blank").page
    page.set_content(exported_page([panel_of(run)]))
    prompt, tokens = some_text(3000)[:40], 3 * run.network.context_length  # the context is filled several times
    greedily = "([text, length]) => [...networkOf(0).generate(text, { length, temperature: 0 })]"
    write = f"{greedily}.map(({{ text }}) => text).join('')"
    found = page.evaluate(write, [prompt, tokens])
    assert clean(prompt) + found == run.generate(prompt, tokens=tokens, greedy=True)


def test_a_generator_that_is_not_causal_writes_without_a_cache(opened: Opened) -> None:
    torch.manual_seed(1)
    config = GeneratorConfig(dim=8, num_heads=2, context_length=6, causal=False)
    network = Generator(config, 11).eval()
    description, tensors = described(network, config)
    tokenizer = {"kind": "characters", "characters": "abcdefghijk", "unknown_symbol": None}
    description |= {"kind": "generator", "tokenizers": [tokenizer], "separator_id": None, "first_id": 0}
    write = """([description, data]) => {
        const buffer = Uint8Array.from(atob(data), (byte) => byte.charCodeAt(0)).buffer;
        const network = openNetwork(description, buffer);
        return [...network.generate("db", { length: 9, temperature: 0 })].map(({ id }) => id);
    }"""
    found = opened.page.evaluate(write, [description, base64.b64encode(tensors).decode()])
    ids = [3, 1]
    with torch.inference_mode():
        for _ in range(9):
            ids.append(int(network(torch.tensor([ids[-6:]]))[0, -1].argmax()))
    assert found == ids[2:]


@pytest.mark.parametrize(
    "options", [{"temperature": 0.7}, {"top_k": 3}, {"top_p": 0.6}, {"top_k": 9, "top_p": 0.8}, {}]
)
def test_tokens_are_drawn_with_the_probabilities_of_the_sampling(opened: Opened, runs: list[Any], options: Any) -> None:
    torch.manual_seed(2)
    logits = torch.randn(1, runs[1].network.vocab_size) * 2
    logits[0, 5] = logits[0, 7]  # equal scores keep their order
    expected = Sampling(**options, never=runs[1].tokenizer.unwritten).probabilities(logits)[0]
    asked = {"temperature": 1, "topK": options.get("top_k", 10**6), "topP": options.get("top_p", 1)} | options
    compute = "([logits, asked]) => [...networkOf(1).probabilities(logits, asked)]"
    np.testing.assert_allclose(opened.page.evaluate(compute, [logits[0].tolist(), asked]), expected, atol=1e-6)


def test_translations_are_the_greedy_ones_of_the_run(opened: Opened, runs: list[Any]) -> None:
    sentences = ["A man is on a bike.", "Two  dogs: “play”!", "unbelievable zyzzyva", "There is a lamp. " * 20]
    translate = "(text) => [...networkOf(2).generate(text)].map(({ id }) => id).filter((id) => id > 3)"
    write = f"(texts) => texts.map({translate})"
    expected = [[i for i in runs[2].write(text, beam_size=1) if i > 3] for text in sentences]
    assert opened.page.evaluate(write, sentences) == expected


def test_masked_words_are_those_of_the_run(opened: Opened, runs: list[Any]) -> None:
    box = opened.page.locator("[data-kind=masked] textarea")
    box.fill("I [MASK] it, and it [MASK] after a week")
    filled = runs[3].fill_in("I [MASK] it, and it [MASK] after a week", 8)
    opened.page.wait_for_selector(f"[data-run='3'] .verdict:text-is('{filled.text}')", timeout=WAIT)
    names = opened.page.locator("[data-run='3'] .bar .name").all_inner_texts()
    assert names == [filling.word for fillings in filled.fillings for filling in fillings]


def answer(opened: Opened, number: int, **asked: Any) -> str:
    """Return the answer of the page for the fields of a request, as HTML."""
    compute = "([run, asked]) => computedAnswer(run, asked, new AbortController().signal)"
    return str(opened.page.evaluate(compute, [number, asked]))


@pytest.mark.parametrize("number", [0, 2, 3])
def test_answers_are_those_of_the_server(opened: Opened, runs: list[Any], number: int) -> None:
    """Compare the verdict, the bars and the notes of a panel."""
    panel = panel_of(runs[number])
    texts = ["", " ", "!", "It [MASK] a week & 5 zyzzyvas", "[MASK] " + "good " * 3000, *panel.examples()]
    for text in texts:
        asked = {"text": text, "quick": 1, "beam_size": 1}
        expected = opened.page.evaluate("shownAnswer", panel.answer(Inputs(asked)))
        assert shown(answer(opened, number, **asked)) == shown(expected), text


def shown(html: str) -> list[tuple[str, str]]:
    """Return the class and the text of each part of an answer that the page and the server have in common."""
    parts = re.findall(r'<(p|span) class="(verdict|name|share|note|notice)[^"]*">(.*?)</\1>', html)
    return [(name, unescape(re.sub("<[^>]*>", "", text))) for _, name, text in parts]


def test_all_parts_of_an_answer_are_shown_and_texts_are_text(opened: Opened) -> None:
    words = ["<i>", *(f"w{i}" for i in range(1, 45)), "a&b", "last"]
    parts = {
        "classes": {"names": ["b", '"<a>'], "shares": [0.25, 0.75], "label": "b", "are_stars": True},
        "words": {
            "words": words,
            "read": [0, 45],
            "scores": [-1.0, 3.0],
            "unknown": [45],
            "label": "<5>",
            "method": "<m>",
        },
        "pair": {"columns": ["<k>", ""], "rows": ["<q>"]},
        "view": {"weights": "AAA=", "columns": 2, "maps": ["<0>", "<1>"], "map": 1, "heads": 3, "head": 0},
        "notes": ["<n>", "<n>"],
    }
    html = opened.page.evaluate("shownAnswer", parts)
    assert not re.findall("<(?!/?(?:p|b|i|div|span|button|label|select|option)[ >])", html)
    assert "<b>&#34;&#60;a&#62;</b> 75.0%, 1.8 stars on average" in html
    assert re.findall(r'data-label="([^"]*)" aria-pressed="(\w+)"', html) == [
        ("b", "true"),
        ("&#34;&#60;a&#62;", "false"),
    ]
    assert re.findall(r"width:([\d.]+)%", html) == ["25.00", "75.00"]
    word = r'<span class="(word[^"]*)" data-row="(\d)" data-column="\d"\s+style="--shade:([^"]*)" title="([^"]*)">'
    read = re.findall(word, html)
    assert [each[:2] for each in read] == [("word", "0"), ("word unknown", "1")]
    assert ("--against) 17%" in read[0][2], "--for) 50%" in read[1][2]) == (True, True)
    assert [each[3] for each in read] == ["-1.00 for &#60;5&#62;", "not in the vocabulary"]
    unread = re.findall(r'<span class="unread"[^>]*>([^<]*)<', html)
    assert [each.split() for each in unread] == [[*words[1:31], "…", "and", "14", "more"], ["last"]]
    assert re.findall(r'value="(\d*)" selected', html) == ["1", "0"]
    assert html.count("<option") == 2 + 4
    assert (html.count("data-row="), html.count("data-column="), html.count("&#60;n&#62;")) == (2 + 1, 2 + 2, 1)
    many = {"bars": [{"names": [f"c{i}" for i in range(12)], "shares": [i / 66 for i in range(12)]}]}
    bars = opened.page.evaluate("shownAnswer", many)
    assert re.findall(r'data-label="c(\d+)"', bars) == [str(i) for i in range(11, 1, -1)]
    shares = opened.page.evaluate("(shares) => shares.map(shareText)", [0, 0.00001, 0.073, 0.9999, 1])
    assert shares == ["0.0%", "<0.1%", "7.3%", ">99.9%", "100.0%"]


def test_a_mask_beyond_the_context_is_named(opened: Opened) -> None:
    assert "and a [MASK] is cut off; shorten the text" in answer(
        opened, 3, text="word " * 200 + "[MASK]" + " word" * 200
    )


def test_our_script_is_small() -> None:
    assert len(exported_script().encode()) < MOST_BYTES


def test_texts_of_a_run_are_text_in_the_page(opens: Callable[..., Opened], runs: list[Any]) -> None:
    hostile = "</script><script>window.ran = 1</script><img src=x onerror='window.ran = 1'>"
    run = copy.copy(runs[0])
    run.class_names = [hostile, *run.class_names[1:]]
    page = opens("about:blank").page
    page.set_content(exported_page([ClassifierPanel(run)]))
    page.wait_for_selector(".bar", timeout=WAIT)
    assert page.locator(".bar .name").first.inner_text() == hostile
    assert page.locator("main img").count() == 0
    assert page.evaluate("window.ran === undefined")


def of_own_attention() -> Classifier:
    config = ClassifierConfig(attention={"_target_": f"{OwnAttention.__module__}.OwnAttention"})
    return Classifier(config, 9, 2)


@pytest.mark.parametrize(
    ("panel", "network", "part"),
    [
        (GeneratorPanel, lambda: LSTM(GeneratorConfig(), 9), "LSTM"),
        (ClassifierPanel, lambda: BagOfWords(ClassifierConfig(), 9, 2), "BagOfWords"),
        (ClassifierPanel, lambda: LogisticRegression(ClassifierConfig(), 9, 2), "LogisticRegression"),
        (ClassifierPanel, of_own_attention, "OwnAttention (blocks.0.self_attention)"),
    ],
)
def test_a_network_that_the_page_cannot_compute_is_refused_by_name(panel: Any, network: Any, part: str) -> None:
    run = SimpleNamespace(path="logs/mine", network=network(), metadata={}, target_encoding=None, readable=str)
    message = f"logs/mine: --export does not support {part}; name another run, or leave out --export"
    with pytest.raises(UserError, match=re.escape(message)):
        exported(panel(run))


def test_target_encoding_is_refused(runs: list[Any]) -> None:
    run = copy.copy(runs[0])
    run.target_encoding = object()
    with pytest.raises(UserError, match="--export does not support data"):
        exported(ClassifierPanel(run))
