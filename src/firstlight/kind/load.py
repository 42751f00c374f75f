"""Functions that load a trained run from its folder."""

from functools import partial
from pathlib import Path
from typing import Any

from firstlight.errors import UserError
from firstlight.invocation import invocation
from firstlight.kind.kind import Kind, get
from firstlight.kind.loaded import LoadedRun, OfAllRuns
from firstlight.kind.registry import KINDS
from firstlight.lit.cards import TRAIN_AGAIN, check_content, kind_of, refuse_overflow
from firstlight.lit.checkpoint import CARD, read_checkpoint
from firstlight.lit.saved_networks import network_of_checkpoint
from firstlight.runs.folder import RunFolder
from firstlight.runs.named import find_run, is_checkpoint
from firstlight.spelling import option
from firstlight.text.saved_tokenizers import tokenizer_of_json


def load(run: str | Path, *, checkpoint: str = "best", log_dir: str | Path = "logs") -> LoadedRun:
    """Return a trained run, as described at `firstlight.load`. Raises UserError."""
    if is_checkpoint(run):  # written by a run, or by a Trainer in a notebook
        path = Path(run)
        folder = RunFolder(path.absolute().parents[1])
    else:
        folder = find_run(str(run), Path(log_dir))
        path = checkpoint_of(folder, checkpoint)
    content = open_checkpoint(path)
    card, kind = content[CARD], kind_of_card(content[CARD], path)
    tokenizer: Any = tokenizer_of_json(card["tokenizer"])
    reader: Any = tokenizer_of_json(card["source_tokenizer"]) if card.get("source_tokenizer") else tokenizer
    if not isinstance(tokenizer, tuple(map(get, kind.tokenizers))) or type(reader) is not type(tokenizer):
        raise UserError(f"{path}: a {kind.noun} does not support a {type(tokenizer).__name__}; {TRAIN_AGAIN}")
    network = network_of_checkpoint(content, path, get(kind.training).config_type).eval()
    network.register_forward_hook(partial(refuse_overflow, path))
    of_all = OfAllRuns(folder, path, network, card["config"], card["data_source"], card["data_fingerprint"])
    loaded: LoadedRun = get(kind.loaded)(of_all, card, tokenizer, reader)
    return loaded


def load_for(command: str, run: str, *, checkpoint: str) -> Any:
    """Return a run for `predict` or `generate`. Raises UserError if its kind requires the other command."""
    loaded = load(run, checkpoint=checkpoint)
    kind = KINDS[loaded.kind]
    if kind.command != command:
        other = invocation(kind.command)
        raise UserError(f"{run}: {loaded.folder.path} is a {kind.noun}; use `{other}`, or name another run")
    return loaded


def open_checkpoint(path: Path) -> dict[str, Any]:
    """Return the content of a checkpoint of any kind. Raises UserError, for example if its card is incomplete."""
    content = read_checkpoint(path)
    check_content(content, path, get(kind_of_card(content[CARD], path).training).card_checks)
    return content


def kind_of_card(card: dict[str, Any], path: Path) -> Kind:
    """Return the kind of network that the card of a checkpoint names. Raises UserError for an unknown kind."""
    kind = KINDS.get(kind_of(card))
    if kind is None:
        problem = f"{path}: network={kind_of(card)} must be one of {', '.join(KINDS)}"
        raise UserError(f"{problem}; use the version that wrote the checkpoint")
    return kind


def checkpoint_of(folder: RunFolder, which: str) -> Path:
    """Return the path of a run's best or last checkpoint. A run without validation has only the last one."""
    if which not in ("best", "last"):
        raise UserError(f"checkpoint={which} must be best or last")
    if which == "last":
        return folder.last_checkpoint
    if folder.best_checkpoint.is_file():
        return folder.best_checkpoint
    if str(folder.read().get("checkpoint")).endswith(folder.best_checkpoint.name):
        last = option("checkpoint", "last")
        raise UserError(f"{folder.best_checkpoint} is missing; use the last one by {last}, or train again")
    return folder.last_checkpoint
