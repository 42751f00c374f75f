"""Docstrings and signatures of the classes that a configuration names, from their source files. Nothing is imported."""

import ast
import inspect
import re
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import GenericAlias
from typing import Any, Literal, Union

from docstring_parser import ParseError, google

TYPES: dict[str, Any] = {"int": int, "float": float, "str": str, "bool": bool, "None": None, "dict": dict}
TYPES |= {"Path": str, "_PATH": str, "Tensor": float}  # what YAML has for them
LISTS = ("list", "tuple", "Sequence", "Iterable")
MOST_CHARACTERS = 160  # of a description of several sentences

Part = tuple[dict[str, str], dict[str, Any]]  # the sentences and the types of parameters, by name


def summary(target: str) -> str:
    """Return the first sentences of the docstring of a class or function; "" if it has none.

    >>> summary("firstlight.callbacks.Throughput").startswith("Log ")
    True
    """
    return parameter(target, "")[0]


def parameter(target: str, name: str) -> tuple[str, Any]:
    """Return the first sentences about a parameter of a class or function, and its type.

    They are "" and Any if the source has none. Base classes describe what a class does not.

    >>> parameter("lightning.pytorch.Trainer", "max_steps")
    ('Stop training after this number of steps.', <class 'int'>)
    """
    module, _, name_of_class = target.rpartition(".")
    parts = _parts(module, name_of_class)
    sentence = next((sentences[name] for sentences, _ in parts if name in sentences), "")
    return sentence, next((hints[name] for _, hints in parts if name in hints), Any)


def as_yaml(text: str) -> str:
    """Return a description in one line, with the values of Python as they are written in YAML."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`|`([^`<]+) <[^>]+>`_", r"\1\2", " ".join(text.split()))
    text = re.sub(r"\b(None|True|False)\b", lambda found: {"None": "null"}.get(found[0], found[0].lower()), text)
    return re.sub(r'"([a-z_]+)"', r"\1", text)


def _in_short(text: str) -> str:
    """Return the first sentences of a description, without the default of the class, which need not be ours."""
    first, *more = re.split(r"(?<=[^.\s]{2}[.!?])\s(?=[^a-z])", as_yaml(text))
    short = re.split(r"[.;,]?\s*\(?\b[Dd]efaults?(?: to|:)", first)[0]
    for sentence in more if short == first else ():
        if len(short) + len(sentence) > MOST_CHARACTERS or "default" in sentence.lower():
            break
        short = f"{short} {sentence}"
    short = f"{short[:1].upper()}{short[1:]}".replace("`", "").rstrip(".:")
    return short and f"{short}."


@cache
def _parts(module: str, name: str) -> list[Part]:
    """Return what describes the parameters of a function, or of a class and its base classes. "": the whole."""
    module, node = _find(module, name)
    if isinstance(node, ast.FunctionDef):
        return [_part(module, [node], node)]
    if not isinstance(node, ast.ClassDef):
        return []
    init = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    own = _part(module, [node, init, _find(module, f"{name}.__doc__")[1]], init)
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return [own, *(part for base in bases for part in _parts(module, base))]


def _part(module: str, texts: list[Any], function: ast.FunctionDef | None) -> Part:
    sentences: dict[str, str] = {}
    for node in texts:
        has_body = isinstance(node, ast.ClassDef | ast.FunctionDef)
        text = ast.get_docstring(node) if has_body else inspect.cleandoc(_text(module, node))
        try:
            parsed = google.parse(text or "")
        except ParseError:  # a docstring in another style; the types are in the signature
            continue
        found = {"": parsed.short_description} | {each.arg_name: each.description for each in parsed.params}
        sentences |= {name: _in_short(each) for name, each in found.items() if each and name not in sentences}
    given = [*function.args.args, *function.args.kwonlyargs] if function else []
    return sentences, {each.arg: _hint(module, each.annotation) for each in given}


def _hint(module: str, node: ast.expr | None) -> Any:
    """Return the type that an annotation means. A class of which YAML has no values is Any."""
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=str(text)):
            return _hint(module, ast.parse(text, mode="eval").body)
        case ast.Name(id=name) if name in TYPES:
            return TYPES[name]
        case ast.Name(id=str(name)) if name.startswith("_"):  # an alias such as Lightning's _LITERAL_WARN
            return _hint(*_find(module, name))
        case ast.BinOp(left=left, right=right):
            return Union[_hint(module, left), _hint(module, right)]  # noqa: UP007  (types that are made here)
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if name == "Literal":
                return Literal[tuple(part.value for part in parts if isinstance(part, ast.Constant))]
            hints: tuple[Any, ...] = tuple(_hint(module, part) for part in parts)
            if name in LISTS:
                return GenericAlias(list, hints[:1])
            if name == "Optional":
                hints = (*hints, None)
            return Union[hints] if name in ("Optional", "Union") else TYPES.get(name, Any)  # noqa: UP007
    return Any


def _text(module: str, node: Any) -> str:
    """Return the text of an expression of constants, such as torch's `r"…" + rf"… {_params_doc}"`."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.BinOp(left=left, right=right):
            return _text(module, left) + _text(module, right)
        case ast.JoinedStr(values=values):
            return "".join(_text(module, value) for value in values)
        case ast.FormattedValue(value=ast.Name(id=name)):
            return _text(*_find(module, name))
    return ""


def _find(module: str, name: str) -> tuple[str, Any]:
    """Return the definition of a name of a module, or the value that is assigned to it, and the module that has it."""
    for node in _statements(module):
        match node:
            case ast.ClassDef() | ast.FunctionDef() if node.name == name:
                return module, node
            case ast.Assign(targets=[target]) if ast.unparse(target) == name:
                return module, node.value
            case ast.ImportFrom(module=str(origin), names=names, level=level):
                if original := [each.name for each in names if name == (each.asname or each.name)]:
                    return _find(_absolute(module, origin, level), original[0])
    return module, None


@cache
def _statements(module: str) -> list[ast.stmt]:
    return ast.parse(file.read_bytes()).body if (file := _file(module)) else []


def _absolute(module: str, origin: str, level: int) -> str:
    """Return the full name of a module that another one imports. level: number of dots before its name."""
    file = _file(module)
    package = module if file and file.stem == "__init__" else module.rpartition(".")[0]
    return f"{package.rsplit('.', level - 1)[0]}.{origin}" if level else origin


def _file(module: str) -> Path | None:
    """Return the source file of a module; for a package the stub of its public names, if there is one."""
    top, *rest = module.split(".")
    spec = PathFinder.find_spec(top)  # which imports nothing, unlike that of a submodule
    if spec is None or spec.origin is None:
        return None
    top_file = Path(spec.origin)
    base = (top_file.parent if spec.submodule_search_locations else top_file.with_suffix("")).joinpath(*rest)
    files = (base / "__init__.pyi", base / "__init__.py", base.with_name(f"{base.name}.py"))
    return next((file for file in files if file.is_file()), None)
