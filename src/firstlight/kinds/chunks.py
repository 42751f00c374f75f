"""Long streams, a part at a time."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

TEXTS_AT_ONCE = 4096  # a million rows take no more memory than these

Item = TypeVar("Item")


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of `size` items, the last one shorter."""
    chunk: list[Item] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
