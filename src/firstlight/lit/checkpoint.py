"""Reading of checkpoint files, without running code from them and without Lightning."""

import json
import lzma
import pickle
import re
import struct
import zipfile
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from firstlight.errors import UserError
from firstlight.files.regular import regular
from firstlight.invocation import install_command, invocation
from firstlight.runs.folder import EXPORTED_CONFIG, EXPORTED_WEIGHTS
from firstlight.text.saved_tokenizers import json_of_library
from firstlight.version import __version__, refuse_other

STAMP = {"version": __version__}  # in the metadata of each checkpoint
METADATA = "firstlight"  # the key of everything that a run needs in addition to its weights
EXPORTED_TOKENIZER, EXPORTED_TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
EXPORTED_SOURCE_TOKENIZER = "source_tokenizer.json"  # of a translator with two vocabularies
OF_AN_EXPORT = (
    *(EXPORTED_WEIGHTS, EXPORTED_CONFIG, EXPORTED_TOKENIZER, EXPORTED_TOKENIZER_CONFIG, EXPORTED_SOURCE_TOKENIZER),
    *("README.md", "evaluate"),
)
TARGET_ENCODING = "target_encoding"  # the key of its tables in metadata
MOST_BYTES_OF_A_JSON = 2**27
OTHER, EXPORT_AGAIN = "use the run's other checkpoint, or train again", "export the run again"
URL = re.compile(r"[\w.+-]{2,}:/")  # a Path drops the second slash
FOLDER = 0x10  # the flag of a folder in a zip file; torch leaves the memory of such a tensor uninitialized
NOT_A_WHOLE_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, RuntimeError, ValueError)
NOT_PLAIN = (
    *(pickle.UnpicklingError, struct.error, EOFError, RuntimeError, ValueError, TypeError),
    *(LookupError, AttributeError, AssertionError, ArithmeticError, MemoryError),
)


class DamagedCheckpoint(UserError):  # noqa: N818 (the file is wrong, not the program)
    """Raised if a checkpoint is truncated or does not match its checksums."""


def read_checkpoint(path: Path | str, map_location: Any = "cpu") -> dict[str, Any]:
    """Return the content of a checkpoint of firstlight, without running any code from the file.

    Args:
        path: A local file, such as `checkpoints/best.ckpt` in the folder of a run, or `model.safetensors` in a folder
            that `firstlight export --to safetensors` wrote.
        map_location: The device for the tensors, as in `torch.load`.

    Returns:
        The checkpoint that Lightning wrote. `state_dict` has the weights.
        `firstlight` has the options, the tokenizer and the classes in plain types.

    Raises:
        DamagedCheckpoint: If the file is truncated or damaged. It is a UserError.
        UserError: If the file is missing, is not a checkpoint of firstlight, was written by a version that this one
            does not read, or contains anything but tensors and plain values.

    Example:
        >>> import lightning as L
        >>> from firstlight.data import ReviewData
        >>> from firstlight.lit import Classification, read_checkpoint
        >>> data = ReviewData(path="reviews.csv", labels="binary")
        >>> trainer = L.Trainer(max_steps=1)
        >>> trainer.fit(Classification.for_data(data, dim=8, num_heads=2), datamodule=data)
        >>> trainer.save_checkpoint("one_step.ckpt")
        >>> checkpoint = read_checkpoint("one_step.ckpt")
        >>> checkpoint["global_step"], checkpoint["firstlight"]["class_names"]
        (1, ['negative', 'positive'])
    """
    if URL.match(str(path)):
        raise UserError(f"{path} is a URL; download the run folder first, and only from people you trust")
    if Path(path).name == EXPORTED_WEIGHTS:
        return _read_export(Path(path))
    with ExitStack() as opened:  # one file for the check and the reading, even if a training replaces it meanwhile
        try:
            file = opened.enter_context(regular(Path(path)).open("rb"))
            damaged = _damaged_part(file)
        except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
            raise UserError(f"{path}: {error.strerror}; name a checkpoint, or train the run first") from None
        except NOT_A_WHOLE_ZIP as error:
            raise DamagedCheckpoint(f"{path} is truncated, damaged or not a checkpoint ({error}); {OTHER}") from None
        if damaged is not None:
            raise DamagedCheckpoint(f"{path} is damaged in {damaged}; {OTHER}")
        file.seek(0)
        try:
            checkpoint = torch.load(file, map_location=map_location, weights_only=True)
        except NOT_PLAIN as error:
            lines = [line for line in str(error).splitlines() if line.strip() and "documentation" not in line]
            # what follows a sentence is torch's advice
            reason = lines[-1].strip().partition(". ")[0] if lines else type(error).__name__
            raise UserError(f"{path} is not a checkpoint of tensors and plain values; not loaded ({reason})") from None
    metadata = checkpoint.get(METADATA) if isinstance(checkpoint, dict) else None
    if not isinstance(metadata, dict) or "state_dict" not in checkpoint:
        train = invocation("train")
        raise UserError(f"{path} is not a checkpoint of firstlight; name the folder of a run of `{train}`")
    refuse_other(metadata.get("version"), path)
    return checkpoint


