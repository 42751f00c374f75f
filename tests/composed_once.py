"""A cache of Hydra's compositions: files are read and merged once for all command lines that name them.

The choices of a command line (`model=tiny`) name about forty files. Hydra merges them, and then sets the other
overrides, which are values. Most runs of the tests differ only in values. This module stores the merged files until a
file or a registered schema changes, and returns a copy for each composition. It does not store errors. The workers of
pytest-xdist and the processes of their fork server share the stored files.
"""

import contextlib
import copy
import functools
import hashlib
import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hydra._internal import config_loader_impl
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import ConfigRepository
from hydra._internal.defaults_list import DefaultsList, Overrides
from hydra.core.config_store import ConfigStore
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.types import Override
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, OmegaConf

State = tuple[Any, ...]
FILE = "file://"
OWN_FILES = Path(__file__).parents[1] / "conf"
READ, MERGE = ConfigRepository.load_config, ConfigLoaderImpl._compose_config_from_defaults_list
CREATE_LIST = config_loader_impl.create_defaults_list


class ComposedOnce:
    """The stored compositions, by the state of all their files and schemas."""

    def __init__(self, folder: Path | None = None) -> None:
        """Make a cache. folder: a folder that several processes share, and to which only the tests write."""
        self._folder = folder
        self._kept: dict[State, bytes] = {}  # pickled, which copies four times as fast as copy.deepcopy

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Let Hydra use this cache within the block."""

        def file(repo: ConfigRepository, config_path: str) -> ConfigResult | None:
            source = repo._find_object_source(config_path, ObjectType.CONFIG)
            if source is None or not source.full_path().startswith(FILE):
                return READ(repo, config_path)
            path = Path(source.path, source._normalize_file_name(config_path))
            key = ("file", source.full_path(), source.provider, *state_of_file(path))
            return self._copy(key, lambda: READ(repo, config_path))

        def list_of_defaults(
            repo: Any, config_name: str | None, overrides_list: list[Override], **options: bool
        ) -> DefaultsList:
            overrides = Overrides(repo, overrides_list)
            values = overrides.config_overrides
            chosen = [each.input_line for each in overrides_list if each not in values and not each.is_sweep_override()]

            def create() -> tuple[Any, ...]:
                made = CREATE_LIST(repo, config_name, overrides_list, **options)
                return made.defaults, made.defaults_tree, made.overrides.known_choices

            key = ("list", state_of(repo), config_name, *chosen, *sorted(options.items()))
            defaults, tree, overrides.known_choices = self._copy(key, create)
            return DefaultsList(defaults, tree, values, overrides)

        def config(loader: ConfigLoaderImpl, defaults: list[Any], repo: Any) -> DictConfig:
            key = ("config", state_of(repo), *map(astuple, defaults))
            return self._copy(key, lambda: MERGE(loader, defaults, repo))

        with replaced(file, list_of_defaults, config):
            yield

    def _copy(self, key: State, make: Callable[[], Any]) -> Any:
        """Return a copy of the stored value of a key, or make and store it."""
        if key not in self._kept:
            try:
                self._kept[key] = self._shared(key, make)
            except pickle.PicklingError:  # Hydra's search for plugins runs joblib's schema twice: two equal classes
                return make()
        return pickle.loads(self._kept[key])  # noqa: S301  (made here)

    def _shared(self, key: State, make: Callable[[], Any]) -> bytes:
        """Return the pickled value of a key, which another process has made or this one makes."""
        path = self._folder and self._folder / hashlib.sha256(repr(key).encode()).hexdigest()
        if path and path.exists():
            return path.read_bytes()
        content = pickle.dumps(make(), pickle.HIGHEST_PROTOCOL)
        if path:
            unfinished = path.with_suffix(f".{os.getpid()}")
            path.parent.mkdir(exist_ok=True)
            unfinished.write_bytes(content)
            unfinished.replace(path)
        return content


@contextlib.contextmanager
def replaced(read: Any = READ, create_list: Any = CREATE_LIST, merge: Any = MERGE) -> Iterator[None]:
    """Let Hydra compose with these functions within the block. Without arguments, restore Hydra's own."""
    with (
        patch.object(ConfigRepository, "load_config", read),
        patch.object(ConfigRepository, "__deepcopy__", lambda repo, memo: copy.copy(repo), create=True),
        patch.object(config_loader_impl, "create_defaults_list", create_list),
        patch.object(ConfigLoaderImpl, "_compose_config_from_defaults_list", merge),
    ):
        yield


def state_of(repo: Any) -> State:
    """Return the state of everything that Hydra can read: the files of each source, and the registered schemas."""
    sources = [source.full_path() for source in repo.get_sources()]
    files = (state_of_folder(Path(path.removeprefix(FILE))) for path in sources if path.startswith(FILE))
    return (*sources, *files, *registered(ConfigStore.instance().repo))


def state_of_folder(folder: Path) -> State:
    return state_of_own_files() if folder == OWN_FILES else files_of(folder)


@functools.cache
def state_of_own_files() -> State:
    """Return the state of firstlight's own files, which no test changes."""
    return files_of(OWN_FILES)


def files_of(folder: Path) -> State:
    return tuple(state_of_file(path) for path in sorted(folder.rglob("*.yaml")))


def state_of_file(path: Path) -> State:
    if not path.exists():
        return (str(path),)
    status = path.stat()
    return str(path), status.st_ino, status.st_size, status.st_mtime_ns


def registered(repo: dict[str, Any]) -> Iterator[Any]:
    """Yield the names in Hydra's store of schemas, with their classes and values."""
    for name, entry in repo.items():
        if isinstance(entry, dict):
            yield name, *registered(entry)
        else:
            yield name, OmegaConf.get_type(entry.node), str(entry.node)
