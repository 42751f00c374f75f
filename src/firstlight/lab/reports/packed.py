"""The JavaScript libraries of the page, compressed so that a small report stays below 2 MB and works offline."""

import base64
import lzma
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

FILTER = {  # a fast search: a higher preset takes three times as long and saves a tenth
    "id": lzma.FILTER_LZMA1,
    "lc": 4,
    "lp": 0,
    "pb": 0,
    "dict_size": 2**23,
    "mode": lzma.MODE_FAST,
    "mf": lzma.MF_HC4,
    "nice_len": 32,
    "depth": 8,
}


@dataclass(frozen=True)
class Packed:
    """Texts that unpack.js unpacks. text: LZMA in base 85. sizes: the bytes of each text, in UTF-8."""

    text: str
    sizes: tuple[int, ...]


def pack(texts: list[str]) -> Packed:
    """Return several texts as one text that can be the content of a script element.

    The digits are Python's base 85 with a comma in place of <, so that no tag or comment can occur.
    """
    contents = [text.encode("utf-8") for text in texts]
    compressed = lzma.compress(b"".join(contents), format=lzma.FORMAT_ALONE, filters=[FILTER])
    return Packed(base64.b85encode(compressed, pad=True).decode().replace("<", ","), tuple(map(len, contents)))


@cache
def libraries() -> Packed:
    """Return the libraries of the page: Plotly, DataTables, and the style of DataTables."""
    return pack([plotly(), bundle("dt_bundle.js"), bundle("dt_bundle.css")])


def plotly() -> str:
    """Return the JavaScript library for plots, which is part of the plotly package."""
    return (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")


def bundle(name: str) -> str:
    """Return a file of DataTables, which is part of the itables package. Importing itables would import pandas."""
    return Path(str(distribution("itables").locate_file(f"itables/html/{name}"))).read_text(encoding="utf-8")
