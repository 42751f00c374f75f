"""Fixtures of the tests of the laboratory."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from browser import Opened, a_browser, open_address
from firstlight.commands.playground import listen, load_all, server_of
from firstlight.lab.playground.page import network_script
from logged_runs import SHORT
from tests_support import Scripts


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    with a_browser() as found:
        yield found


@pytest.fixture(scope="package")
def window(browser: Any) -> Opened:
    """Return a window in which one test after the other opens its page."""
    return open_address(browser, "about:blank", 1280)


@pytest.fixture
def opens(browser: Any, window: Opened) -> Iterator[Callable[..., Opened]]:
    """Yield a function that opens an address. The scripts must log no error, and request nothing from elsewhere."""
    opened: list[Opened] = []

    def at(address: str, width: int = 1280, **context: Any) -> Opened:
        if opened or width != 1280 or context:
            opened.append(open_address(browser, address, width, **context))
        else:
            window.visit(address)
            opened.append(window)
        return opened[-1]

    yield at
    for each in opened:
        assert (each.errors, each.foreign) == ([], [])
        if each is not window:
            each.page.close()


@pytest.fixture(scope="module")
def page(browser: Any) -> Any:
    """Return an empty page with the scripts that compute networks."""
    opened = browser.new_page()
    opened.add_script_tag(content=network_script())
    return opened


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
