"""The connections of the playground: how many there are, and how long one may take to ask something."""

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
BACKLOG = 32  # connections that wait to be accepted; asyncio accepts so many before it does anything else
SECONDS_TO_ASK = 10.0  # from the beginning of a request to its end
SECONDS_BETWEEN_WARNINGS = 60.0
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def most_connections() -> int:
    """Return how many connections may be open: a quarter of the files that this process may open, 200 at most."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, files // 4))


class Connection(H11Protocol):
    """A connection that is closed when it takes too long to ask, or when others need its place.

    If there are too many connections, the oldest that has not asked anything makes room for a new one, so that a page
    is answered while hundreds of connections are open and silent.
    """

    asked_at: float = 0.0  # of the event loop's clock: when it began to ask
    _timer: asyncio.TimerHandle | None = None

    @property
    def is_silent(self) -> bool:
        """Whether no whole request has come that is still to be answered."""
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
    """Close the connections that have been silent for longest; returns how many."""
    silent = sorted((each for each in connections if each.is_silent), key=lambda each: each.asked_at)
    for each in silent[:count]:
        each.transport.abort()
    return len(silent[:count])


class Server(uvicorn.Server):
    """A server that outlives more connections than the process may have open files."""

    warned_at: float = float("-inf")

    async def startup(self, sockets: Any = None) -> None:
        asyncio.get_running_loop().set_exception_handler(self._on_error)
        await super().startup(sockets)

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Make room where no file is left for a new connection, and say so once a minute; asyncio tries again."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in OUT_OF_FILES:
            loop.default_exception_handler(context)
            return
        close_oldest(self.server_state.connections, BACKLOG)
        if loop.time() - self.warned_at >= SECONDS_BETWEEN_WARNINGS:
            self.warned_at = loop.time()
            log.warning("%d connections are open, and no more can be: %s", len(self.server_state.connections), error)
