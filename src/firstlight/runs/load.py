"""Loads a trained run from its folder."""

from pathlib import Path
from typing import Any

from firstlight.data.sentence_pairs import PairTokenizers
from firstlight.errors import UserError
from firstlight.invocation import invocation
from firstlight.lit.cards import TRAIN_AGAIN, kind_of, open_checkpoint
from firstlight.lit.checkpoint import CARD
from firstlight.lit.networks import network_of_checkpoint
from firstlight.runs.folder import RunFolder, find_run
from firstlight.runs.loaded_classifier import LoadedClassifier
from firstlight.runs.loaded_generator import LoadedGenerator
from firstlight.runs.loaded_translator import LoadedTranslator
from firstlight.spelling import option
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.sentence_tokenizers import SentenceTokenizer
from firstlight.text.text_tokenizers import BytePairTokenizer, CharacterTokenizer, writer_of
from firstlight.text.tokenizers import Tokenizer

Loaded = LoadedClassifier | LoadedGenerator | LoadedTranslator
TOKENIZERS: dict[str, tuple[type, ...]] = {
    "classifier": (Tokenizer,),
    "generator": (CharacterTokenizer, BytePairTokenizer, Tokenizer),
    "encoder_decoder": (SentenceTokenizer,),
}


def load(run: str | Path, *, checkpoint: str = "best", log_dir: str | Path = "logs") -> Loaded:
    """Return a run as an object, as described at `firstlight.load`. Raises UserError."""
    if Path(run).suffix == ".ckpt":  # of a run, or of a Trainer in a notebook
        path = Path(run)
        folder = RunFolder(path.absolute().parents[1])
    else:
        folder = find_run(str(run), Path(log_dir))
        path = checkpoint_of(folder, checkpoint)
    content = open_checkpoint(path)
    card = content[CARD]
    tokenizer: Any = tokenizer_of_json(card["tokenizer"])
    reader: Any = tokenizer_of_json(card["source_tokenizer"]) if card.get("source_tokenizer") else tokenizer
    is_right = isinstance(tokenizer, TOKENIZERS[kind_of(card)]) and type(reader) is type(tokenizer)
    if not is_right:
        raise UserError(f"{path}: a {kind_of(card)} cannot read by a {type(tokenizer).__name__}; {TRAIN_AGAIN}")
    network: Any = network_of_checkpoint(content, path)
    shared = (folder, path, network.eval(), card["config"], card["data_source"], card["data_fingerprint"])
    match kind_of(card):
        case "classifier":
            return LoadedClassifier(*shared, tokenizer, card["class_names"], card["label_names"])
        case "encoder_decoder":
            return LoadedTranslator(*shared, PairTokenizers(reader, tokenizer))
        case _:
            return LoadedGenerator(*shared, writer_of(tokenizer), card["separator_id"])


def load_reader(run: str, *, checkpoint: str, log_dir: Path) -> LoadedClassifier | LoadedTranslator:
    """Load a run that answers to a text: a classifier's or a translator's."""
    loaded = load(run, checkpoint=checkpoint, log_dir=log_dir)
    if isinstance(loaded, LoadedGenerator):
        raise UserError(
            f"{run}: {loaded.folder.path} is a generator; use `{invocation('generate')}`, or name another run"
        )
    return loaded


def load_generator(run: str, *, checkpoint: str, log_dir: Path) -> LoadedGenerator:
    """Load a run that must be a generator's."""
    loaded = load(run, checkpoint=checkpoint, log_dir=log_dir)
    if not isinstance(loaded, LoadedGenerator):
        predict = invocation("predict")
        raise UserError(f"{run}: {loaded.folder.path} is a {loaded.kind}; use `{predict}`, or name another run")
    return loaded


def checkpoint_of(folder: RunFolder, which: str) -> Path:
    """The file of a run's best or last checkpoint; a run without validation has only the last."""
    if which not in ("best", "last"):
        raise UserError(f"checkpoint={which} must be best or last")
    if which == "last":
        return folder.last_checkpoint
    if folder.best_checkpoint.is_file():
        return folder.best_checkpoint
    if str(folder.read().get("checkpoint")).endswith(folder.best_checkpoint.name):
        last = option("checkpoint", "last")
        raise UserError(f"{folder.best_checkpoint} is missing; take the last one by {last}, or train again")
    return folder.last_checkpoint
