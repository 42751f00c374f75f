"""Splits long streams into lists of limited length."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

TEXTS_AT_ONCE = 4096  # limits the memory for inputs of any length

Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of `size` items. The last list can be shorter."""
    chunk: list[Item] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
