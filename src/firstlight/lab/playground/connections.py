"""Limits of the number of silent connections to the playground, and of the time for a request."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 64  # a browser opens 6; a process on macOS may have 256 open files
BACKLOG = 32  # connections that wait to be accepted; asyncio accepts all of them at once
SECONDS_TO_ASK = 10.0  # longest time from the beginning of a request to its end


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
