"""The web application of the playground: the page, the answers of the runs, streams of written text, and limits."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import h11
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from firstlight.errors import UserError
from firstlight.kind.panel import Answer, BadInputError, Event, Inputs, Panel
from firstlight.lab.playground.page import exported_script, packed, page

log = logging.getLogger(__name__)

HOSTS = ["127.0.0.1", "localhost"]  # protects against DNS rebinding: other host names get no answer
MOST_BYTES = 2_000_000  # bytes of a request
MOST_CONNECTIONS = 64  # a browser opens 6; a process on macOS may have 256 open files
BACKLOG = 32  # connections that wait to be accepted; asyncio accepts all of them at once
SECONDS_TO_ASK = 10.0  # longest time from the beginning of a request to its end
BROKEN = "An error occurred for this text; see the terminal of the playground for details."
HEADERS = {  # of every answer; the browser loads nothing from other addresses
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Playground:
    """Web application of the playground. The event `stopping` ends all streams."""

    def __init__(self, panels: Sequence[Panel]) -> None:
        self.stopping = threading.Event()
        of_runs = (Mount(f"/runs/{number}", routes=self._routes(panel)) for number, panel in enumerate(panels))
        self.app: ASGIApp = Starlette(
            routes=[
                _fixed("/", page(panels), "text/html"),
                _fixed("/page.js", exported_script(), "text/javascript"),
                *of_runs,
            ],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)],
            exception_handlers=dict.fromkeys((BadInputError, UserError, ClientDisconnect, Exception), _notice),
        )

    def _routes(self, panel: Panel) -> list[Route]:
        """Return the routes of a run, which has a lock, so that it computes one answer or event at a time."""
        lock = threading.Lock()

        async def network(_: Request) -> Response:
            """Return what the page requires to compute the run itself, as JSON."""
            return JSONResponse(await run_in_threadpool(packed, panel))

        async def answer(request: Request) -> Response:
            """Return the answer of the run to a text, as JSON."""
            asked = await _inputs(request)

            def locked() -> Answer:
                with lock:
                    return panel.answer(asked)

            return JSONResponse(await run_in_threadpool(locked))

        async def write(request: Request) -> Response:
            """Return the text of the run as a stream, with one JSON object on each line."""
            events = self._in_turn(panel.write(await _inputs(request)), lock)
            lines = (json.dumps(event) + "\n" for event in events)
            return StreamingResponse(lines, media_type="application/x-ndjson")

        path, endpoint = ("/write", write) if panel.streams else ("/answer", answer)
        return [Route("/network", network), Route(path, endpoint, methods=["POST"])]

    def _in_turn(self, events: Iterator[Event], lock: threading.Lock) -> Iterator[Event]:
        """Yield events, each computed under the lock of its run. After an error, yield it and stop."""
        while not self.stopping.is_set():
            try:
                with lock:
                    event = next(events, None)
            except UserError as error:
                event, events = {"error": str(error)}, iter(())
            except Exception:
                log.exception("the text could not be completed")
                event, events = {"error": BROKEN}, iter(())
            if event is None:
                return
            yield event


def _fixed(path: str, text: str, media_type: str) -> Route:
    """Return the route of a text that never changes."""
    return Route(path, lambda _: Response(text, media_type=media_type))


async def _inputs(request: Request) -> Inputs:
    """Return the fields of a request. Requiring JSON blocks other sites, since their preflight requests fail."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise BadInputError("the request must have the content type application/json")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise BadInputError(f"the request must have at most {MOST_BYTES:,} bytes")
    try:
        values: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise BadInputError("the request is not valid JSON") from None
    return Inputs(values)


async def _notice(_: Request, error: Exception) -> Response:
    """Return the message of an error as an answer.

    The status is 400 for a request that the page never sends and 500 for a defect. It is 200 for a text that a run
    cannot read, because such a request is valid. A client that has disconnected does not receive the answer.
    """
    if isinstance(error, BadInputError | ClientDisconnect):
        return JSONResponse({"notice": str(error)}, status_code=400)
    if isinstance(error, UserError):
        return JSONResponse({"notice": str(error)})
    return JSONResponse({"notice": BROKEN}, status_code=500)


class Connection(H11Protocol):
    """Connection that is closed if its request takes too long, or if a new connection needs its place.

    If there are too many connections, a new one replaces the oldest one without a complete request. The page therefore
    works while hundreds of silent connections are open. uvicorn itself limits the number of requests at once, and the
    time between two requests.
    """

    asked_at: float = 0.0  # start of the request, by the clock of the event loop
    _timer: asyncio.TimerHandle | None = None

    @property
    def is_silent(self) -> bool:
        """Whether the connection has no complete request that waits for its answer."""
        return not self.transport.is_closing() and self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        connections: Any = self.connections  # all of this class
        opened = [each for each in connections if not each.transport.is_closing()]
        silent = sorted((each for each in opened if each.is_silent), key=lambda each: each.asked_at)
        for each in silent[: max(0, len(opened) - MOST_CONNECTIONS)]:
            each.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._watch()

    def _watch(self) -> None:
        """Start the time for a request with its beginning, and stop it with its end."""
        if self.is_silent and self._timer is None:
            self.asked_at = self.loop.time()
            self._timer = self.loop.call_later(SECONDS_TO_ASK, self.transport.abort)
        elif self._timer is not None and not self.is_silent:
            self._timer.cancel()
            self._timer = None
