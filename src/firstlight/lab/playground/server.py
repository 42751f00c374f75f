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
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
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
    """Web application of the playground. The event `stopping` ends all streams.

    Each run has a lock, so it computes one answer or one event of a stream at a time.
    """

    def __init__(self, panels: Sequence[Panel]) -> None:
        self.panels = panels
        self.stopping = threading.Event()
        self._locks = [threading.Lock() for _ in panels]
        self.app: ASGIApp = Starlette(
            routes=[
                _fixed("/", page(panels), "text/html"),
                _fixed("/page.js", exported_script(), "text/javascript"),
                Route("/runs/{number:int}/network", self.network),
                Route("/runs/{number:int}/answer", self.answer, methods=["POST"]),
                Route("/runs/{number:int}/write", self.write, methods=["POST"]),
            ],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)],
            exception_handlers=dict.fromkeys((BadInputError, UserError, ClientDisconnect, Exception), _notice),
        )

    async def network(self, request: Request) -> Response:
        """Return what the page requires to compute a run itself, as JSON."""
        _, panel = self._panel(request)
        return JSONResponse(await run_in_threadpool(packed, panel))

    async def answer(self, request: Request) -> Response:
        """Return the answer of a run to a text, as JSON."""
        number, panel, asked = await self._asked(request, streams=False)

        def locked() -> Answer:
            with self._locks[number]:
                return panel.answer(asked)

        return JSONResponse(await run_in_threadpool(locked))

    async def write(self, request: Request) -> Response:
        """Return the text of a run as a stream, with one JSON object on each line."""
        number, panel, asked = await self._asked(request, streams=True)
        lines = (json.dumps(event) + "\n" for event in self._in_turn(panel.write(asked), number))
        return StreamingResponse(lines, media_type="application/x-ndjson")

    def _in_turn(self, events: Iterator[Event], number: int) -> Iterator[Event]:
        """Yield events, each computed under the lock of its run. After an error, yield it and stop."""
        while not self.stopping.is_set():
            try:
                with self._locks[number]:
                    event = next(events, None)
            except UserError as error:
                event, events = {"error": str(error)}, iter(())
            except Exception:
                log.exception("the text could not be completed")
                event, events = {"error": BROKEN}, iter(())
            if event is None:
                return
            yield event

    async def _asked(self, request: Request, *, streams: bool) -> tuple[int, Panel, Inputs]:
        """Return the number of a run, its panel, and the fields of a request. streams: whether the run must stream."""
        number, panel = self._panel(request)
        if panel.streams is not streams:
            raise HTTPException(404)
        return number, panel, await _inputs(request)

    def _panel(self, request: Request) -> tuple[int, Panel]:
        number = request.path_params["number"]
        if number >= len(self.panels):
            raise HTTPException(404)
        return number, self.panels[number]


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