def _read_export(path: Path) -> dict[str, Any]:
    """Return the content of a folder that `export --to safetensors` wrote, in the form of a checkpoint.

    path: the file of the weights. Raises UserError for a folder of another program, for a link or another file in the
    folder, which may be code, and for damaged files.
    """
    written = f"`{invocation('export')} RUN --to safetensors`"
    folder = path.parent
    content = read_json(folder / EXPORTED_CONFIG)
    metadata = content.get(METADATA) if isinstance(content, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("tokenizer_kinds"), dict):
        raise UserError(f"{folder / EXPORTED_CONFIG} was not written by {written}; name a folder of that command")
    refuse_other(metadata.get("version"), folder / EXPORTED_CONFIG)
    for each in sorted(folder.iterdir()):
        if each.is_symlink():
            raise UserError(f"{each} is a link, which may lead anywhere; replace it by a copy of the file")
        if each.name not in OF_AN_EXPORT:
            raise UserError(f"{each} is not a file of {written} and may be code; remove it")
    tensors = read_tensors(path)
    for name, other in (metadata.get("tied_weights") or {}).items():
        if other in tensors:
            tensors[name] = tensors[other]
    counted = {name: tensors.pop(name) for name in [*tensors] if name.startswith(f"{TARGET_ENCODING}.")}
    if counted:
        metadata[TARGET_ENCODING] = {name.partition(".")[2]: values for name, values in counted.items()}
    files = {"tokenizer": EXPORTED_TOKENIZER, "source_tokenizer": EXPORTED_SOURCE_TOKENIZER}
    for key, kind in metadata["tokenizer_kinds"].items():
        if key in files:
            metadata[key] = json_of_library(json.dumps(read_json(folder / files[key])), kind)
    return {METADATA: metadata, "state_dict": {f"network.{name}": each for name, each in tensors.items()}}


def read_tensors(path: Path, remedy: str = EXPORT_AGAIN) -> dict[str, Tensor]:
    """Return the tensors of a file of safetensors. Raises UserError with the remedy if it is damaged."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise UserError(f"{path} requires safetensors: {install_command('export')}") from error
    try:
        with safe_open(regular(path), "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (it is no dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise DamagedCheckpoint(f"{path} is truncated or damaged ({error}); {remedy}") from None


def read_json(path: Path, remedy: str = EXPORT_AGAIN) -> Any:
    """Return the content of a JSON file. Raises UserError with the remedy if it is missing, too large or broken."""
    try:
        return json.loads(regular(path, MOST_BYTES_OF_A_JSON).read_text(encoding="utf-8"))
    except UserError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path} is missing or broken ({' '.join(str(error).split())}); {remedy}") from None


def _damaged_part(file: BinaryIO) -> str | None:
    """Return the name of a part with a wrong checksum or with the flag of a folder, or None if all are correct."""
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
        if sum(part.file_size for part in parts) > file.seek(0, 2):  # torch compresses nothing
            return "its list of parts, which are larger than the file"
        return archive.testzip() or next((part.filename for part in parts if part.external_attr & FOLDER), None)
