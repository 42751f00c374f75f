"""A page on this machine where people try trained runs: type, and see what they answer, and why."""

import errno
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from firstlight import browser
from firstlight.command_options import parse
from firstlight.commands.frame import run_module
from firstlight.errors import UserError
from firstlight.invocation import install_command
from firstlight.kinds.found import run_for
from firstlight.terminal_text import say

if TYPE_CHECKING:
    import uvicorn

    from firstlight.playground.server import Playground

HOST = "127.0.0.1"
PORT, LAST_PORT = 7860, 7959
NEEDED = ("starlette", "uvicorn")


@dataclass
class PlaygroundOptions:
    """Try trained runs in the browser, several side by side; nothing leaves this machine. Ctrl-C ends it."""

    runs: Annotated[list[str], tyro.conf.Positional] = field(default_factory=list)
    """The runs: folders, `latest`, `latest:<task>`, `best:<metric>` or `best:<metric>:<task>`; one or more."""
    port: int | None = None
    """Of the page's address; by default 7860, or the next one that is free. 0: any that is free."""
    open: Annotated[bool, tyro.conf.arg(aliases=["--browser"])] = False
    """Open the page in the browser."""
    checkpoint: Literal["best", "last"] = "best"
    """Which of the runs' checkpoints."""
    log_dir: Path = Path("logs")
    """The folder below which `latest` and `best` search runs."""


def main() -> None:
    """Parse the command line and serve the page until Ctrl-C."""
    options = parse(PlaygroundOptions, "playground")
    if not options.runs:
        raise UserError("name a run: its folder, `latest` or `best:<metric>`; several runs are shown side by side")
    if any(find_spec(name) is None for name in NEEDED):
        raise UserError(f"the playground needs its extra: {install_command('playground')}")
    folders = [str(run_for("playground", run, options.log_dir).path) for run in options.runs]
    with listen(options.port) as listening:
        playground = load_all(folders, options.checkpoint)
        address = f"http://{HOST}:{listening.getsockname()[1]}"
        say(f"{address} shows {', '.join(folders)}; Ctrl-C ends it", flush=True)
        if options.open:
            browser.show(address)
        serve(server_of(playground), listening)


def listen(port: int | None) -> socket.socket:
    """A socket that this machine alone can reach, and that nobody else has. Raises UserError."""
    if port is not None and not 0 <= port <= 65535:
        raise UserError(f"--port {port} must lie between 0 and 65535")
    for number in range(PORT, LAST_PORT + 1) if port is None else [port]:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port is free again once we have ended
        try:
            listening.bind((HOST, number))
            listening.listen()
        except OSError as error:
            listening.close()
            if error.errno == errno.EADDRINUSE and port is None:
                continue
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                why = "is in use" if error.errno == errno.EADDRINUSE else "is not for everybody"
                raise UserError(f"--port {port} {why}; name another, or leave it out for the next free one") from None
            raise
        return listening
    raise UserError(f"all ports from {PORT} to {LAST_PORT} are in use; name another by --port")


def load_all(folders: list[str], checkpoint: str) -> "Playground":
    """The runs, ready to answer. Raises UserError."""
    from firstlight.kinds.load import load
    from firstlight.playground.server import Playground, panel_of

    panels = [panel_of(load(folder, checkpoint=checkpoint)) for folder in folders]
    for panel in panels:
        panel.warm_up()
    return Playground(panels)


def server_of(playground: "Playground") -> "uvicorn.Server":
    """What answers. When it is to end, what is being written is broken off."""
    import uvicorn

    from firstlight.playground import connections

    class Server(connections.Server):
        def handle_exit(self, *signal: object) -> None:
            playground.stopping.set()
            super().handle_exit(*signal)  # type: ignore[arg-type]

    config = uvicorn.Config(
        playground.app,
        http=connections.Connection,
        ws="none",
        lifespan="off",
        backlog=connections.BACKLOG,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=3,
    )
    return Server(config)


def serve(server: "uvicorn.Server", listening: socket.socket) -> None:
    """Answer until Ctrl-C."""
    with suppress(KeyboardInterrupt):  # which uvicorn raises again once it has ended
        server.run(sockets=[listening])


if __name__ == "__main__":
    run_module(__spec__.name)
