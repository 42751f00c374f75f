"""A local HTTP server, for tests of downloads."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote, urlsplit


class Handler(BaseHTTPRequestHandler):
    """Handler of one request, which the server answers."""

    protocol_version = "HTTP/1.1"
    server: "LocalServer"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(f"{self.command} {path}")
        self.server.agent = self.headers["User-Agent"]
        self.server.answers.wait()
        status, headers, content = self.server.answer(path, body)
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | dict(headers)).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.close_connection = "Content-Length" in headers  # it is not true

    do_GET = do_HEAD = do_POST = answer

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class LocalServer(ThreadingHTTPServer):
    """A server whose `answer` returns the status, the headers and the content for a path and a body.

    requests: the method and the path of each; agent: the program that sent the last one; answers: an event that must be
    set before the server answers.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[str] = []
        self.agent = ""
        self.answers = threading.Event()
        self.answers.set()

    def answer(self, path: str, body: str) -> tuple[int, Mapping[str, str], bytes]:
        raise NotImplementedError

    def handle_error(self, *_: Any) -> None:
        """Be silent when a client does not wait for its answer."""

    @contextmanager
    def running(self) -> Iterator[Self]:
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        with self:
            thread.start()
            yield self
            self.answers.set()
            self.shutdown()
            thread.join()
