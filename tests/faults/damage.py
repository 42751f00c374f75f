"""Kinds of damage to a file: flipped bits, missing ends, other formats, hostile values in JSON and YAML."""

import contextlib
import copy
import gzip
import json
import logging
import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis.strategies as st

from faults.trials import Trials
from firstlight.commands.frame import run
from tests_support import Done, captured

OTHER_FORMATS = {
    "nothing": b"",
    "a new line": b"\n",
    "zeros": b"\0" * 3000,
    "null": b"null\n",
    "a number": b"17\n",
    "a text": b'"text"\n',
    "a list": b"[1, 2, 3]\n",
    "an object": b"{}\n",
    "brackets": b"[" * 100_000,
    "braces": b'{"a":' * 50_000,
    "digits": b"1" * 5_000 + b"\n",
    "one long line": b"a" * 2_000_000,
    "broken UTF-8": b"\xff\xfe\xc3\x28" * 50,
    "gzip": gzip.compress(b"one\ntwo\n", mtime=0),
    "a pickle": pickle.dumps({"a": [1, 2]}),
    "PNG": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
    "Parquet without an end": b"PAR1" + bytes(range(256)),
    "npy": b"\x93NUMPY\x01\x00v\x00{'descr': '<i8', 'fortran_order': False, 'shape': (2, ), }\n" + b"\1" * 16,
    "SQLite": b"SQLite format 3\0" + b"\0" * 4000,
    "HTML": b"<!DOCTYPE html><script>alert(1)</script>\n",
    "YAML of many aliases": b"a: &a [x, x, x, x, x, x, x, x, x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (i, i, b", ".join([b"*%c" % (i - 1)] * 9)) for i in range(98, 108)),
    "YAML of a tag": b"!!python/object/apply:os.system ['true']\n",
    "interpolations": b"${oc.env:HOME}\n",
    "CSV": b"text,label\nGood.,1\n",
}
VALUES: list[Any] = [  # values that no program expects
    *(None, True, 0, -1, 1e308, float("inf"), float("-inf"), float("nan"), 2**63, 10**400, 10**30, -0.5),
    *("", " ", "text", "x" * 100_000, "\ud800", "\u0000", "\x1b[2J\x1b]0;t\x07", "[/b][red]", "../../../x"),
    *("${oc.env:HOME}", "${a", "http://127.0.0.1:9/x", "1e999", "\r\n", "<script>alert(1)</script>", "=1+1"),
    *([], {}, [[]], [None], {"_target_": "os.system"}, {"": {}}, [1] * 10_000),
]


@dataclass(frozen=True)
class Damage:
    """A change of some bytes. where: from 0 (the start) to 1 (the end); size: number of bytes; content: new bytes."""

    kind: str
    where: float
    size: int
    content: bytes
    value: int

    def apply(self, before: bytes) -> bytes:
        """Return the bytes after the damage."""
        at = min(int(self.where * (len(before) + 1)), len(before))
        rest = before[at + self.size :]
        match self.kind:
            case "flip":
                changed = bytearray(before or b"\0")
                changed[min(at, len(changed) - 1)] ^= 1 << (self.value % 8)
                return bytes(changed)
            case "truncate":
                return before[:at]
            case "insert":
                return before[:at] + self.content + before[at:]
            case "overwrite":
                return before[:at] + self.content + before[at + len(self.content) :]
            case "zero":
                return before[:at] + b"\0" * min(self.size, len(before) - at) + rest
            case "delete":
                return before[:at] + rest
            case "double":
                return before + before
            case "swap":
                return before[at:] + before[:at]
            case "other format":
                return OTHER_FORMATS[sorted(OTHER_FORMATS)[self.value % len(OTHER_FORMATS)]]
            case "value":
                return with_value(before, self.where, VALUES[self.value % len(VALUES)])
        raise AssertionError(self.kind)

    def __repr__(self) -> str:
        match self.kind:
            case "other format":
                return f"other format: {sorted(OTHER_FORMATS)[self.value % len(OTHER_FORMATS)]}"
            case "value":
                return f"value at {self.where:.17g}: {VALUES[self.value % len(VALUES)]!r:.60}"
        return f"{self.kind} at {self.where:.17g}, {self.size} bytes, bit {self.value % 8}, {self.content!r}"


