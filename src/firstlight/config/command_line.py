"""The arguments of `train`: Hydra's options, options of other programs, and overrides such as `tags=demo`."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from hydra._internal.utils import get_args_parser

from firstlight.config.messages import known_keys, nearest_keys
from firstlight.errors import UserError

LISTS = ("tags", "teacher")  # keys whose value may be given without brackets
SWEPT = "teacher"  # of these, the one whose commas divide the values of a sweep
UNUSED = {  # options of Hydra
    "config_path": "train reads the settings of firstlight; add your own with --config-dir",
    "config_name": "train reads train.yaml; add your own settings with --config-dir",
    "experimental_rerun": "a pickle is not read, because it can run code; write resume= and the run's folder",
}


def parsed(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str], list[str]]:
    """Return the options of Hydra by name, the same as they were typed, and the overrides as Hydra accepts them.

    Raises UserError for an option with dashes that Hydra does not have. The message shows the key to write instead.
    """
    parser = _Parser(add_help=False, parents=[get_args_parser()], conflict_handler="resolve")
    asked, unknown = parser.parse_known_intermixed_args(list(arguments))
    for option in unknown:
        _refuse(option)
    options = list(arguments)
    for override in reversed(asked.overrides):  # the value of an option comes before, such as `--cfg job`
        del options[len(options) - 1 - options[::-1].index(override)]
    for option, remedy in UNUSED.items():
        if getattr(asked, option):
            raise UserError(f"--{option.replace('_', '-')} {getattr(asked, option)}: {remedy}")
    return asked, options, list(map(_accepted, asked.overrides))


def _refuse(option: str) -> NoReturn:
    name, _, value = option.partition("=")
    key, known = name.lstrip("-").replace("-", "_"), known_keys()
    meant = [key] if key in known else nearest_keys(key, known)
    keys = " or ".join(f"{each}={value or '…'}" for each in meant)
    remedy = f"write {keys}" if meant else "`--help` lists the keys"
    raise UserError(f"{option}: train takes key=value, without dashes; {remedy}")


def _accepted(argument: str) -> str:
    key, is_given, value = argument.partition("=")
    if key == SWEPT:
        value = ",".join(map(_as_list, re.findall(r"\[[^\]]*\]|[^,]+", value)))
    elif key in LISTS:
        value = _as_list(value)
    if value.startswith("~/"):  # bash leaves it there, and Hydra cannot read it
        value = f"{Path.home()}/{value[2:]}"
    return f"{key}{is_given}{value}"


def _as_list(value: str) -> str:
    """Return a value as a list of one, unless it is a list, null, or resolved later."""
    return value if value in ("", "null") or value.startswith(("[", "$")) else f"[{value}]"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; `--help` lists the options")
