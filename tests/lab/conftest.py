"""Fixtures of the tests of the laboratory."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from browser import a_browser
from firstlight.commands.playground import listen, load_all, server_of
from firstlight.lab.playground.page import network_script
from logged_runs import SHORT
from tests_support import Scripts


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """Yield an empty page with the scripts that compute networks."""
    with a_browser() as browser:
        opened = browser.new_page()
        opened.add_script_tag(content=network_script())
        yield opened


@pytest.fixture(scope="session")
def translation(made_once: Callable[..., Path], data_folder: Path) -> Path:
    """Return the folder of a translator's run."""

    def translate(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("FIRSTLIGHT_DATA", str(data_folder))
            Scripts(folder).train("task=translation", *SHORT, "test=false")

    return Scripts(made_once("looked-at-translation", translate)).newest_run()


@pytest.fixture(scope="session")
def served() -> Callable[..., AbstractContextManager[str]]:
    """Return a context manager that serves a playground of runs, and returns its address."""

    @contextmanager
    def serve(*runs: Path) -> Iterator[str]:
        with listen(0) as listening:
            server = server_of(load_all([*map(str, runs)], "best"))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
            thread.start()
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
            server.should_exit = True
            thread.join()

    return serve
