import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from firstlight.data.options import SourceKind
from firstlight.data.sources import Source
from firstlight.errors import RunError, UserError
from firstlight.generator import corpus
from firstlight.generator.corpus import find_text
from firstlight.generator.options import CharacterOptions
from local_server import LocalServer

pytestmark = pytest.mark.usefixtures("working_folder")

NOWHERE = "http://127.0.0.1:9/plays.txt"
TEXT = "One.\n\nTwo.\n"


def make(path: str, content: str | bytes = TEXT) -> Path:
    """Write a text file and return its path relative to the working folder."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


class Web(LocalServer):
    """A server of one file. content: None for no such file; promised: the length that it says, if it is another one."""

    content: bytes | None = TEXT.encode()
    promised: int | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/plays.txt"

    def answer(self, *_: str) -> tuple[int, dict[str, str], bytes]:
        headers = {} if self.promised is None else {"Content-Length": str(self.promised)}
        return 404 if self.content is None else 200, headers, self.content or b""


@pytest.fixture
def web() -> Iterator[Web]:
    with Web().running() as server:
        yield server


def find(**options) -> Source:
    return find_text(CharacterOptions(**({"name": "shakespeare", "cache_dir": "cache"} | options)))


def text_of(source: Source) -> str:
    return "".join(source.lines())


# --- a source that is forced ---


def test_hub_is_never_a_sample():
    message = rf"data.source=hub: {NOWHERE} does not answer \(.*refused.*\); try again, or set data.path"
    with pytest.raises(UserError, match=message):
        find(source=SourceKind.hub, url=NOWHERE)


# --- the web ---


def test_a_file_is_downloaded_once(web):
    make("data/names/names.txt")  # the local text of another task
    first = find(url=web.url)
    again = find(url=web.url)
    assert (first.kind, first.where) == (SourceKind.hub, web.url)
    assert (web.requests, web.agent) == (["GET /plays.txt"], "firstlight")
    assert text_of(again) == text_of(first) == TEXT
    assert again.fingerprint == first.fingerprint
    web.content = b"Three.\n"
    assert text_of(find(url=web.url + "?edition=2")) == "Three.\n"
    assert text_of(find(url=web.url)) == TEXT


def test_what_is_published_nowhere_is_an_error_and_no_sample(web):
    web.content = None
    with pytest.raises(RunError, match=rf"data.url={web.url} .*404.*; set data.url, or data.path"):
        find(url=web.url)
    assert list(Path("cache").rglob("*.txt")) == []
    web.content = TEXT.encode()
    assert text_of(find(url=web.url)) == TEXT


def test_a_web_that_keeps_silent_does_not_answer(web, monkeypatch):
    monkeypatch.setattr(corpus, "PATIENCE", 0.1)
    web.answers.clear()
    assert find(url=web.url).kind is SourceKind.sample


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/hostname", "p.txt", "http:///plays.txt", "http:// example.org"),
        *("http://127.0.0.1:9/a b", "http://[/", "http://127.0.0.1:9/ä"),
    ],
)
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(UserError, match=f"^data.url={re.escape(url)} must be https://.*; a local file is data.path$"):
        find(url=url)


@pytest.mark.parametrize(
    ("content", "promised", "message"),
    [
        (b"one", 100, r"cannot be downloaded \(.*\); set data.url, or data.path"),
        (b"", None, r"is an empty file; set data\.url, or data\.path"),
    ],
)
def test_a_download_that_breaks_off_leaves_nothing(web, working_folder, content, promised, message):
    web.promised, web.content = promised, content
    with pytest.raises(RunError, match=message):
        find(url=web.url)
    assert not list(working_folder.glob("cache/downloads/*"))


# --- data.path ---


@pytest.mark.parametrize("files", [[], ["a.md"]], ids=str)
@pytest.mark.parametrize("folder", ["mine", "data/shakespeare"])
def test_a_folder_without_a_text_is_refused(folder, files):
    Path(folder).mkdir(parents=True)
    for file in files:
        make(f"{folder}/{file}")
    with pytest.raises(UserError, match=f"{folder} has no .txt file; set data.path to a file"):
        find(path="mine" if folder == "mine" else None)


@pytest.mark.parametrize("content", [b"", b"\0\1", b"\xff\xfe"])
def test_a_file_that_is_no_text_is_refused_at_once(content):
    make("mine.txt", content)
    with pytest.raises(UserError, match=r"^mine.txt:1: .*$"):
        find(path="mine.txt")
