"""A page to try trained runs: type a text, and see the answer and its explanation."""

import socket
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from firstlight.command_options import parse
from firstlight.commands.frame import open_page
from firstlight.errors import UserError
from firstlight.files.rows import check_output
from firstlight.invocation import install_command
from firstlight.kind.load import load, run_for
from firstlight.terminal_text import say

if TYPE_CHECKING:
    import uvicorn

    from firstlight.kind.panel import Panel
    from firstlight.lab.playground.server import Playground

HOST = "127.0.0.1"
PORT, LAST_PORT = 7860, 7959
NEEDED = ("starlette", "uvicorn")


@dataclass
class PlaygroundOptions:
    """Try trained runs in the browser, several side by side. No data leaves this machine. Ctrl-C ends the server.

    Args:
        runs: The runs: folders, `latest`, `latest:<task>`, `latest-sweep`, `best:<metric>` or `best:<metric>:<task>`;
            one or more.
        port: The port of the page's address. Default: 7860, or the next free port. 0: any free port.
        open: Open the page in the browser.
        checkpoint: The checkpoint of each run.
        log_dir: The folder below which `latest` and `best` search runs.
        export: Write a page with the networks inside to this file, in place of a server. It opens in any browser,
            without firstlight and without a network.
    """

    runs: Annotated[list[str], tyro.conf.Positional] = field(default_factory=list)
    port: int | None = None
    open: Annotated[bool, tyro.conf.arg(aliases=["--browser"])] = False
    checkpoint: Literal["best", "last"] = "best"
    log_dir: Path = Path("logs")
    export: Path | None = None


def main() -> None:
    """Parse the command line, and serve the page until Ctrl-C or write it to a file."""
    options = parse(PlaygroundOptions, "playground")
    if not options.runs:
        raise UserError("name a run: its folder, `latest` or `best:<metric>`; several runs are shown side by side")
    if options.export is not None:
        check_output(options.export, [".html"])
        if options.port is not None:
            raise UserError(f"--port {options.port} does not apply to --export, which starts no server; leave it out")
    elif any(find_spec(name) is None for name in NEEDED):
        raise UserError(f"the playground requires the extra playground: {install_command('playground')}")
    folders = [str(run_for("playground", run, options.log_dir).path) for run in options.runs]
    if options.export is not None:
        export(folders, options.checkpoint, options.export, opens=options.open)
        return
    with listen(options.port) as listening:
        playground = load_all(folders, options.checkpoint)
        address = f"http://{HOST}:{listening.getsockname()[1]}"
        say(f"{address} shows {', '.join(folders)}; press Ctrl-C to end", flush=True)
        if options.open:
            open_page(address)
        with suppress(KeyboardInterrupt):  # uvicorn raises it again at its end
            server_of(playground).run(sockets=[listening])


def export(folders: list[str], checkpoint: str, file: Path, *, opens: bool) -> None:
    """Write a page with the networks of some runs. Raises UserError for one that a page cannot compute."""
    from firstlight.files.atomic import write_atomically
    from firstlight.lab.playground.page import exported_page

    write_atomically(file, exported_page(panels_of(folders, checkpoint)))
    say(f"{file} ({file.stat().st_size / 1e6:.1f} MB) shows {', '.join(folders)}")
    if opens:
        open_page(file)


def panels_of(folders: list[str], checkpoint: str) -> "list[Panel]":
    """Return the panels of the runs in some folders. Raises UserError for a run without one."""
    from firstlight.lab.playground.page import panel_of

    return [panel_of(load(folder, checkpoint=checkpoint)) for folder in folders]


def listen(port: int | None) -> socket.socket:
    """Return a listening socket that only this machine can reach. Raises UserError if the port cannot be used."""
    if port is not None and not 0 <= port <= 65535:
        raise UserError(f"--port {port} must be between 0 and 65535")
    for number in range(PORT, LAST_PORT + 1) if port is None else [port]:
        try:
            return socket.create_server((HOST, number))
        except OSError as error:
            problem = error.strerror
    raise UserError(f"--port {number}: {problem}; choose another port")


def load_all(folders: list[str], checkpoint: str) -> "Playground":
    """Return the loaded runs, ready to answer. Raises UserError."""
    from firstlight.lab.playground.server import Playground

    panels = panels_of(folders, checkpoint)
    for panel in panels:
        panel.warm_up()
    return Playground(panels)


def server_of(playground: "Playground") -> "uvicorn.Server":
    """Return the server. When it ends, unfinished answers are canceled."""
    import uvicorn

    from firstlight.lab.playground import server

    class Server(uvicorn.Server):
        def handle_exit(self, *signal: object) -> None:
            playground.stopping.set()
            super().handle_exit(*signal)  # type: ignore[arg-type]

    config = uvicorn.Config(
        playground.app,
        http=server.Connection,
        loop="asyncio",  # uvloop, if it is installed, accepts connections in another order
        ws="none",
        lifespan="off",
        backlog=server.BACKLOG,
        limit_concurrency=2 * server.MOST_CONNECTIONS,
        log_level="warning",
        access_log=False,
        headers=list(server.HEADERS.items()),
        timeout_graceful_shutdown=3,
    )
    return Server(config)
