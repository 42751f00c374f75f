"""A cache of Hydra's compositions: files are read and merged once for all command lines that name them.

The choices of a command line (`model=tiny`) name about forty files. Hydra merges them, and then sets the other
overrides, which are values. Most runs of the tests differ only in values. This module stores each file that was read
and the merged files, and returns a copy for each composition. It stores nothing if the user has a folder of settings,
whose files may change.
All processes of the tests share a folder of what one of them has merged.
"""

import contextlib
import copy
import functools
import hashlib
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import omegaconf.base
from hydra._internal import config_loader_impl
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra._internal.defaults_list import DefaultsList, Overrides
from hydra.core.override_parser.types import Override
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig

OWN_FILES = f"file://{Path(__file__).parents[1] / 'conf'}"
LOAD = ConfigRepository.load_config
CREATE_LIST, MERGE = config_loader_impl.create_defaults_list, ConfigLoaderImpl._compose_config_from_defaults_list
KEPT: dict[str, bytes] = {}  # pickled, which copies four times as fast as copy.deepcopy
FOLDER = Path()  # in which all processes of the tests store what they have read and merged


@contextlib.contextmanager
def composed_once() -> Iterator[None]:
    """Let Hydra use the cache within the block."""
    with (
        patch.object(ConfigRepository, "__deepcopy__", lambda repo, memo: copy.copy(repo), create=True),
        patch.object(ConfigRepository, "load_config", loaded),
        patch.object(omegaconf.base, "parse", functools.cache(omegaconf.base.parse)),
        patch.object(config_loader_impl, "create_defaults_list", list_of_defaults),
        patch.object(ConfigLoaderImpl, "_compose_config_from_defaults_list", merged),
    ):
        yield


def loaded(repo: ConfigRepository, config_path: str) -> ConfigResult | None:
    """Return the content of a file."""
    return kept(repo, config_path, lambda: LOAD(repo, config_path))


def list_of_defaults(
    repo: Any, config_name: str | None, overrides_list: list[Override], **options: bool
) -> DefaultsList:
    """Return the files that a command line names, like Hydra's create_defaults_list."""
    overrides = Overrides(repo, overrides_list)
    values = overrides.config_overrides
    chosen = [each.input_line for each in overrides_list if each not in values and not each.is_sweep_override()]

    def create() -> tuple[Any, ...]:
        made = CREATE_LIST(repo, config_name, overrides_list, **options)
        return made.defaults, made.defaults_tree, made.overrides.known_choices

    defaults, tree, overrides.known_choices = kept(repo, (config_name, chosen, options), create)
    return DefaultsList(defaults, tree, values, overrides)


def merged(loader: ConfigLoaderImpl, defaults: list[Any], repo: Any) -> DictConfig:
    """Return the merged files."""
    return kept(repo, defaults, lambda: MERGE(loader, defaults, repo))


def kept(repo: Any, key: Any, make: Callable[[], Any]) -> Any:
    """Return a copy of the stored value of a key, or make and store it."""
    sources = [source.full_path() for source in repo.get_sources()]
    if any(source.startswith("file://") and source != OWN_FILES for source in sources):
        return make()
    name = repr((sources, key))
    if name not in KEPT:
        path = FOLDER / hashlib.sha256(name.encode()).hexdigest()
        if not path.exists():
            made = make()
            try:
                content = pickle.dumps(made, pickle.HIGHEST_PROTOCOL)
            except pickle.PicklingError:  # Hydra's search for plugins runs joblib's schema twice: two equal classes
                return made
            unfinished = path.with_suffix(f".{os.getpid()}")
            unfinished.write_bytes(content)
            unfinished.replace(path)  # in one step, since other processes read it
        KEPT[name] = path.read_bytes()
    return pickle.loads(KEPT[name])  # noqa: S301  (made here)
