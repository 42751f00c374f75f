"""The options of a command such as `predict`, from a dataclass: parsed, and explained by `--help`."""

import functools
import inspect
import io
import shlex
import shutil
import sys
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, fields, is_dataclass
from itertools import takewhile
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union

import tyro

from firstlight import spelling
from firstlight.errors import UserError
from firstlight.invocation import invocation
from firstlight.terminal_text import say

MENDED = (  # in the script of tyro 1.0.16: zsh counts words from 1; other words are completed as paths
    ('"$CURRENT"', '"$((CURRENT - 1))"'),
    ("_describe 'firstlight", "[[ -n $completions ]] || { _files; return }\n  _describe 'firstlight"),
    ("matches+=(", "[[ -z $completion ]] || matches+=("),
    ("complete -F", "complete -o default -F"),
)
BY_TYPE = {int: "N", float: "NUMBER", Path: "PATH"}  # the name of a value; that of a text is the name of its option

Options = TypeVar("Options")


@dataclass
class RunOptions:
    """Options of a command that reads a trained run.

    Args:
        run: The run: its folder, `latest`, `latest:<task>`, `latest-sweep`, `best:<metric>` or `best:<metric>:<task>`,
            such as latest:names or best:val/loss:names.
        checkpoint: The checkpoint of the run to use.
        log_dir: The folder below which `latest` and `best` search runs.
    """

    run: Annotated[str, tyro.conf.Positional]
    checkpoint: Literal["best", "last"] = "best"
    log_dir: Path = Path("logs")


@dataclass(kw_only=True)
class JsonOption:
    """Option of a command whose result other programs can read.

    Args:
        json: Write the result to standard output as JSON, and everything else to standard error.
    """

    json: bool = False


def parse(options: Callable[..., Options], command: str) -> Options:
    """Return the options that were typed for a command. Messages spell options as this command does.

    options: a dataclass. Raises UserError for an option that is typed as for `train`, such as `split=test`.
    """
    assert isinstance(options, type)
    spelling.use(spelling.as_override)
    refuse_keys(sys.argv[1:], options, command)
    spelling.use(spelling.as_options_of(options))
    _annotate(options)
    return tyro.cli(options, prog=invocation(command), description=_description(options, command))


def write_completion(commands: Mapping[str, tuple[str, type | None]], shell: str) -> None:
    """Print the script with which a shell completes `firstlight`. commands: summary and options of each, by name."""

    @dataclass
    class Others:
        """A command without options of its own."""

    found: Any = ()
    for name, (summary, options) in commands.items():
        if options is not None:
            _annotate(options)
        found += (Annotated[options or Others, tyro.conf.subcommand(name, description=summary)],)
    with redirect_stdout(io.StringIO()) as script, suppress(SystemExit):
        tyro.cli(Union[found], prog="firstlight", args=["--tyro-print-completion", shell])  # noqa: UP007
    say(functools.reduce(lambda text, mended: text.replace(*mended), MENDED, script.getvalue()))


def _description(options: type, command: str) -> str:
    """Return the docstring without its arguments, and the examples, in lines that fit the terminal."""
    width = min(shutil.get_terminal_size().columns, 100)
    paragraph = " ".join((inspect.getdoc(options) or "").partition("\nArgs:")[0].split())
    indent = "  "  # without which tyro joins lines
    text = textwrap.fill(paragraph, width, initial_indent=indent, subsequent_indent=indent)
    examples = [f"  {invocation(command)} {each}".rstrip() for each in examples_of(command)]
    return "\n".join([text, *(["\nExamples:"] if examples else []), *examples])


def examples_of(command: str) -> list[str]:
    """Return the arguments of a command in the examples of its help; none for a command of another package."""
    import yaml

    examples = yaml.safe_load(Path(__file__).with_name("examples.yaml").read_text(encoding="utf-8"))
    return examples.get(command, [])


def refuse_keys(arguments: Sequence[str], options: type, command: str) -> None:
    """Raise UserError for an argument such as `split=test` before the options, and show the option to write instead."""
    spell = spelling.as_options_of(options)
    for argument in takewhile(lambda each: not each.startswith("-"), arguments):
        key, is_given, value = argument.partition("=")
        option = spell(key, value) or spell(f"data.{key}", value)
        if is_given and option and not Path(argument).exists():
            raise UserError(f"{argument}: {command} takes options with dashes; write {option}")


def refuse_text_after_run(command: str, option: str) -> None:
    """Raise UserError for a text that is typed after the run without its option, such as --text."""
    run, text, *_ = [*sys.argv[1:3], "-", "-"]
    if not any(each.startswith("-") or "=" in each for each in (run, text)):
        right = f"{invocation(command)} {shlex.quote(run)} {option} {shlex.quote(text)}"
        raise UserError(f"{text}: a text follows {option}; write {right}")


@functools.cache  # a second time would add the same annotations again
def _annotate(options: type) -> None:
    """Add to each field the name of its value in `--help`, and that a value which is unset has no default.

    tyro shows the docstring of a field in one paragraph, unless one of its lines begins with a mark, such as `--data`.
    """
    hints = typing.get_type_hints(options, include_extras=True)
    for each in fields(options):
        hint = hints[each.name]
        inner = _without_none(hint)
        if is_dataclass(inner):
            _annotate(inner)  # type: ignore[arg-type]
            continue
        is_unset = each.default is None or each.default_factory is list
        shown = tyro.conf.arg(
            metavar=_metavar(each.name, inner),
            help_behavior_hint="" if is_unset else None,
        )
        options.__annotations__[each.name] = Annotated[hint, shown]


def _without_none(hint: Any) -> Any:
    """Return a type without its annotations, and without None."""
    if typing.get_origin(hint) is Annotated:
        hint = typing.get_args(hint)[0]
    some = [each for each in typing.get_args(hint) if each is not NoneType]
    return some[0] if typing.get_origin(hint) in (Union, UnionType) and len(some) == 1 else hint


def _metavar(name: str, hint: Any) -> str | None:
    """Return how `--help` names the value of an option; None where tyro names it well."""
    if typing.get_origin(hint) is Literal:
        return f"{{{','.join(map(str, typing.get_args(hint)))}}}"
    if typing.get_origin(hint) is list:
        one = _metavar(name, typing.get_args(hint)[0])
        return one and f"{one} [{one} ...]"
    if typing.get_origin(hint) is dict:
        return "NAME NUMBER [NAME NUMBER ...]"
    if typing.get_origin(hint) is tuple:
        return " ".join(_metavar(name, each) or "" for each in typing.get_args(hint))
    return BY_TYPE.get(hint) or (name.rpartition("_")[2].removesuffix("s").upper() if hint is str else None)
