"""The arguments of data modules in Python: the options of a dataclass, and rows in place of a file."""

import hashlib
import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, TypeVar

from firstlight.choices import descriptions, listed, refuse_unknown
from firstlight.data.options import DataOptions
from firstlight.files.atomic import write_atomically
from firstlight.spelling import in_python, spelled
from firstlight.text.options import TokenizerOptions

Data = TypeVar("Data")
Tables = tuple[Any, ...]  # one table, or a list for each column

ROWS = (
    "rows: The data itself, in place of `path`: a pandas DataFrame, a `datasets.Dataset`, a dict of columns, a list "
    "for each column, such as the texts and the labels, or a dict of such tables by split. The text of a generator is "
    "a string or a list of lines. The data is written to `cache_dir` and read as a file, with the same checks."
)


def takes(kind: type[DataOptions]) -> Callable[[type[Data]], type[Data]]:
    """Return a decorator of a data module whose constructor accepts rows and the options of a dataclass.

    It gives the class a signature with the options and their defaults. In the docstring of the class, it replaces
    `{options}` by the descriptions of the rows and the options.
    """
    parameters = [Parameter("rows", Parameter.VAR_POSITIONAL, annotation=Any)]
    for each in fields(kind):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        annotation: Any = each.type
        if isinstance(default, Enum):
            annotation, default = Literal[tuple(type(default).__members__)], default.name
        elif isinstance(default, TokenizerOptions):
            annotation, default = TokenizerOptions | dict[str, Any] | str, default.kind.name
        parameters.append(Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation))

    def decorate(data: Any) -> Any:
        data.__signature__, data.options_type = Signature(parameters), kind
        page = inspect.cleandoc(data.__doc__ or "")  # as Python 3.13 keeps it
        data.__doc__ = page.replace("{options}", _described(kind, indent=" " * 4).lstrip())
        return data

    return decorate


def _described(kind: type[DataOptions], indent: str) -> str:
    """Return a paragraph for the rows and for each option with its description, as it is given in Python."""
    found = descriptions(kind)
    options = (f"{each.name}: {in_python(' '.join(found[each.name].split()))}" for each in fields(kind))
    filled = partial(fill, width=120, initial_indent=indent, subsequent_indent=indent + " " * 4)
    return "\n".join(map(filled, (ROWS, *options)))


def options_of(kind: type[DataOptions], owner: str, rows: Tables, given: dict[str, Any]) -> DataOptions:
    """Return the options of a data module. Rows are written to its cache and named by `path`.

    owner: the name of the data module. Raises TypeError for an unknown option and for rows of another type, and
    ValueError for a value.
    """
    refuse_unknown(given, [each.name for each in fields(kind)], owner)
    path = given.get("path")
    if not isinstance(path, str | Path | None):
        problem = f"{owner}: path must be the name of a file or folder, not a {type(path).__name__}"
        raise TypeError(f"{problem}; give the rows without a name, as in {owner}(frame)")
    if rows and ("path" in given or "source" in given):
        raise TypeError(f"{owner}: the rows replace path and source; leave these out")
    try:
        options = kind(**given | {"path": ""}) if rows else kind(**given)
        if rows:
            options.path = _written(rows, options, owner)
    except ValueError as error:
        raise ValueError(spelled(str(error))) from None
    return options


def _written(rows: Tables, options: DataOptions, owner: str) -> str:
    """Write the rows to a folder with a file for each split, which their content names, and return the folder."""
    columns: list[str] = []
    for name in ("text_columns", "label_column", "source_column", "target_column"):
        named = getattr(options, name, [])
        columns += [named] if isinstance(named, str) else named
    is_divided = isinstance(rows[0], Mapping) and not rows[0].keys().isdisjoint(("train", "test"))
    tables = {split: (table,) for split, table in rows[0].items()} if is_divided else {"train": rows}
    if columns:
        files = {f"{split}.jsonl": _json_lines(table, columns, owner) for split, table in tables.items()}
    else:
        files = {"text.txt": _text(rows, owner)}
    folder = Path(options.cache_dir) / "rows" / hashlib.sha256(json.dumps(files).encode()).hexdigest()[:24]
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomically(folder / name, content)
    return str(folder)


def _json_lines(table: Tables, columns: list[str], owner: str) -> str:
    """Return the rows of a table as JSON. Columns without a name have those of the options in their order."""
    from pandas import DataFrame  # type: ignore[import-untyped]

    first = table[0]
    is_frame = isinstance(first, Mapping | DataFrame) or hasattr(first, "to_pandas")
    is_text = isinstance(first, str) or not isinstance(first, Iterable)
    if is_text or len(table) > (1 if is_frame else len(columns)):
        problem = f"{owner}: the rows must be a table, or lists for {listed(columns)}, not {_types(table)}"
        raise TypeError(f"{problem}; name a file with path=")
    if not is_frame and not isinstance(next(iter(first), None), Mapping):
        first = dict(zip(columns, map(list, table), strict=False))
        if len({len(values) for values in first.values()}) > 1:
            lengths = listed(f"{name} {len(values)}" for name, values in first.items())
            raise ValueError(f"{owner}: the columns must have the same number of rows, not {lengths}; correct them")
    frame = first.to_pandas() if hasattr(first, "to_pandas") else DataFrame(first)
    values = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return "".join(json.dumps(row, default=str) + "\n" for row in values)


def _text(rows: Tables, owner: str) -> str:
    """Return the text of a generator."""
    text = rows[0]
    if len(rows) > 1 or not isinstance(text, str | list | tuple):
        raise TypeError(f"{owner}: the text must be a string or a list of lines, not {_types(rows)}")
    if isinstance(text, str) and os.path.isfile(text):  # noqa: PTH113  (Path.is_file raises OSError for a long text)
        raise TypeError(f"{owner}: {text} is a file; name it with path={text!r}")
    return text if isinstance(text, str) else "\n".join(text)


def _types(values: Tables) -> str:
    return listed([type(each).__name__ for each in values])
