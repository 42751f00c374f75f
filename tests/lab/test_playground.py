"""Tests of the playground: answers, events, HTTP, and the command line."""

import base64
import contextlib
import copy
import dataclasses
import json
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstlight.classifier import panel as classifier
from firstlight.classifier.insight import attributions
from firstlight.classifier.panel import ClassifierPanel, of_words
from firstlight.commands import playground
from firstlight.errors import UserError
from firstlight.generator.panel import GeneratorPanel
from firstlight.generator.writing import Writing
from firstlight.kind.attention import AttentionMap
from firstlight.kind.load import load
from firstlight.kind.panel import BadInputError, Inputs, view_of
from firstlight.lab.playground import page
from firstlight.lab.playground.page import panel_of
from firstlight.lab.playground.server import Playground
from firstlight.translator.panel import TranslatorPanel
from tests_support import Scripts

REVIEW = "It is <b>GREAT</b>, and it broke <script>alert('x')</script> after two days & 17 hours."
SENTENCE = "There is a lamp in the garden."
SCRIPT = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def panel(played: Callable[[str], Path]) -> Callable[[str], Any]:
    """Return a function that returns the panel of a task's run."""
    panels: dict[str, Any] = {}

    def of(task: str) -> Any:
        if task not in panels:
            panels[task] = panel_of(load(played(task)))
        return panels[task]

    return of


def text_of(html: str) -> str:
    """Return the text of some HTML."""
    return unescape(re.sub(r"<[^>]*>", " ", html))


def weights_in(answer: dict[str, Any]) -> np.ndarray:
    """Return the attention weights in an answer, (rows, columns)."""
    view = answer["view"]
    return np.frombuffer(base64.b64decode(view["weights"]), np.uint8).reshape(-1, view["columns"]) / 255


# --- requests ---


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "the request must be a JSON object"),
        ({"text": 7}, "text=7 must be a text"),
        ({"seed": "7"}, "seed='7' must be a number"),
        ({"seed": float("nan")}, "seed=nan must be a number"),
        ({"seed": 3.5}, "seed=3.5 must be a whole number"),
        ({"seed": 10**400}, "seed must be between 3 and 11"),
    ],
)
def test_what_the_fields_do_not_take_is_refused(values: Any, message: str) -> None:
    with pytest.raises(BadInputError, match=re.escape(message)):
        asked = Inputs(values)
        asked.text("text")
        asked.integer("seed", 3, 11)


@pytest.mark.parametrize(
    ("asked", "number", "head"),
    [({}, 1, None), ({"map": 0}, 0, None), ({"map": 0, "head": 1}, 0, 1), ({"map": 7, "head": 7}, 1, None)],
)
def test_a_view_is_of_one_map_and_one_head_or_their_mean(asked: dict[str, int], number: int, head: int | None) -> None:
    weights = np.random.default_rng(3).random((2, 3, 5, 7), dtype=np.float32)  # maps, heads, queries, keys
    view = view_of([AttentionMap(f"<{i}>", each, [], []) for i, each in enumerate(weights)], Inputs(asked))
    expected = weights[number].mean(axis=0) if head is None else weights[number, head]
    assert np.abs(weights_in({"view": view}) - expected).max() < 0.005
    assert (view["map"], view["head"], view["maps"], view["heads"]) == (number, head, ["<0>", "<1>"], 3)


# --- classifiers ---


def test_an_answer_to_a_review_has_what_the_run_computes_and_begins_with_the_classes(panel) -> None:
    run, asked = panel("stars").run, {"text": REVIEW, "label": "2 stars", "map": 0, "head": 1}
    answer, predicted = panel("stars").answer(Inputs(asked)), run.predict(REVIEW)
    classes, words = answer["classes"], answer["words"]
    assert dict(zip(classes["names"], classes["shares"], strict=True)) == pytest.approx(predicted.probabilities)
    assert (classes["label"], classes["are_stars"], len(classes["names"])) == (predicted.label, True, 5)
    why = attributions(run, REVIEW, "2 stars")
    assert [words["words"][i] for i in words["read"]] == why.words
    assert words["scores"] == pytest.approx(why.scores.tolist())
    assert (words["label"], words["method"]) == ("2 stars", "by integrated gradients")
    assert np.abs(weights_in(answer) - run.attention(REVIEW).maps[0].weights[1]).max() < 0.005
    assert panel("stars").answer(Inputs(asked | {"quick": 1})) == {"classes": classes}


