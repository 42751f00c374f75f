"""Tests with a local server that answers the requests of `datasets` and `huggingface_hub` like the Hub."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from firstlight.data.sources import PROBE_SECONDS
from firstlight.files.rows import read_rows
from local_server import LocalServer

SRC = Path(__file__).parents[2] / "src"


# --- the server ---


class HubServer(LocalServer):
    """A Hub whose data sets are dictionaries of files.

    newest: the revision of each data set; files: the files of each revision; broken: other answers, by a pattern of the
    path of the request.
    """

    def __init__(self) -> None:
        super().__init__()
        self.newest: dict[str, str] = {}
        self.files: dict[tuple[str, str], dict[str, bytes]] = {}
        self.broken: dict[str, tuple[int, dict[str, str]]] = {}

    def publish(self, dataset_id: str, files: dict[str, bytes]) -> str:
        revision = hashlib.sha1(repr(files).encode(), usedforsecurity=False).hexdigest()
        self.newest[dataset_id] = revision
        self.files[dataset_id, revision] = files
        return revision

    def answer(self, path: str, body: str) -> tuple[int, dict[str, str], bytes]:
        for pattern, (status, headers) in self.broken.items():
            if re.search(pattern, path):
                return status, headers, b""
        if match := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/(\w+).*)?", path):
            return self.describe(match[1], match[2], match[3], parse_qs(body).get("paths", []))
        if match := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/(\w+)/(.+)", path):
            return self.download(match[1], match[2], match[3])
        return 404, {}, b""

    def describe(
        self, dataset_id: str, what: str | None, revision: str | None, paths: list[str]
    ) -> tuple[int, dict[str, str], bytes]:
        if dataset_id not in self.newest:
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        revision = revision or self.newest[dataset_id]
        entries = [
            {"type": "file", "path": name, "size": len(content), "oid": object_id(content)}
            for name, content in self.files[dataset_id, revision].items()
        ]
        if what == "paths-info":
            answer: Any = [entry for entry in entries if entry["path"] in paths]
        elif what == "tree":
            answer = entries
        else:
            siblings = [{"rfilename": entry["path"]} for entry in entries]
            answer = {"id": dataset_id, "sha": revision, "private": False, "gated": False, "siblings": siblings}
        return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()

    def download(self, dataset_id: str, revision: str, name: str) -> tuple[int, dict[str, str], bytes]:
        content = self.files[dataset_id, revision].get(name)
        if content is None:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": revision}, b""
        return 200, {"ETag": f'"{object_id(content)}"', "X-Repo-Commit": revision, "Accept-Ranges": "bytes"}, content


def object_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


# --- the client ---

CLIENT = """
import json, logging, os, sys, time
from pathlib import Path

import datasets, huggingface_hub, pyarrow.parquet  # once for all; HF_ENDPOINT is read here
import aiohttp, datasets.io.parquet, fsspec.implementations.http, numpy.testing, scipy.io  # a download does, 0.6 s each

from firstlight.data import sources
from firstlight.data.encoding import encode
from firstlight.data.options import ReviewOptions, SourceKind
from firstlight.data.sources import find_source


def notice(event, arguments):
    if event == "socket.getaddrinfo":
        asked.append(arguments[0])
    elif event == "socket.connect":
        asked.append(str(arguments[1]))


asked = []
sys.addaudithook(notice)


def answer(question):
    os.chdir(question.pop("folder"))
    logging.basicConfig(filename="log", level=logging.INFO, force=True)
    source = SourceKind[question.pop("source")]
    sources.PROBE_SECONDS = question.pop("probe_seconds", sources.PROBE_SECONDS)
    started_at = time.monotonic()
    try:
        options = ReviewOptions(source=source, cache_dir="cache", **question)
        source = find_source(options)
        answer = {"source": source.kind.value, "where": source.where}
        if source.kind is not SourceKind.sample:
            answer["rows"] = len(encode(source, options).labels)
    except Exception as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    return answer | {"seconds": time.monotonic() - started_at, "log": Path("log").read_text(), "asked": asked}


print("ready", flush=True)
for line in sys.stdin:
    if os.fork() == 0:  # every question is the first one of a fresh process
        print(json.dumps(answer(json.loads(line))), flush=True)
        os._exit(0)
    os.wait()
