"""The text of `train --help`: commands, groups with their choices, and every key with its default and a sentence."""

import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import hydra
from omegaconf import OmegaConf

from firstlight import config_files
from firstlight.config.guesses import nearest_keys, question
from firstlight.config.keys import SECTIONS, Key, as_typed, keys
from firstlight.config.schema import register_schemas
from firstlight.errors import UserError
from firstlight.invocation import invocation
from firstlight.runs.identity import flat

DEFAULT_TASK = "sentiment"
GROUPS = {  # those that a user chooses from; the other folders of conf/ are used by its files only
    "task": "What the network learns, and from which data",
    "model": "Size of the network, or a baseline",
    "experiment": "Complete setting: best, finetune, post (blog posts), scaling",
    "data": "Type of the data; the task chooses it",
    "tokenizer": "Unit of the tokens",
    "vectors": "Initial word vectors",
    "optimizer": "Optimizer",
    "schedule": "Schedule of the learning rate",
    "trainer": "Device, and distribution over several of them",
    "callbacks": "Set of callbacks, or a single one",
    "logger": "Where the metrics are written",
    "debug": "Short or instrumented run, to find mistakes",
    "hparams_search": "Search in place of a grid",
    "ladder": "Step of experiment=post/names_ladder",
    "scale": "Size of experiment=scaling/names or scaling/shakespeare",
    "module": "LightningModule; the task chooses it",
}
INTERNAL = ("betas", "hydra", "local", "paths", "schema", "size", "sweep", "wandb_sweep")
COMMANDS = (
    ("train", "task=sentiment model=small", "Train, validate and test a classifier of reviews"),
    (
        "train",
        "task=reviews data.path=my.csv data.text_column=body data.label_column=verdict",
        "Classify your own texts",
    ),
    ("train", "task=text data.path=my_novel.txt", "Train a generator on your own text"),
    ("train", "task=translation data.path=my.csv data.source_column=en data.target_column=fr", "Train a translator"),
    ("train", "task=stars optimizer.lr=0.001 trainer.max_epochs=10", "Change keys"),
    ("train", "experiment=post/stars", "Train with a complete setting"),
    ("train", "task=shakespeare trainer=gpu", "Train on a GPU"),
    ("train", "-m task=sentiment,stars model=tiny,small seed=1,2,3", "Train every combination (a sweep)"),
    ("train", "task=stars resume=auto", "Continue an interrupted run"),
    ("train", "task=stars --cfg job", "Print the configuration and stop"),
    ("predict", 'latest --text "It works."', "Predict with the newest run"),
    ("report", "logs", "Compare all runs"),
)
OPTIONS = (
    ("--help [WORD ...]", "Show this text, or only the groups and keys with these names"),
    ("-m, --multirun", "Run every combination of values given as lists, such as seed=1,2,3"),
    ("--config-dir DIR", "Folder with your own settings, used in addition to ./conf"),
    ("--cfg job", "Print the configuration of this command line and stop"),
    ("--info defaults", "Print which files the configuration consists of and stop"),
)


def help_text(words: Sequence[str], overrides: Sequence[str]) -> str:
    """Return the help in lines that fit the terminal.

    words: names of groups, sections and keys to show; none: everything. overrides: keys that were typed too, whose
    values are shown. Raises UserError for a word without a match.
    """
    width = max(60, min(shutil.get_terminal_size().columns, 100))
    task = next((each.partition("=")[2] for each in overrides if each.startswith("task=")), DEFAULT_TASK)
    is_described = all(each.startswith("task=") for each in overrides) and not config_files.own_folders()
    values = (_defaults(task) if is_described else None) or _composed(overrides)
    parts = _selected(words, values, task, width) if words else _everything(values, task, overrides, width)
    return "\n".join(parts).rstrip("\n")


def _everything(values: dict[str, Any], task: str, overrides: Sequence[str], width: int) -> Iterator[str]:
    yield f"usage: {invocation('train')} [-m] [GROUP=CHOICE ...] [KEY=VALUE ...]"
    yield f"       {invocation('train')} --help WORD ...  (only these groups and keys)\n"
    yield "Train a transformer from first principles.\n"
    yield "Commands:"
    for command, arguments, purpose in COMMANDS:
        yield from _entry(f"{invocation(command)} {arguments}", purpose, width)
    yield "\nGroups (GROUP=CHOICE):"
    for group in _groups():
        yield from _group(group, width)
    typed = " ".join(overrides) or f"task={task}"
    yield f"\nKeys (KEY=VALUE), with their values for {typed}."
    yield from _wrapped("For those of other tasks: --help task=names. For one section: --help data.", width)
    for section in SECTIONS:
        yield from _section(section, values, task, width)
    yield "\nOptions:"
    for option, purpose in OPTIONS:
        yield from _entry(option, purpose, width)