def test_attention_between_words_gathers_that_of_their_tokens() -> None:
    weights = np.array([[[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]], dtype=np.float32)
    found = of_words(AttentionMap("block 1", weights, [], []), np.array([4, 4, 9])).weights
    assert np.allclose(found, [[[0.45, 0.55], [0.75, 0.25]]])
    assert np.allclose(found.sum(axis=2), 1)


def test_a_network_without_attention_has_none_to_hover(panel, monkeypatch) -> None:
    monkeypatch.setattr(classifier, "has_attention", lambda _: False)
    answer = panel("stars").answer(Inputs({"text": REVIEW}))
    assert answer["words"]
    assert "view" not in answer


def test_unknown_words_are_marked(panel) -> None:
    words = panel("sentiment").answer(Inputs({"text": f"{REVIEW} xyzzyplugh"}))["words"]
    assert "great" in words["words"]
    assert words["words"].index("xyzzyplugh") in words["unknown"]


@pytest.mark.parametrize(
    ("task", "text", "says"),
    [("stars", " \n", "Type a review"), ("stars", "'`", "text has no word"), ("translation", " ", "Type a sentence")],
)
def test_a_text_without_words_is_said(panel, task: str, text: str, says: str) -> None:
    answer = panel(task).answer(Inputs({"text": text}))
    assert says in answer.pop("notice")
    assert not answer


def test_a_review_beyond_the_context_is_cut_and_said(panel) -> None:
    answer = panel("stars").answer(Inputs({"text": "good book " * 10_000}))
    assert "the text is long: only its first 10,000 characters are read" in answer["notes"]
    assert any("; the network reads 61 of them" in note for note in answer["notes"])
    assert len(answer["words"]["read"]) == 61
    assert len(json.dumps(answer)) < 50_000


# --- generators ---


def written(panel: GeneratorPanel, prompt: str, **asked: Any) -> tuple[list[dict], list[dict]]:
    """Return the events and all their tokens."""
    events = list(panel.events(prompt, panel.writing(Inputs(asked))))
    return events, [token for event in events for token in event.get("tokens", [])]


def test_the_text_is_what_the_run_writes_with_that_seed(panel) -> None:
    run, prompt = panel("shakespeare").run, "the good "
    asked = {"tokens": 97, "temperature": 0.7, "top_k": 5, "top_p": 0.9, "seed": 3}
    events, tokens = written(panel("shakespeare"), prompt, **asked)
    assert events[0]["begin"] + "".join(token["text"] for token in tokens) == run.generate(prompt, **asked)
    assert events[-1]["end"]["characters"] == 97 == len(tokens)
    assert tokens == written(panel("shakespeare"), prompt, **asked)[1]
    assert tokens != written(panel("shakespeare"), prompt, **(asked | {"seed": 4}))[1]


def test_the_first_candidates_are_what_may_follow_the_prompt(panel) -> None:
    expected = panel("shakespeare").run.next_tokens("ROMEO.", count=10)
    _, tokens = written(panel("shakespeare"), "ROMEO.", tokens=1, temperature=0)
    names, model, drawn, is_drawn = zip(*tokens[0]["candidates"], strict=True)
    assert list(names) == expected.tokens
    assert model == pytest.approx(expected.probabilities, abs=1e-4)
    assert is_drawn == (True, *[False] * 9)
    assert drawn == (1.0, *[0.0] * 9)


def test_candidates_say_with_what_probability_they_were_drawn(panel) -> None:
    _, tokens = written(panel("shakespeare"), "ROMEO.", tokens=83, temperature=0.5, top_k=3)
    for token in tokens:
        _, model, drawn, is_drawn = map(np.array, zip(*token["candidates"], strict=True))
        assert (drawn > 0).sum() == 3
        assert drawn.sum() == pytest.approx(1, abs=1e-4)
        sharper = model[:3] ** 2  # temperature 0.5
        assert drawn[:3] == pytest.approx(sharper / sharper.sum(), abs=1e-2)
        assert is_drawn.sum() == 1
        assert drawn[is_drawn][0] > 0


def test_a_run_of_names_writes_one_after_the_other(panel) -> None:
    events, tokens = written(panel("names"), "ma", tokens=100, seed=5)
    begins = [event["begin"] for event in events if "begin" in event]
    assert begins == ["ma", *["\nma"] * (len(begins) - 1)]
    assert 1 < len(begins) <= 20
    assert len(tokens) <= 100
    ends = [token for token in tokens if token["mark"] == "[end]"]
    assert len(ends) in (len(begins), len(begins) - 1)
    assert all(token["text"] == "" for token in ends)
    names = "".join(event.get("begin", "") + "".join(t["text"] for t in event.get("tokens", [])) for event in events)
    assert names.split("\n")[1].strip() == panel("names").run.generate("ma", tokens=90, seed=6).strip(), "the next seed"


def test_of_a_prompt_too_long_the_end_is_read_and_said(panel) -> None:
    events, _ = written(panel("shakespeare"), "x" * 90_000 + "the end", tokens=1)
    assert events[0]["begin"].endswith("xthe end")
    assert len(events[0]["begin"]) == 10_000
    assert "the prompt is long: only its last 10,000 characters are read" in events[0]["notes"]
    assert any("the network sees only the last 61" in note for note in events[0]["notes"])


@pytest.mark.parametrize("asked", [{"tokens": 2001}, {"temperature": -1}, {"top_k": 0}, {"top_p": 0}, {"seed": -1}])
def test_settings_have_limits(panel, asked: dict[str, float]) -> None:
    with pytest.raises(BadInputError, match=rf"{next(iter(asked))} must be between"):
        panel("shakespeare").writing(Inputs(asked))


@pytest.mark.parametrize(("task", "example"), [("names", ""), ("shakespeare", "ROMEO.")])
def test_examples_suit_the_run_whose_vocabulary_has_all_their_tokens(panel, task: str, example: str) -> None:
    examples = panel(task).examples()
    assert (example in examples, len({*examples})) == (True, 3)
    assert not any("unknown" in note for text in examples for note in panel(task).run.read(text, Writing()).notes)


# --- translators ---


def test_a_sentence_has_the_translation_and_the_attention_of_the_run(panel) -> None:
    run = panel("translation").run
    for beam_size in (1, 4):
        answer = panel("translation").answer(Inputs({"text": SENTENCE, "beam_size": beam_size, "map": 0, "head": 1}))
        assert answer["translation"] == run.translate(SENTENCE, beam_size=beam_size)
        found = run.cross_maps(SENTENCE, run.write(SENTENCE, beam_size=beam_size))[0]
        assert np.abs(weights_in(answer) - found.weights[1]).max() < 0.005
        assert answer["pair"] == {"columns": found.keys, "rows": found.queries}


def test_a_sentence_beyond_the_context_is_cut_and_said(panel) -> None:
    run, text = panel("translation").run, "the garden " * 5000
    (note,) = run.cut_notes(text[:10_000])
    assert "more than 61 tokens, the most that the run reads" in note
    answer = panel("translation").answer(Inputs({"text": text, "beam_size": 1}))
    assert note in answer["notes"]
    assert len(answer["pair"]["columns"]) <= 61


# --- the page ---


def test_the_page_has_a_section_for_each_kind_and_a_panel_for_each_run(panel) -> None:
    order = ["names", "stars", "translation", "sentiment"]
    html = page.page([panel(task) for task in order])
    assert re.findall(r'section data-kind="(\w+)"', html) == ["classifier", "generator", "translator"]
    assert re.findall(r'data-run="(\d)"', html) == ["1", "3", "0", "2"]
    assert re.findall(r"<h3>(.*?)</h3>", html) == [
        *("stars, tiny", "sentiment, tiny", "names, tiny", "translation (en → de), tiny")
    ]
    assert html.count("<form") == 3
    assert html.count(panel("stars").examples()[0][:20]) == 2, "once as a value, once to be read"
    assert 'data-kind="translator"' not in page.page([panel("names")])


def test_a_panel_says_what_run_it_shows(panel) -> None:
    run, record = panel("stars").run, panel("stars").run.folder.read()
    text = text_of(page.page([panel("stars")]))
    metric = record["optimized_metric"]
    value = f"{metric} {record['metrics'][metric]:.4g}"
    assert f"{record['parameters']:,} parameters · {value} · context length 61" in text
    assert str(run.folder.path) in text
    assert "GENERATED SAMPLE" not in text
    sample = copy.copy(run)
    sample.data_source = "sample"
    assert "trained on a GENERATED SAMPLE, not on real data" in text_of(page.page([ClassifierPanel(sample)]))


def test_panels_say_what_differs_in_the_commands_of_their_runs_without_paths(panel, tmp_path: Path) -> None:
    runs = [copy.copy(panel("stars").run) for _ in range(2)]
    for run, typed in zip(
        runs, (["seed=1", "dropout=0", "data.path=/home/me"], ["seed=1", "dropout=0.5"]), strict=True
    ):
        run.folder = dataclasses.replace(run.folder, path=tmp_path / typed[1])
        run.folder.path.mkdir()
        run.folder.write({"overrides": typed})
    html = page.page([ClassifierPanel(run) for run in runs])
    assert re.findall(r"· (\w+=[^<]*)", html) == ["dropout=0", "dropout=0.5"]
    assert "/home/me" not in html


def test_what_a_run_says_of_itself_is_text(panel, tmp_path: Path) -> None:
    run = copy.copy(panel("stars").run)
    run.folder = dataclasses.replace(run.folder, path=tmp_path / "<b>$sections")
    run.folder.path.mkdir()
    run.folder.write({"task": SCRIPT, "model": "${x}"})
    html = page.page([ClassifierPanel(run)])
    assert SCRIPT not in html
    assert f"{SCRIPT}, ${{x}}" in unescape(html)
    assert "&lt;b&gt;$sections" in html


# --- over HTTP ---


@contextlib.contextmanager
def served(app: Playground) -> Iterator[str]:
    """Run an application and yield its address."""
    server, listening = playground.server_of(app), playground.listen(0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    finally:
        app.stopping.set()
        server.should_exit = True
        thread.join(30)
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def address(panel) -> Iterator[str]:
    """Yield the address of a playground of four runs: stars, sentiment, shakespeare, translation."""
    with served(Playground([panel(task) for task in ("stars", "sentiment", "shakespeare", "translation")])) as found:
        yield found


def sent(address: str, path: str, data: bytes | None = None, **headers: str) -> HTTPResponse:
    """Send a GET request, or POST some data, and return the response with an unread body."""
    connection = HTTPConnection(address, timeout=60)
    connection.request("GET" if data is None else "POST", path, data, {"Content-Type": "application/json"} | headers)
    return connection.getresponse()


def ask(address: str, path: str, values: Any, **headers: str) -> tuple[int, str]:
    """Post values as JSON, or bytes unchanged, and return the status and the body."""
    response = sent(address, path, values if isinstance(values, bytes) else json.dumps(values).encode(), **headers)
    return response.status, response.read().decode()


def test_twenty_at_once_are_all_answered_as_one_would_be(panel, address: str) -> None:
    asked = {
        "/runs/0/answer": {"text": REVIEW},
        "/runs/1/answer": {"text": "good " * 50},
        "/runs/2/write": {"text": "ROMEO.", "tokens": 60},
        "/runs/3/answer": {"text": SENTENCE},
    }

    def events(body: str) -> list[Any]:
        return [event for line in body.splitlines() for event in json.loads(line).get("tokens", [])]

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda path: (path, *ask(address, path, asked[path])), [*asked] * 5))
    assert len(answers) == 20
    alone = {path: ask(address, path, values)[1] for path, values in asked.items()}
    for path, status, body in answers:
        assert status == 200
        assert (events(body) == events(alone[path])) if path.endswith("write") else (body == alone[path])
    assert len(events(alone["/runs/2/write"])) == 60