"""


def start_client(endpoint: str, home: Path, **environment: str) -> subprocess.Popen[str]:
    """Start a process that connects only to one endpoint."""
    process = subprocess.Popen(
        [sys.executable, "-c", CLIENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(SRC),
            "OMP_NUM_THREADS": "1",
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(home),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # without this, `datasets` sends a request to S3 for every download
            "HF_HUB_DISABLE_XET": "1",
        }
        | environment,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def ask(process: subprocess.Popen[str], question: dict[str, Any]) -> dict[str, Any]:
    print(json.dumps(question), file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


@pytest.fixture(scope="module")
def server() -> Iterator[HubServer]:
    with HubServer().running() as server:
        yield server


@pytest.fixture(scope="module")
def client(server: HubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    process = start_client(f"http://127.0.0.1:{server.server_port}", tmp_path_factory.mktemp("huggingface"))
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def hub(server: HubServer) -> Iterator[HubServer]:
    """The working server, without data sets of the test."""
    server.requests.clear()
    yield server
    server.broken.clear()
    server.answers.set()


@pytest.fixture
def find(client: subprocess.Popen[str], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Find, mirror and encode a data set in a folder of this test, and return the result."""
    return lambda **options: ask(client, {"folder": str(tmp_path), "source": "hub"} | options)


def lines(count: int, word: str) -> bytes:
    """Return rows of JSONL in which all labels are equally frequent."""
    return "".join(json.dumps({"text": f"this is {word}", "label": n % 5}) + "\n" for n in range(count)).encode()


REVIEWS = {"train.jsonl": lines(35, "good"), "validation.jsonl": lines(10, "fair"), "test.jsonl": lines(5, "bad")}


def mirrored(folder: Path, dataset_id: str) -> list[str]:
    """Return the paths below the mirror of a data set, relative to it."""
    home = folder / "cache" / "hub" / dataset_id.replace("/", "--")
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


# --- the mirror ---


def test_a_data_set_is_downloaded_mirrored_as_parquet_and_encoded(hub, find, tmp_path):
    revision = hub.publish("own/first", REVIEWS)
    found = find(path="own/first", source="auto")
    assert (found["source"], found["where"], found["rows"]) == ("hub", f"own/first@{revision}", 50)
    assert {address.startswith(("127.0.0.1", "('127.0.0.1'")) for address in found["asked"]} == {True}
    files = ("SHA256SUMS", "test.parquet", "train.parquet", "validation.parquet")
    assert mirrored(tmp_path, "own/first") == [f"{revision}/{file}" for file in files]
    home = tmp_path / "cache" / "hub" / "own--first"
    assert [path.name for path in home.iterdir()] == [revision]  # no incomplete folder is left
    assert [row.values for row in read_rows(home / revision / "test.parquet")] == [
        {"text": "this is bad", "label": label} for label in range(5)
    ]
    assert f"Downloading own/first, revision {revision}, from the Hub" in found["log"]


def test_a_second_start_only_asks_for_the_revision_and_a_new_one_is_another_source(hub, find, tmp_path):
    hub.publish("own/growing", REVIEWS)
    find(hub="own/growing")
    hub.requests.clear()
    assert find(hub="own/growing")["rows"] == 50
    assert hub.requests == ["GET /api/datasets/own/growing"]
    newer = hub.publish("own/growing", REVIEWS | {"test.jsonl": lines(15, "bad")})
    found = find(hub="own/growing")
    assert (found["where"], found["rows"]) == (f"own/growing@{newer}", 60)
    assert len(mirrored(tmp_path, "own/growing")) == 8


def test_without_a_network_the_newest_mirror_is_used_and_named(hub, find, tmp_path):
    for count in (15, 20):
        newer = hub.publish("own/renewed", REVIEWS | {"test.jsonl": lines(count, "bad")})
        find(hub="own/renewed")
    unfinished = tmp_path / "cache" / "hub" / "own--renewed" / ".downloading-broken-off"
    unfinished.mkdir()
    (unfinished / "train.parquet").write_bytes(b"half")
    hub.answers.clear()
    for source in ("hub", "auto"):
        found = find(hub="own/renewed", source=source, probe_seconds=0.2)
        assert found["where"] == f"own/renewed@{newer}"
        assert f"The Hub does not answer; using the cached copy of own/renewed, revision {newer}" in found["log"]


def test_local_data_asks_nobody(find, tmp_path):
    for path in (tmp_path / "data" / "amazon_reviews", tmp_path / "mine"):
        path.mkdir(parents=True)
        (path / "train.jsonl").write_bytes(lines(35, "good"))
    for options in ({}, {"source": "local"}, {"path": "mine"}, {"path": "mine/train.jsonl"}):
        found = find(**({"source": "auto"} | options))
        assert (found["source"], found["rows"], found["asked"]) == ("local", 35, [])
    found = find(source="sample")
    assert (found["source"], found["asked"]) == ("sample", [])


