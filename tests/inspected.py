"""The look inside a network in a page: what a person types and reads there."""

import re
from typing import Any

from browser import barriers, tab_through

WAIT = 30_000  # milliseconds, on a busy machine


def look_inside(page: Any, run: int, text: str) -> Any:
    """Open the panels of a run with a text. Return their element."""
    page.locator(f"[data-run='{run}'] summary").press("Enter")  # a click can miss it
    place = page.locator(f"[data-run='{run}'] .inspector")
    place.wait_for(timeout=WAIT)
    write(place, "text", text)
    return place


def write(place: Any, name: str, value: str) -> None:
    """Fill a field, and wait until the worth of the tokens is computed."""
    place.locator(f"[name={name}]").fill(value)
    explained(place)


def explained(place: Any) -> None:
    """Wait until the worth of the tokens is computed."""
    place.page.wait_for_function(
        "place => place.dataset.turn && place.dataset.explained === place.dataset.turn",
        arg=place.element_handle(),
        timeout=WAIT,
    )


def set_range(place: Any, name: str, value: float) -> None:
    """Move a slider."""
    place.locator(f"[name={name}]").evaluate(
        "(field, value) => { field.value = value; field.dispatchEvent(new Event('input', {bubbles: true})); }", value
    )


def check_look(place: Any, width: int) -> None:
    """Check that the page fits its window, has no barrier, and is used by keyboard alone."""
    assert place.page.evaluate("document.documentElement.scrollWidth") <= width
    assert barriers(place.page) == []
    place.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    place.page.locator("h1").click()
    assert tab_through(place.page) == []


def percent(text: str) -> float:
    """Return the percentage of a text such as "12.3%" and "<0.1%"."""
    return {"<0.1%": 0.05, ">99.9%": 99.95}.get(text) or float(text.removesuffix("%"))


def shares(place: Any, column: int = 0) -> dict[str, float]:
    """Return the probabilities in a column of the table: 0 now, 1 with all heads, 2 of the second text."""
    rows = place.locator("[role=row]:not(.head)").evaluate_all(
        "all => all.map(row => [...row.querySelectorAll('.name, .share')].map(cell => cell.textContent))"
    )
    return {name: percent(cells[column]) for name, *cells in rows}


def says(place: Any, panel: str) -> str:
    """Return the sentence of a panel with the numbers of the chosen token."""
    return str(place.locator(f"[id$=-{panel}] > .body > .says").inner_text())


def numbers(text: str) -> list[float]:
    """Return the numbers of a sentence after its colon, in which tokens and numbers of blocks come first."""
    return [float(found) for found in re.findall(r"(?<![\w-])-?\d+(?:\.\d+)?(?:e[+-]\d+)?", text.rpartition(": ")[2])]


# The cells of a heat map, each from -1 to 1: its color is its sign, its opacity the size as a part of the largest.
CELLS = """([canvas, rows, columns]) => {
    const {width, height} = canvas, {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
    const red = Number(colorOf("against").match(/\\d+/)[0]);
    return Array.from({length: rows}, (_, i) => Array.from({length: columns}, (_, j) => {
        const at = 4 * (Math.floor((i + 0.5) * height / rows) * width + Math.floor((j + 0.5) * width / columns));
        return (data[at] > red / 2 ? -1 : 1) * data[at + 3] / 255;
    }));
}"""


def cells(place: Any, panel: str, caption: str, shape: tuple[int, ...]) -> Any:
    """Return the (rows, columns) cells of a heat map, each from -1 to 1."""
    figure = place.locator(f"[id$=-{panel}] figure").filter(has=place.page.locator(f"figcaption:text-is('{caption}')"))
    rows, columns = shape
    assert figure.locator("canvas").get_attribute("aria-label") == f"{caption}: {rows} by {columns} numbers"
    return place.page.evaluate(CELLS, [figure.locator("canvas").element_handle(), rows, columns])