@pytest.mark.parametrize(
    ("path", "values", "headers", "status", "says"),
    [
        ("/runs/4/answer", {}, {}, 404, ""),
        ("/runs/2/answer", {}, {}, 404, ""),
        ("/runs/0/answer", {}, {"Host": "evil.test"}, 400, "Invalid host"),
        ("/runs/0/answer", {"text": "good book"}, {"Content-Type": "text/plain"}, 400, "application/json"),
        ("/runs/0/answer", b"[" * 100_000, {}, 400, "not valid JSON"),
        ("/runs/0/answer", {"text": "good book", "head": -1}, {}, 400, "head must be between"),
        ("/runs/0/answer", {"text": "x" * 2_000_001}, {}, 400, "at most 2,000,000 bytes"),
        ("/runs/2/write", b'{"seed": ' + b"1" * 5000 + b"}", {}, 400, "not valid JSON"),
        ("/runs/2/write", {"seed": "<b>"}, {}, 400, "seed='<b>' must be a number"),
        ("/runs/0/answer", {"text": "good \ud800 book"}, {}, 200, "book"),
        ("/runs/2/write", {"text": "\ud800", "tokens": 1}, {}, 200, '{"begin": "?"'),
    ],
)
def test_bad_input_is_answered_in_words(address: str, path, values, headers, status: int, says: str) -> None:
    found, body = ask(address, path, values, **headers)
    assert found == status
    assert says in body
    assert "Traceback" not in body


