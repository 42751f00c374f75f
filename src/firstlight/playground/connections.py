"""Limits of the number of connections to the playground, and of the time for a request."""

import asyncio
import errno
import logging
import resource
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 200
BACKLOG = 32  # connections that wait to be accepted; asyncio accepts all of them at once
SECONDS_TO_ASK = 10.0  # longest time from the beginning of a request to its end
SECONDS_BETWEEN_WARNINGS = 60.0
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def most_connections() -> int:
    """Return the largest number of connections: a quarter of the process's limit of open files, at most 200."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, files // 4))


class Connection(H11Protocol):
    """Connection that is closed if its request takes too long, or if a new connection needs its place.

    If there are too many connections, a new one replaces the oldest one without a complete request. The page therefore
    works while hundreds of silent connections are open.
    """

    asked_at: float = 0.0  # start of the request, by the clock of the event loop
    _timer: asyncio.TimerHandle | None = None

    @property
    def is_silent(self) -> bool:
        """Whether the connection has no complete request that waits for its answer."""
        return not self.transport.is_closing() and self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.asked_at = self.loop.time()
        others = [each for each in self.connections if each is not self and not each.transport.is_closing()]
        if len(others) >= most_connections() and not close_oldest(self.connections - {self}, 1):
            self.transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if not self.is_silent:
            self._unwatch()
        elif self._timer is None:
            self.asked_at = self.loop.time()
            self._timer = self.loop.call_later(SECONDS_TO_ASK, self.transport.abort)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def close_oldest(connections: set[Any], count: int) -> int:
    """Close up to `count` connections that have been silent for the longest time, and return their number."""
    silent = sorted((each for each in connections if each.is_silent), key=lambda each: each.asked_at)
    for each in silent[:count]:
        each.transport.abort()
    return len(silent[:count])


class Server(uvicorn.Server):
    """Server that continues to work when the process has no more files for connections."""

    warned_at: float = float("-inf")

    async def startup(self, sockets: Any = None) -> None:
        asyncio.get_running_loop().set_exception_handler(self._on_error)
        await super().startup(sockets)

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Close connections if no file is left for a new one, with a warning once a minute. asyncio tries again."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in OUT_OF_FILES:
            loop.default_exception_handler(context)
            return
        close_oldest(self.server_state.connections, BACKLOG)
        if loop.time() - self.warned_at >= SECONDS_BETWEEN_WARNINGS:
            self.warned_at = loop.time()
            num_open = len(self.server_state.connections)
            log.warning("%d connections are open, and no more can be opened: %s", num_open, error)
