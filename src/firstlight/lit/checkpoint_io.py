"""How Lightning writes and reads checkpoints here: whole or not at all, and never running what is in them."""

import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import CheckpointIO

from firstlight.data.cache import sync
from firstlight.lit.checkpoint import CARD, FORMAT, LAST, PREVIOUS, read_checkpoint

WEIGHTS_OF_A_PROCESS = ".temp.ckpt"  # by which Lightning's forked or spawned processes hand back bare weights


class AtomicCheckpointIO(CheckpointIO):
    """Lightning's checkpoints, with the run's card, under a temporary name until they are on the disk."""

    def __init__(self, card: dict[str, Any]) -> None:
        """card: config, tokenizer and classes in plain types, so that a reader needs nothing but the checkpoint.

        A module that puts a card of its own into the checkpoint keeps it.
        """
        self.card = card

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Write, flush to the disk, rename. The last.ckpt of before becomes previous.ckpt."""
        assert storage_options is None, "a local file has no storage options"
        target = Path(path)
        is_first = not target.parent.exists()
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
        try:
            with os.fdopen(handle, "wb") as file:
                is_whole = target.name != WEIGHTS_OF_A_PROCESS
                torch.save({CARD: {"format": FORMAT, **self.card}, **checkpoint} if is_whole else checkpoint, file)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            if target.name == LAST and target.is_file():
                _keep(target, target.with_name(PREVIOUS))
            Path(temporary).replace(target)
        except RuntimeError as error:  # torch's writer hides the disk's own error
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None
        finally:
            Path(temporary).unlink(missing_ok=True)
            if is_first and not any(target.parent.iterdir()):
                target.parent.rmdir()  # so that a folder without checkpoints is one from which they were deleted
        sync(target.parent)  # the rename itself is to outlast a power cut

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        """Read tensors and plain types only, whatever is asked for."""
        del weights_only
        if Path(path).name == WEIGHTS_OF_A_PROCESS:
            return torch.load(path, map_location=map_location or "cpu", weights_only=True)
        return read_checkpoint(path, map_location or "cpu")

    def remove_checkpoint(self, path: Any) -> None:
        """Delete a checkpoint."""
        Path(path).unlink(missing_ok=True)


def _keep(last: Path, previous: Path) -> None:
    """Give a checkpoint a second name, under which it outlives its replacement. There is always one named last."""
    link = previous.with_name(f".{previous.name}-link")
    link.unlink(missing_ok=True)
    try:
        link.hardlink_to(last)
    except OSError:  # a file system without hard links: for a moment there is none named last
        last.replace(previous)
    else:
        link.replace(previous)
