"""A trained run as an object, from its folder alone."""

from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from torch import nn

from firstlight.config import MODEL_NODES
from firstlight.errors import UserError
from firstlight.runs.checkpoint import CARD, read_checkpoint
from firstlight.runs.folder import RunFolder, find_run
from firstlight.runs.loaded_classifier import LoadedClassifier
from firstlight.runs.loaded_generator import LoadedGenerator
from firstlight.runs.networks import build_network
from firstlight.text.text_tokenizers import tokenizer_of_json, writer_of

WEIGHTS = "network."  # what the names of the network's weights begin with in a checkpoint


def load(
    run: str | Path, *, checkpoint: str = "best", log_dir: str | Path = "logs"
) -> LoadedClassifier | LoadedGenerator:
    """Load a run by its folder, `latest` or `best:<metric>`; checkpoint: best or last. Raises UserError."""
    folder = find_run(str(run), Path(log_dir))
    content = read_checkpoint(checkpoint_of(folder, checkpoint))
    card = content[CARD]
    kind = card.get("network", "classifier")  # the first checkpoints were all of classifiers, and did not say so
    tokenizer: Any = tokenizer_of_json(card["tokenizer"])
    config = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(MODEL_NODES[kind]), card["config"]["model"]))
    network: Any = build_network(config, tokenizer.vocab_size, len(card.get("class_names", ())))
    load_weights(network, content["state_dict"])
    shared = (folder, network.eval(), card["config"], card["data_source"], card["data_fingerprint"])
    if kind == "classifier":
        return LoadedClassifier(*shared, tokenizer, card["class_names"], card["label_names"])
    return LoadedGenerator(*shared, writer_of(tokenizer), card["separator_id"])


def load_classifier(run: str, *, checkpoint: str, log_dir: Path) -> LoadedClassifier:
    """Load a run that must be a classifier's."""
    loaded = load(run, checkpoint=checkpoint, log_dir=log_dir)
    if not isinstance(loaded, LoadedClassifier):
        raise UserError(f"{run}: {loaded.folder.path} is a generator, which src/generate.py lets write; name another")
    return loaded


def load_generator(run: str, *, checkpoint: str, log_dir: Path) -> LoadedGenerator:
    """Load a run that must be a generator's."""
    loaded = load(run, checkpoint=checkpoint, log_dir=log_dir)
    if not isinstance(loaded, LoadedGenerator):
        raise UserError(f"{run}: {loaded.folder.path} is a classifier, which src/predict.py reads; name another")
    return loaded


def load_weights(network: nn.Module, state: dict[str, Any]) -> None:
    """Give a network the weights of a checkpoint."""
    network.load_state_dict(
        {name.removeprefix(WEIGHTS): weight for name, weight in state.items() if name.startswith(WEIGHTS)}
    )


def checkpoint_of(folder: RunFolder, which: str) -> Path:
    """The file of a run's best or last checkpoint; a run without validation has only the last."""
    if which not in ("best", "last"):
        raise UserError(f"checkpoint={which} must be best or last")
    if which == "last":
        return folder.last_checkpoint
    if folder.best_checkpoint.is_file():
        return folder.best_checkpoint
    if str(folder.read().get("checkpoint")).endswith(folder.best_checkpoint.name):
        raise UserError(f"{folder.best_checkpoint} is missing; take the last one by --checkpoint last, or train again")
    return folder.last_checkpoint
