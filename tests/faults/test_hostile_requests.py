"""The playground answers every hostile request with a message and continues to run. Its log stays short."""

import contextlib
import itertools
import json
import math
import random
import re
import resource
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import hypothesis.strategies as st
import pytest

from faults.conftest import RunOf
from faults.damage import OTHER_FORMATS, VALUES, Damage, damages
from faults.trials import Trials, number_of, scaled, shortened
from tests_support import Process, Scripts

BODIES = 150  # trials for each kind of run
REQUESTS = 100  # trials of bytes that are not HTTP
CONNECTIONS = 1100  # silent connections to a server that may have 1024 open files
FILES = 1024
MANY = 400  # requests of which the memory of the server must not depend
GROWTH = 2**25  # bytes by which the memory may grow during them
SECONDS = 30  # the limit for the answer to a request
LONGEST_LOG = 20_000  # bytes
FIELDS = (
    *("text", "tokens", "temperature", "top_k", "top_p", "seed", "label", "map", "head", "quick", "beam_size"),
    *("greedy", "window", "", "nothing like it"),
)
PATHS = {"sentiment": "/runs/0/answer", "names": "/runs/1/write", "translation": "/runs/2/answer"}


@dataclass
class Server:
    """A playground in a separate process."""

    process: Process
    port: int
    log: list[str]

    def ask(self, path: str, body: bytes | None, **headers: str) -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            given = {"Content-Type": "application/json"} | headers
            connection.request("GET" if body is None else "POST", path, body, given)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def send(self, content: bytes) -> bytes:
        """Send some bytes, close the sending side, and return the answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS) as connection:
            answer = b""
            try:
                connection.sendall(content)
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65536):
                    answer += part
            except TimeoutError:
                raise
            except OSError:  # the server has closed the connection
                return answer
            return answer

    def check(self) -> None:
        """Fail unless the server still answers."""
        assert self.process.poll() is None, f"it has ended: {''.join(self.log)[-2000:]}"
        status, page = self.ask("/", None)
        assert status == 200
        assert b"<html" in page


@pytest.fixture(scope="module")
def server(finished: RunOf, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a playground with three runs and a limit of 1024 open files."""
    scripts = Scripts(tmp_path_factory.mktemp("playground"))
    process = scripts.start("playground", *(str(finished(task)) for task in PATHS), "--port", "0")
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (FILES, FILES))  # while it is still loading
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        assert found, line + process.stderr.read()
        log: list[str] = []
        readers = [
            threading.Thread(target=lambda file=file: log.extend(iter(file.readline, "")), daemon=True)
            for file in (process.stdout, process.stderr)
        ]
        for reader in readers:
            reader.start()
        yield Server(process, int(found[1]), log)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()


def head_of(path: str, host: str = "localhost") -> bytes:
    """Return the beginning of a request, before the length of its body."""
    return f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n".encode()


@contextlib.contextmanager
def short_log(server: Server, trials: Trials, what: str) -> Iterator[None]:
    """Add a trial: the block must leave no traceback and no long text in the server's log."""
    server.log.clear()
    yield
    with trials.one(f"the log after {what}"):
        text = "".join(server.log)
        assert "Traceback" not in text, text[-1200:]
        assert len(text) < LONGEST_LOG, f"a log of {len(text):,} characters: {text[:1000]}"


@pytest.mark.faults("hostile requests: bodies")
@pytest.mark.parametrize("task", PATHS)
def test_every_body_is_answered(task: str, trials: Trials, server: Server) -> None:
    whole = json.dumps({"text": "It is great, and it works.", "tokens": 5, "seed": 1, "quick": 0}).encode()

    def check_bytes(damage: Damage) -> None:
        check(damage.apply(whole))

    def check_values(values: dict[str, int]) -> None:
        asked = {field: VALUES[number] for field, number in values.items()}
        check(json.dumps({"tokens": 5} | asked).encode("utf-8", "surrogatepass"))

    def check(body: bytes) -> None:
        status, answer = server.ask(PATHS[task], body)
        assert status in (200, 400), f"status {status}: {answer[:300]!r}"
        assert b"Traceback" not in answer
        assert b"Something went wrong" not in answer, answer[:300]

    with short_log(server, trials, f"bodies for {task}"):
        trials.examples(damages("value"), check_bytes, BODIES, f"body for {task}")
    values = st.dictionaries(st.sampled_from(FIELDS), st.integers(0, len(VALUES) - 1), min_size=1, max_size=4)
    with short_log(server, trials, f"values for {task}"):
        trials.examples(values, check_values, BODIES, f"values for {task}")
    bodies = {**OTHER_FORMATS, "2 MB": b" " * 2_000_000, "20 MB": b"[" * 20_000_000}
    bodies["a number of 400 digits"] = b'{"text": "a", "seed": ' + b"9" * 400 + b', "tokens": ' + b"9" * 400 + b"}"
    bodies["a number of 5,000 digits"] = b'{"text": "a", "seed": ' + b"9" * 5_000 + b"}"
    bodies["a long text"] = json.dumps({"text": "great " * 300_000, "tokens": 5}).encode()
    bodies["many words"] = json.dumps({"text": " ".join(f"w{i}" for i in range(100_000)), "tokens": 5}).encode()
    for name, body in bodies.items():
        with short_log(server, trials, name), trials.one(f"body for {task}: {name}", seconds=60):
            with contextlib.suppress(
                BrokenPipeError, ConnectionResetError
            ):  # the server need not read the complete body
                check(body)
            server.check()