# --- no answer ---


def test_without_a_network_and_a_mirror_hub_is_refused(hub, find, tmp_path):
    hub.answers.clear()
    found = find(hub="own/unseen", probe_seconds=0.2)
    assert found["error"] == "UserError"
    assert re.match(r'source="hub": the Hub does not answer \(.+\); try again, or set path', found["message"])
    assert list(tmp_path.glob("cache/hub/*")) == []


def test_a_hub_that_never_answers_is_given_up_after_a_few_seconds(hub, find):
    hub.answers.clear()
    found = find(hub="own/first", source="auto", probe_seconds=0.5)
    assert found["source"] == "sample"
    assert 0.5 <= found["seconds"] < 4
    assert PROBE_SECONDS == 5
    hub.answers.set()
    hub.broken["/api/"] = (503, {})
    assert find(hub="own/first-in-trouble", source="auto")["source"] == "sample"


# --- errors ---


def metadata(*configurations: str) -> bytes:
    """Return a README.md with the file of each configuration and split."""
    return "\n".join(["---", "configs:", *configurations, "---", ""]).encode()


ONE_SPLIT = "- config_name: default\n  data_files:\n  - split: one\n    path: one.jsonl"
GERMAN, ENGLISH = (f"- config_name: {name}\n  data_files: {name}.jsonl" for name in ("de", "en"))


OF_ONE_SPLIT = {"README.md": metadata(ONE_SPLIT), "one.jsonl": lines(5, "good")}
OF_CONFIGS = {"README.md": metadata(GERMAN, ENGLISH), "de.jsonl": lines(5, "gut"), "en.jsonl": lines(5, "good")}


CLOSED: dict[str, tuple[int, dict[str, str]]] = {  # how the Hub answers for data that not everybody may read
    "gated": (403, {"X-Error-Code": "GatedRepo"}),
    "private": (401, {"X-Error-Message": "Invalid credentials in Authorization header"}),
}


@pytest.mark.parametrize(
    ("name", "files", "error", "message"),
    [
        ("unknown", None, "UserError", "own/unknown is not a data set of the Hub; check path or hub$"),
        ("--", None, "UserError", "own/-- is not a data set of the Hub; check path or hub$"),
        ("gated", REVIEWS, "UserError", "own/gated is gated on the Hub; accept its terms"),
        ("private", REVIEWS, "UserError", "the Hub refuses your token; run"),
        ("splits", OF_ONE_SPLIT, "UserError", "own/splits has no split .*; its splits are one"),
        (
            "configs",
            OF_CONFIGS,
            "UserError",
            r"own/configs could not be .* \['de', 'en'\].*; download the files",
        ),
        ("script", {"script.py": b"import datasets"}, "UserError", "own/script could not .* scripts .*; download the"),
        ("empty", {"README.md": b"Nothing yet."}, "RunError", "own/empty could not be downloaded .*: .* data files"),
        (
            "broken",
            {"train.jsonl": b"{broken\n"},
            "RunError",
            "own/broken could not be downloaded .*: .*JSON",
        ),
    ],
)
def test_what_is_no_open_data_set_is_refused_and_leaves_nothing(hub, find, tmp_path, name, files, error, message):
    if files is not None:
        hub.publish(f"own/{name}", files)
    if name in CLOSED:
        hub.broken["/api/"] = CLOSED[name]
    found = find(hub=f"own/{name}", source="auto")  # these answers are no missing network
    assert found["error"] == error
    assert re.match(message, found["message"], re.DOTALL)
    assert mirrored(tmp_path, f"own/{name}") == []


def test_a_download_that_breaks_off_leaves_nothing_and_no_older_revision_stands_in(hub, find, tmp_path):
    before = hub.publish("own/fragile", REVIEWS)
    find(hub="own/fragile")
    hub.publish("own/fragile", REVIEWS | {name: lines(20, "new") for name in REVIEWS})
    hub.broken["jsonl$"] = (403, {})
    found = find(hub="own/fragile")
    assert found["error"] == "RunError"
    assert found["message"].startswith("own/fragile could not be downloaded from the Hub")
    assert {path.partition("/")[0] for path in mirrored(tmp_path, "own/fragile")} == {before}
    hub.broken.clear()
    assert find(hub="own/fragile")["rows"] == 60
