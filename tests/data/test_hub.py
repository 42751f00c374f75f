"""The Hub, as far as `datasets` and `huggingface_hub` ask for it, on a port of this machine."""

import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

SRC = Path(__file__).parents[2] / "src"


# --- the stand-in ---


class Answer(BaseHTTPRequestHandler):
    """One request; the server knows what is published and what is broken."""

    protocol_version = "HTTP/1.1"
    server: "HubServer"

    def do(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(f"{self.command} {path}")
        self.server.hold.wait()
        status, headers, content = self.server.answer(path, body)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class HubServer(ThreadingHTTPServer):
    """A Hub whose data sets are dictionaries of files."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Answer)
        self.newest: dict[str, str] = {}
        self.files: dict[tuple[str, str], dict[str, bytes]] = {}
        self.broken: dict[str, tuple[int, dict[str, str]]] = {}
        self.requests: list[str] = []
        self.hold = threading.Event()
        self.hold.set()

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
            return 401, {"X-Error-Message": "Invalid username or password."}, b""
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