def _selected(words: Sequence[str], values: dict[str, Any], task: str, width: int) -> Iterator[str]:
    for word in words:
        groups = [group for group in _groups() if word == group]
        found = [key for key in keys() if _is_meant(key, word)]
        if not groups and not found and word not in values:
            meant = question(nearest_keys(word, [*_groups(), *(key.name for key in keys())]))
            raise UserError(f"--help {word}: not a group or a key; {meant or '`--help` lists them'}")
        for group in groups:
            yield from _group(group, width, explained=True)
        if word in SECTIONS:
            yield from _section(word, values, task, width)
        else:
            for key in found:
                yield from _key(key, values, task, width, complete=True)


def _is_meant(key: Key, word: str) -> bool:
    return key.name == word or key.name.startswith(f"{word}.") or key.name.rpartition(".")[2] == word


def _groups() -> list[str]:
    own = [group for group in config_files.groups() if group not in (*GROUPS, *INTERNAL)]
    return [*GROUPS, *own]


def _group(group: str, width: int, *, explained: bool = False) -> Iterator[str]:
    choices = [choice for choice in config_files.choices(group) if not choice.startswith("metrics/")]
    title = f"{group}: {GROUPS[group]}" if group in GROUPS else group
    if not explained:
        yield from _entry(title, ", ".join(choices), width)
        return
    yield title
    for choice in choices:
        yield from _entry(f"{group}={choice}", _first_comment(group, choice), width)


def _first_comment(group: str, choice: str) -> str:
    """Return the first sentence of the comment at the top of a choice's file."""
    lines = config_files.file_of(group, choice).read_text(encoding="utf-8").splitlines()
    comment = []
    for line in lines:
        if not line.startswith("#"):
            break
        if not line.startswith(("# @package", "# yaml-language-server")):
            comment.append(line.lstrip("# "))
    return re.split(r"(?<=[.)])\s+(?=[A-Z])", " ".join(comment))[0]


def _section(section: str, values: dict[str, Any], task: str, width: int) -> Iterator[str]:
    present = [key for key in keys() if key.section == section and key.name in values]
    described = {key.name for key in present}
    own = [name for name in values if section and name.startswith(f"{section}.") and name not in described]
    if not present and not own:
        return
    yield f"\n{section}: {SECTIONS[section]}" if section else ""
    for key in present:
        yield from _key(key, values, task, width)
    for name in own:
        yield from _entry(f"{name}={as_typed(values[name])}", "", width)


def _key(key: Key, values: dict[str, Any], task: str, width: int, *, complete: bool = False) -> Iterator[str]:
    """Yield the lines of a key. complete: with its type, and with its defaults for all tasks."""
    variant = key.variant(task) or key.variants[0]
    value = values.get(key.name, variant.default)
    name = key.name if value == {} and key.is_node else f"{key.name}={_printable(value)}"
    yield from _entry(name, variant.sentence, width)
    if complete and key.type and not key.is_node:
        yield from _wrapped(f"Type: {key.type}.", width, "      ")
        yield from _wrapped(f"Default: {_printable(key.default_text)}.", width, "      ")


def _printable(value: Any) -> str:
    return as_typed(value).replace("\N{REPLACEMENT CHARACTER}", "U+FFFD")  # a terminal prints it as if it were a fault


def _defaults(task: str) -> dict[str, Any]:
    """Return the defaults of a task of firstlight; nothing for any other task."""
    found = ((key.name, key.variant(task)) for key in keys())
    return {name: variant.default for name, variant in found if variant is not None}


def _composed(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the values of all keys for a command line and for the user's own files."""
    register_schemas()
    with hydra.initialize_config_dir(str(config_files.CONFIG_DIR), version_base="1.3"):
        config = hydra.compose(config_files.CONFIG_NAME, overrides=list(overrides))
    leaves = flat(OmegaConf.to_container(config, enum_to_str=True))
    described = {key.name for key in keys()}
    nodes = {name for leaf in leaves for name in described if leaf.startswith(f"{name}.")}
    own = {name: value for name, value in leaves.items() if not (_is_hydras(name) or str(value).startswith("${"))}
    return {name: leaves[name] for name in described & leaves.keys()} | {name: {} for name in nodes} | own


def _is_hydras(name: str) -> bool:
    return name.rpartition(".")[2] in ("_target_", "_partial_", "_recursive_")


def _entry(name: str, text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(name, width - 2, **_WHOLE, initial_indent="  ", subsequent_indent="    ")
    yield from _wrapped(text, width, "      ")


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, **_WHOLE, initial_indent=indent, subsequent_indent=indent)


_WHOLE: Any = {"break_long_words": False, "break_on_hyphens": False}
