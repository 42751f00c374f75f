"""The web application of the playground: the page, the answers of the runs, and streams of written text."""

import json
import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from firstlight.errors import UserError
from firstlight.kind import markup
from firstlight.kind.panel import BadInputError, Event, Inputs, Panel
from firstlight.lab.playground.page import exported_script, packed, page, stylesheet

log = logging.getLogger(__name__)

HOSTS = ["127.0.0.1", "localhost"]  # protects against DNS rebinding: other host names get no answer
MOST_BYTES = 2_000_000  # bytes of a request
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
                _fixed("/page.css", stylesheet(), "text/css"),
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
        """Return the answer of a run to a text, as HTML."""
        number, panel = self._panel(request)
        if panel.streams:
            raise HTTPException(404)
        asked = await _inputs(request)

        def locked() -> str:
            with self._locks[number]:
                return panel.answer(asked)

        return HTMLResponse(await run_in_threadpool(locked))

    async def write(self, request: Request) -> Response:
        """Return the text of a run as a stream, with one JSON object on each line."""
        number, panel = self._panel(request)
        if not panel.streams:
            raise HTTPException(404)
        asked = await _inputs(request)
        events = panel.write(asked)
        lines = (json.dumps(event) + "\n" for event in self._in_turn(events, number))
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
    """Return the message of an error as HTML.

    The status is 400 for a request that the page never sends and 500 for a defect. It is 200 for a text that a run
    cannot read, because such a request is valid. A client that has disconnected does not receive the answer.
    """
    if isinstance(error, BadInputError | ClientDisconnect):
        return HTMLResponse(markup.notice(str(error)), status_code=400)
    if isinstance(error, UserError):
        return HTMLResponse(markup.notice(str(error)))
    return HTMLResponse(markup.notice(BROKEN), status_code=500)