@pytest.mark.faults("hostile requests: bytes that are not HTTP")
def test_bytes_that_are_not_http_are_no_end(trials: Trials, server: Server) -> None:
    body = b'{"text": "It is great.", "tokens": 5}'
    head = head_of("/runs/0/answer", f"127.0.0.1:{server.port}")
    whole = head + b"Content-Length: %d\r\n\r\n" % len(body) + body

    def check(damage: Damage) -> None:
        server.send(damage.apply(whole))
        server.check()

    with short_log(server, trials, "requests"):
        trials.examples(damages(), check, REQUESTS, "request")
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    requests = {
        "nothing": b"",
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        "two lengths": head + b"Content-Length: 5\r\nContent-Length: 500\r\n\r\n" + body,
        "a length below 0": head + b"Content-Length: -5\r\n\r\n" + body,
        "a length of 400 digits": head + b"Content-Length: " + b"9" * 400 + b"\r\n\r\n" + body,
        "a body cut short": head + b"Content-Length: 1000000\r\n\r\n" + body,
        "a length and chunks": chunked.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n") + b"5\r\n{\r\n",
        "a chunk of no number": chunked + b"zzz\r\n" + body,
        "a huge chunk": chunked + b"f" * 16 + b"\r\n" + body,
        "chunks without an end": chunked + b'5\r\n{"te\r\n' * 1000,
        "a header of 1 MB": head + b"X: " + b"x" * 2**20 + b"\r\n\r\n",
        "100,000 headers": head + b"".join(b"X%d: x\r\n" % i for i in range(100_000)) + b"\r\n",
        "a path of 1 MB": b"GET /" + b"x" * 2**20 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a path upwards": b"GET /../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "another host": b"GET / HTTP/1.1\r\nHost: example.invalid\r\n\r\n",
        "no host": b"GET / HTTP/1.1\r\n\r\n",
        "an upgrade": b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n",
        "many at once": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000,
    }
    for name, content in requests.items():
        with short_log(server, trials, name), trials.one(f"request: {name}", seconds=60):
            answer = server.send(content)
            assert b"root:" not in answer
            assert b"500 Internal" not in answer, answer[:300]
            server.check()


@pytest.mark.faults("many requests: the memory of the playground")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="requires /proc")
def test_the_memory_does_not_grow_with_the_requests(trials: Trials, server: Server) -> None:
    draw = random.Random(number_of("many requests"))

    def send(count: int) -> None:
        for number in range(count):
            path = draw.choice(["/", *PATHS.values()])
            text = " ".join(draw.choices(["great", "works", "broke", "week", "film"], k=draw.randint(1, 40)))
            asked = {"text": text, "tokens": 5, "seed": number} if number % 5 else {"text": 3}
            status, _ = server.ask(path, None if path == "/" else json.dumps(asked).encode())
            assert status in (200, 400)

    def memory() -> int:
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        return 1024 * int(status.partition("VmRSS:")[2].split()[0])

    send(scaled(MANY) // 4)  # the first requests import modules and fill caches
    before = memory()
    with trials.one(f"{scaled(MANY)} requests", seconds=300):
        send(scaled(MANY))
        grown = memory() - before
        assert grown < GROWTH, f"the memory has grown by {grown:,} bytes"


@pytest.mark.faults("hostile requests: connections")
def test_connections_that_say_nothing_are_no_end(trials: Trials, server: Server) -> None:
    begun = head_of("/runs/0/answer") + b"Content-Length: 100\r\n\r\n{"
    beginnings = [b"", b"GET", b"GET / HTTP/1.1\r\nHost: localhost\r\n", begun]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * CONNECTIONS, hard), hard))
    try:
        for beginning in beginnings:
            what = f"{CONNECTIONS} connections that say {shortened(repr(beginning))}"
            with short_log(server, trials, what), trials.one(what, seconds=120):
                with contextlib.ExitStack() as opened:
                    with contextlib.suppress(OSError):  # at the limit, the open connections stay open
                        for _ in range(CONNECTIONS):
                            connection = socket.create_connection(("127.0.0.1", server.port), timeout=5)
                            opened.enter_context(connection).sendall(beginning)
                    server.check()  # while they are open
                for _ in range(20):
                    with contextlib.suppress(OSError, HTTPException):
                        server.check()
                        break
                server.check()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.faults("hostile requests: connections")
def test_requests_that_are_broken_off_leave_no_traceback(trials: Trials, server: Server) -> None:
    body = json.dumps({"text": "It is great. " * 50, "tokens": 2000}).encode()
    for (task, path), share, after in itertools.product(PATHS.items(), (0.0, 0.5, 1.0), (0, 1)):
        what = f"{task}: {share} of a body, {after} parts of the answer"
        with short_log(server, trials, what), trials.one(what, seconds=60):
            head = head_of(path) + b"Content-Length: %d\r\n\r\n" % len(body)
            with socket.create_connection(("127.0.0.1", server.port), timeout=SECONDS) as connection:
                connection.sendall(head + body[: math.floor(share * len(body))])
                if after and share == 1.0:
                    connection.recv(100)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
            server.check()