BYTES = ("flip", "truncate", "insert", "overwrite", "zero", "delete", "double", "swap", "other format")


def damages(*more: str) -> st.SearchStrategy[Damage]:
    """Return a strategy for damages of bytes, and of the given additional kinds, such as "value"."""
    return st.builds(
        Damage,
        kind=st.sampled_from([*BYTES, *more, *more, *more]),
        where=st.floats(0, 1),
        size=st.integers(1, 200) | st.integers(1, 100_000),
        content=st.binary(min_size=1, max_size=40),
        value=st.integers(0, 7 * len(OTHER_FORMATS) * len(VALUES)),
    )


def with_value(before: bytes, where: float, value: Any) -> bytes:
    """Return content with one value replaced: in JSON, in a line of JSON, or after a colon of YAML."""
    text = before.decode("utf-8", "replace")
    try:
        return json.dumps(replaced(json.loads(text), where, value)).encode()
    except ValueError:
        pass
    lines = text.splitlines(keepends=True)
    number = min(int(where * len(lines)), len(lines) - 1)
    written = json.dumps(value)
    if not lines:
        return written.encode()
    with contextlib.suppress(ValueError):
        lines[number] = json.dumps(replaced(json.loads(lines[number]), (where * len(lines)) % 1, value)) + "\n"
        return "".join(lines).encode()
    lines[number] = re.sub(r"([:=-])\s?.*", lambda found: f"{found[1]} {written}", lines[number].rstrip("\n"), count=1)
    return ("".join([*lines[:number], lines[number] + "\n", *lines[number + 1 :]])).encode("utf-8", "surrogatepass")


def replaced(tree: Any, where: float, value: Any) -> Any:
    """Return a copy of nested lists and dicts with one node, chosen by `where`, replaced or, for nan, removed."""
    paths = list(nodes(tree))
    path = paths[min(int(where * len(paths)), len(paths) - 1)]
    if not path:
        return value
    tree = copy.deepcopy(tree)
    parent = tree
    for key in path[:-1]:
        parent = parent[key]
    if isinstance(value, float) and value != value and isinstance(parent, dict):
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return tree


def nodes(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every node. For a long list, yield only the first nodes."""
    yield path
    children = tree.items() if isinstance(tree, dict) else enumerate(tree[:20]) if isinstance(tree, list) else ()
    for key, child in children:
        yield from nodes(child, (*path, key))


@contextmanager
def damaged(path: Path, damage: Damage) -> Iterator[None]:
    """Damage a file temporarily. It is replaced by a new file, since a memory map of the old file may still exist."""
    before = path.read_bytes()
    try:
        replace_file(path, damage.apply(before))
        yield
    finally:
        replace_file(path, before)


def try_damages(trials: Trials, path: Path, use: Callable[[], object], count: int, what: str, *more: str) -> None:
    """Damage a file in many ways, each for one trial in which it is used. more: kinds of damage, as for `damages`."""

    def check(damage: Damage) -> None:
        with damaged(path, damage):
            use()

    trials.examples(damages(*more), check, count, what)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file as a new inode."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def answered(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or None if it raises a one-line error as the commands do. Raise other errors."""
    result = None
    with captured() as (_, err), quiet():
        try:
            result = run(call)
        except SystemExit as error:
            code = error.code or 0
        else:
            return result
    assert_refused(2 if code == 0 else code, err.getvalue())
    return None


def assert_refused(code: Any, err: str) -> None:
    """Fail unless a command ended with exit code 2 and one clean line that starts with `error: `."""
    assert code == 2, f"exit code {code}: {err}"
    assert "Traceback" not in err, err
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, err
    assert len(lines[0]) < 3000, f"a line of {len(lines[0])} characters: {lines[0][:300]}"
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lines[0]), f"control characters: {lines[0]!r}"


def is_refused(done: Done) -> bool:
    """Return whether a command was refused, in one clean line. Fail if it has neither succeeded nor been refused."""
    if done.returncode:
        assert_refused(done.returncode, done.stderr)
    return bool(done.returncode)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress logging, and do not turn warnings into errors."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
