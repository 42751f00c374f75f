"""Atomic writing of checkpoint files."""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import CheckpointIO

from firstlight.files.atomic import replacing, sync
from firstlight.lit.checkpoint import METADATA, STAMP, read_checkpoint

LAST, PREVIOUS = "last.ckpt", "previous.ckpt"  # the checkpoint to resume from; the one before it
WEIGHTS_OF_A_PROCESS = ".temp.ckpt"  # with which Lightning's forked or spawned processes return their weights


class AtomicCheckpointIO(CheckpointIO):
    """Writer of Lightning's checkpoints with the run's metadata. A file has a temporary name until it is complete."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        """metadata: config, tokenizer and classes in plain types, so that a reader needs only the checkpoint.

        Metadata that a module has already put into the checkpoint is kept.
        """
        self.metadata = metadata

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Write a checkpoint, flush it to the disk and rename it. An existing last.ckpt becomes previous.ckpt."""
        assert storage_options is None, "a local file has no storage options"
        target = Path(path)
        is_first = not target.parent.exists()
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with replacing(target, before=partial(_keep, target)) as unfinished:
                is_whole = target.name != WEIGHTS_OF_A_PROCESS
                with unfinished.open("wb") as file:
                    torch.save({METADATA: self.metadata | STAMP, **checkpoint} if is_whole else checkpoint, file)
        except RuntimeError as error:  # torch's writer replaces the error of the disk
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None
        finally:
            if is_first and not any(target.parent.iterdir()):
                target.parent.rmdir()  # an empty folder would mean that the checkpoints were deleted
        sync(target.parent)  # so that the rename survives a power cut

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        """Return a checkpoint of tensors and plain types. weights_only is ignored, since no other type is ever read."""
        del weights_only
        if Path(path).name == WEIGHTS_OF_A_PROCESS:
            return torch.load(path, map_location=map_location or "cpu", weights_only=True)
        return read_checkpoint(path, map_location or "cpu")

    def remove_checkpoint(self, path: Any) -> None:
        """Delete a checkpoint."""
        Path(path).unlink(missing_ok=True)


def _keep(last: Path) -> None:
    """Keep last.ckpt as previous.ckpt before it is replaced. A file named last exists at all times."""
    if last.name != LAST or not last.is_file():
        return
    previous = last.with_name(PREVIOUS)
    link = previous.with_name(f".{previous.name}-link")
    link.unlink(missing_ok=True)
    try:
        link.hardlink_to(last)
    except OSError:  # without hard links, no file is named last for a moment
        last.replace(previous)
    else:
        link.replace(previous)
        link.unlink(missing_ok=True)  # replace() does nothing if both name one file, as after a kill
