"""Data options of a checkpoint. The card defines how the data is read, and this machine where it is."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from firstlight import config_files
from firstlight.data.parallel import is_text_pair
from firstlight.data.sources import DATA_VARIABLE, local_folder
from firstlight.errors import UserError

ADDRESSES = ("hub", "url")
NOT_FROM_A_CARD = ("_target_", "cache_dir", *ADDRESSES)


def options_of_card(
    saved: dict[str, Any], kind: type, cache_dir: Path, *, path: str | None = None, source: str | None = None
) -> Any:
    """Return the data options in the card of a checkpoint, as an instance of a class of data/options.py.

    The address of the data, the cache and interpolations are not read from the card. The address is that of the data
    set of the same name in the configuration files. A path in the card is used, but its content must be equal to the
    training data (`refuse_other_data`).

    cache_dir, path, source: values of the command line; they replace those of the card. Raises UserError.
    """
    known = {field.name: field for field in fields(kind)}
    kept = {key: value for key, value in saved.items() if key not in NOT_FROM_A_CARD}
    for key in kept.keys() - known.keys():
        problem = f"the checkpoint's data.{key} is not an option of this version"
        raise UserError(f"{problem}; use the version that wrote the checkpoint")
    if isinstance(kept.get("tokenizer"), dict):
        kept["tokenizer"] = kept["tokenizer"] | {"word_list": None}  # the checkpoint has the vocabulary
    if path is not None or source is not None:
        kept |= {"path": path, "source": source or "auto"}
    elif kept.get("path") is not None:
        _check_file(Path(str(kept["path"])), (str(kept.get("source_column")), str(kept.get("target_column"))))
        kept["source"] = "local"  # a path of a card is never a Hub id
    address = {key: value for key, value in address_of(kept.get("name"), kind).items() if key in known}
    kept |= {"hub": ""} if "hub" in known else {"url": None}
    kept |= address | {"cache_dir": str(cache_dir)}
    try:
        options = kind(**kept)
    except (TypeError, ValueError) as error:
        is_typed = path is not None or source is not None
        raise UserError(str(error) if is_typed else f"the checkpoint's data options cannot be used: {error}") from error
    if options.path is None and not address and options.source.value in ("auto", "hub"):
        _check_local(options)
    return options


def address_of(name: Any, kind: type) -> dict[str, str]:
    """Return the `hub` and `url` of a data set of this name in the configuration files, or {} if there are none."""
    defaults: dict[str, Any] = {field.name: field.default for field in fields(kind)}
    found: dict[str, str] = {}
    if name == defaults["name"] and defaults.get("hub"):
        found["hub"] = defaults["hub"]
    for task in config_files.choices("task"):
        file: Any = OmegaConf.to_container(OmegaConf.load(config_files.file_of("task", task)))
        data = file.get("data") if isinstance(file, dict) else None
        if isinstance(data, dict) and name is not None and data.get("name") == name:
            found |= {key: data[key] for key in ADDRESSES if isinstance(data.get(key), str)}
    return found


def _check_file(path: Path, endings: tuple[str, str]) -> None:
    """Raise UserError unless the path of a card is a file or folder, or two files such as train.en and train.de."""
    if not (path.is_file() or path.is_dir() or is_text_pair(path, endings)):
        raise UserError(
            f"data.path={path}: the file or folder of the training does not exist, and addresses of checkpoints are "
            f"not used; set data.path to the data"
        )


def _check_local(options: Any) -> None:
    """Raise UserError for a data set that is not on this machine and has no address in the configuration files."""
    if options.source.value == "hub" or local_folder(options.name) is None:
        raise UserError(
            f"the run was trained on the data set {options.name}, which is not below ${DATA_VARIABLE} or data/; "
            f"the configuration files have no address of it, and addresses of checkpoints are not used; "
            f"set data.path to the data"
        )
