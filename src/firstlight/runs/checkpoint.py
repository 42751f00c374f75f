"""Checkpoint files, read without ever running what is in them."""

import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch

from firstlight.errors import UserError

FORMAT = 1
CARD = "firstlight"  # the key of what a run needs besides its weights


def read_checkpoint(path: Path, map_location: Any = "cpu") -> dict[str, Any]:
    """The content of a checkpoint of ours. Raises UserError if it is missing, damaged, foreign or unsafe."""
    if "://" in str(path):
        raise UserError(f"{path} is a URL; download the run folder first, and only from people you trust")
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # compares every part with its checksum
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such checkpoint; train the run first") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not a checkpoint") from None
    except (zipfile.BadZipFile, EOFError) as error:
        raise UserError(
            f"{path} is truncated or no checkpoint ({error}); use the run's other one, or train again"
        ) from None
    if damaged is not None:
        raise UserError(f"{path} is damaged in {damaged}; use the run's other checkpoint, or train again")
    try:
        checkpoint = torch.load(path, map_location=map_location, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
        raise UserError(
            f"{path} holds more than tensors and plain values, or is no checkpoint; not loaded ({reason})"
        ) from None
    card = checkpoint.get(CARD) if isinstance(checkpoint, dict) else None
    if not isinstance(card, dict) or "state_dict" not in checkpoint:
        raise UserError(f"{path} is not a checkpoint of firstlight; name the folder of a run of `src/train.py`")
    if card.get("format") != FORMAT:
        raise UserError(
            f"{path} has format {card.get('format')}, and this version reads {FORMAT}; use the version it came from"
        )
    return checkpoint