def test_the_browser_is_told_to_ask_nobody_else(address: str) -> None:
    for path in ("/", "/page.js"):
        headers = sent(address, path).headers
        policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == "'self'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
    assert ask(address, "/runs/0/answer", {})[0] == 200


class Watched(GeneratorPanel):
    """Panel of a generator with events from the test."""

    def __init__(self, run: Any, events: Callable[[], Iterator[dict]]) -> None:
        super().__init__(run)
        self.events = events

    def write(self, asked: Inputs) -> Iterator[dict]:
        return self.events()


def test_others_are_answered_while_a_run_writes_and_never_at_the_same_moment(panel) -> None:
    busy, overlaps, over = threading.Lock(), [], threading.Event()

    def events() -> Iterator[dict]:
        while not over.is_set():  # so a text that is sent only at its end would never arrive
            overlaps.append(not busy.acquire(blocking=False))
            over.wait(0.005)
            busy.release()
            yield {"begin": "x", "notes": []}

    def quick() -> Iterator[dict]:
        overlaps.append(not busy.acquire(blocking=False))
        over.wait(0.05)
        busy.release()
        yield {"end": {}}

    turns = iter([events, quick, quick, quick])
    with (
        served(Playground([Watched(panel("names").run, lambda: next(turns)())])) as address,
        ThreadPoolExecutor() as pool,
    ):
        long = sent(address, "/runs/0/write", b"{}")
        long.readline()
        answers = list(pool.map(lambda _: ask(address, "/runs/0/write", {})[1], range(3)))
        assert [json.loads(answer) for answer in answers] == [{"end": {}}] * 3
        over.set()
        long.read()
    assert not any(overlaps)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ZeroDivisionError("secret"), "the text could not be completed"),
        (UserError("the character '%' is not in the vocabulary"), "the character '%' is not in the vocabulary"),
    ],
)
def test_an_error_while_a_run_writes_is_the_last_event(panel, caplog, error: Exception, told: str) -> None:
    def events() -> Iterator[dict]:
        yield {"begin": "first", "notes": []}
        raise error

    with served(Playground([Watched(panel("names").run, events)])) as address:
        _, last = ask(address, "/runs/0/write", {})[1].splitlines()
    assert ("secret" in last, told in last + caplog.text) == (False, True)
    assert (json.loads(last)["error"] == told) == isinstance(error, UserError)


def test_what_we_got_wrong_is_said_without_a_traceback(panel, monkeypatch) -> None:
    def answer(_: Any, __: Any) -> str:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(TranslatorPanel, "answer", answer)
    with served(Playground([panel("translation")])) as address:
        status, body = ask(address, "/runs/0/answer", {"text": "x"})
    assert (status, "secret" in body) == (500, False)


# --- connections without a request ---

HALF_A_REQUEST = b"POST /runs/0/write HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def silent(address: str, count: int, sends: bytes = b"") -> list[socket.socket]:
    """Return open connections without a complete request."""
    host, port = address.split(":")
    opened = []
    for _ in range(count):
        opened.append(socket.create_connection((host, int(port)), timeout=30))
        opened[-1].sendall(sends)
    return opened


def is_closed(connection: socket.socket) -> bool:
    """Return whether the server closes a connection within its timeout."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.fixture
def names_address(panel) -> Iterator[str]:
    """Yield the address of a playground of one run that writes no text."""
    with served(Playground([Watched(panel("names").run, lambda: iter([{"end": {}}]))])) as found:
        yield found


def test_the_oldest_silent_connection_makes_room_for_a_new_one(names_address: str, monkeypatch) -> None:
    monkeypatch.setattr("firstlight.lab.playground.server.MOST_CONNECTIONS", 5)
    opened = silent(names_address, 5)
    assert ask(names_address, "/runs/0/write", {})[0] == 200
    assert is_closed(opened[0])
    opened += silent(names_address, 20, HALF_A_REQUEST)
    assert ask(names_address, "/runs/0/write", {})[0] == 200
    assert all(map(is_closed, opened[:-5]))
    for connection in opened:
        connection.close()


@pytest.mark.parametrize("sends", [b"", b"GET / HT", HALF_A_REQUEST + b"Content-Length: 9\r\n\r\n{"])
def test_a_connection_has_some_seconds_to_ask(capfd, names_address, monkeypatch, sends) -> None:
    monkeypatch.setattr("firstlight.lab.playground.server.SECONDS_TO_ASK", 0.2)
    (connection,) = silent(names_address, 1, sends)
    assert is_closed(connection)
    connection.close()
    assert ask(names_address, "/runs/0/write", {})[0] == 200
    assert capfd.readouterr().err == ""


def test_a_connection_that_is_answered_may_take_its_time(panel, monkeypatch) -> None:
    monkeypatch.setattr("firstlight.lab.playground.server.SECONDS_TO_ASK", 0.1)
    over = threading.Event()

    def events() -> Iterator[dict]:
        over.wait(0.4)
        yield {"end": {}}

    with served(Playground([Watched(panel("names").run, events)])) as address:
        assert ask(address, "/runs/0/write", {}) == (200, '{"end": {}}\n')


# --- the command line ---


def test_a_port_that_was_asked_for_must_be_free_and_otherwise_the_next_free_one_is_used(scripts, trained, monkeypatch):
    run = str(trained("sentiment"))
    with playground.listen(0) as other:
        port = other.getsockname()[1]
        error = scripts.refuse("playground", run, "--port", str(port))
        assert re.search(f"--port {port}: Address already in use .*; choose another port", error)
        monkeypatch.setattr(playground, "PORT", port)
        monkeypatch.setattr(playground, "LAST_PORT", port + 50)
        with playground.listen(None) as listening:
            host, found = listening.getsockname()
            assert (host, port < found <= port + 50) == ("127.0.0.1", True)
        monkeypatch.setattr(playground, "LAST_PORT", port)
        with pytest.raises(UserError, match=f"--port {port}: Address already in use"):
            playground.listen(None)


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_the_remedy_is_named(scripts: Scripts, monkeypatch, missing: str) -> None:
    monkeypatch.setattr(playground, "find_spec", lambda name: None if name == missing else sys)
    remedy = "the playground requires the extra playground: pip install -c constraints.txt -e '.[playground]'"
    assert remedy in scripts.refuse("playground", "nowhere")
