"""Initial weights: those of another run, and vectors of words."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning.pytorch import LightningModule
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

from firstlight.data.row_options import LongTexts
from firstlight.data.sources import DATA_VARIABLE, local_folder
from firstlight.data.table_data import TableData, TrainingWords
from firstlight.errors import UserError
from firstlight.kind.registry import kind_of_config
from firstlight.lit.checkpoint import METADATA, read_json
from firstlight.lit.metadata import open_weights, refuse_non_finite
from firstlight.lit.networks import plain
from firstlight.networks.parametrization import width_multiplier
from firstlight.networks.positions import stretch
from firstlight.networks.variants import Parametrization
from firstlight.runs.folder import EXPORTED_CONFIG, EXPORTED_WEIGHTS
from firstlight.runs.named import find_run, is_export
from firstlight.text.options import VectorOptions, VectorsKind
from firstlight.text.ragged import RaggedIds
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.tokenizers import UNKNOWN_ID
from firstlight.text.vectors import cooccurrence, coverage, explained_variance, principal_components, read_vectors

log = logging.getLogger(__name__)

EMBEDDING = "network.embedding.weight"
SOURCE_EMBEDDING = "network.source_embedding.weight"  # of a translator; EMBEDDING has the vectors of its target
ONLY_IN_LOG = {"on_terminal": ""}
HEAD = "network.head."
OF_CLASSES = (HEAD, "network.feature_", "network.weights.", "network.bias")  # weights that depend on the classes
BY_WORD = {EMBEDDING, f"{HEAD}weight", f"{HEAD}bias"}  # one row for each word of the vocabulary
GLOVE = "glove"  # the folder below $FIRSTLIGHT_DATA or data/
POSITIONS = ("network.positions.table.weight", "relative.table.weight")  # one row for each position, or distance


def give_tokenizer(config: DictConfig, data: Any, resumed: dict[str, Any] | None) -> None:
    """Let the data use the tokenizer of a folder of transformers that init_from names.

    resumed: the metadata of the checkpoint from which the run resumes, which has this tokenizer; None for a new run.
    """
    if resumed is not None:
        if resumed.get("has_given_tokenizer"):
            data.given_tokenizer = tokenizer_of_json(resumed["tokenizer"])
        return
    if not config.init_from or not is_published(config.init_from):
        return
    from firstlight.export.published import published_tokenizer  # takes 10 ms, which few trainings require

    kind, options = kind_of_config(config).name, data.options
    data.given_tokenizer = published_tokenizer(Path(config.init_from), kind).tokenizer
    is_cut = getattr(options, "long_texts", LongTexts.cut) is LongTexts.cut
    if not (hasattr(options, "preparation") if kind == "generator" else len(options.text_columns) == 1 and is_cut):
        task = "task=text" if kind == "generator" else "a task of single texts, with data.long_texts=cut"
        raise UserError(f"init_from={config.init_from}: its tokenizer cannot read the data of this task; choose {task}")
    log.info("init_from=%s: its tokenizer is used, so tokenizer= has no effect", config.init_from)


def is_published(name: str) -> bool:
    """Return whether a name is that of a folder of transformers, not of a run or of `export --to safetensors`."""
    content = read_json(Path(name, EXPORTED_CONFIG), "save the model again") if is_export(name) else None
    return isinstance(content, dict) and METADATA not in content


def initialize_from(run: str, log_dir: Path, module: LightningModule, data: Any, config: Any = None) -> None:
    """Copy each weight that has the same name and shape in the other run, and the vectors of the shared words.

    run: the name of a run, or a folder with weights of `export --to safetensors` or of transformers. config: the node
    `model` of the configuration, which must have the options of a folder of transformers.

    Learned positions are interpolated for a longer context. The output layer of a classifier is copied only if the
    classes have the same names and order. The log names the weights that were not copied.

    Raises UserError if no weight was copied, or if the other network has another maximal update parametrization, with
    which the same weights would give other logits.
    """
    if is_export(run):
        path = Path(run, EXPORTED_WEIGHTS)
    else:
        folder = find_run(run, log_dir)
        path = folder.best_checkpoint if folder.best_checkpoint.is_file() else folder.last_checkpoint
    if is_foreign := is_published(run):
        from firstlight.export.published import read_published, refuse_other_options

        kind: Any = getattr(module, "kind", None)
        checkpoint = read_published(path.parent, kind)
        refuse_other_options(path.parent, checkpoint[METADATA], OmegaConf.to_object(config))
    else:
        checkpoint = open_weights(path)
    metadata = checkpoint[METADATA]
    _refuse_other_parametrization(run, metadata, module.network)  # type: ignore[arg-type]  # a Module
    other = tokenizer_of_json(metadata["tokenizer"])
    given: dict[str, Tensor] = checkpoint["state_dict"]
    has_other_head = has_other_classes = _has_other_classes(metadata, data.metadata())
    if has_other_classes:
        log.warning("init_from=%s: the run has other classes, so its output layer is not copied", run)
    elif is_foreign and "class_names" in metadata and (pooling := plain(config.pooling)) != "bert":
        has_other_head = True
        log.warning("init_from=%s: model.pooling=%s, so its output layer is not copied; bert copies it", run, pooling)
    own = module.state_dict()
    refuse_non_finite(given, module, path)
    both = _shared_words(_with_vectors(data.tokenizer.words, own), _with_vectors(other.words, given))
    shared_words = dict.fromkeys(BY_WORD, both)
    if SOURCE_EMBEDDING in given and hasattr(data, "source_tokenizer"):
        other_source = tokenizer_of_json(metadata["source_tokenizer"]) if metadata.get("source_tokenizer") else other
        shared_words[SOURCE_EMBEDDING] = _shared_words(data.source_tokenizer.words, other_source.words)
    taken: dict[str, Tensor] = {}
    for name, weight in own.items():
        source, shared = given.get(name), shared_words.get(name)
        is_by_word = name in shared_words and not _is_head_of_classes(name, own, given)
        if source is None or (has_other_head and name.startswith(OF_CLASSES)):
            continue
        if shared and is_by_word and given[EMBEDDING].shape[1] == own[EMBEDDING].shape[1]:
            taken[name] = _rows_of(weight, source, shared)
        elif source.shape == weight.shape and not is_by_word:
            taken[name] = source
        elif name.endswith(POSITIONS) and source.shape[1] == weight.shape[1]:
            taken[name] = _fitted(source, len(weight), is_relative=name.endswith(POSITIONS[1]))
            verb = "stretched" if len(weight) > len(source) else "cut"
            log.info("init_from: %s %s from %d to %d rows", name, verb, len(source), len(weight), extra=ONLY_IN_LOG)
    if {SOURCE_EMBEDDING, EMBEDDING} <= taken.keys() and own[SOURCE_EMBEDDING].data_ptr() == own[EMBEDDING].data_ptr():
        joined = _rows_of(taken[SOURCE_EMBEDDING], given[EMBEDDING], shared_words[EMBEDDING])
        for name, weight in own.items():
            if name in taken and weight.data_ptr() == own[EMBEDDING].data_ptr():
                taken[name] = joined
    if not taken:
        problem = f"init_from={run}: no weight in {path} has the name and shape of a weight of this network"
        raise UserError(f"{problem}; choose the same model")
    module.load_state_dict({**own, **taken})
    left = [name for name in own if name not in taken]
    copied = f"init_from {path}: {len(taken)} weights copied"
    log.info("%s; not copied: %s", copied, ", ".join(left) or "none", extra={"on_terminal": copied})


def _has_other_classes(metadata: dict[str, Any], own: dict[str, Any]) -> bool:
    """Return whether two classifiers have different classes. In multiple choice, all answers share one output."""
    classes, of_own = (
        None if each.get("choices") else [str(name).casefold() for name in each.get("class_names", ())]
        for each in (metadata, own)
    )
    return "class_names" in metadata and "class_names" in own and classes != of_own


def _is_head_of_classes(name: str, own: dict[str, Tensor], given: dict[str, Tensor]) -> bool:
    """Return whether a weight is that of an output layer with a row for each class, in one of two networks."""
    heads = [weights for weights in (own, given) if name.startswith(HEAD) and name in weights]
    return any(len(weights[name]) != len(weights[EMBEDDING]) for weights in heads)


def _refuse_other_parametrization(run: str, metadata: dict[str, Any], network: nn.Module) -> None:
    ratio, own = _width_multiplier_of(metadata.get("config")), width_multiplier(network)
    if ratio != own:
        raise UserError(
            f"init_from={run}: its network has {ratio:g} times its base width, but the new network {own:g} times, so "
            "the same weights would give other logits; set model.dim, model.parametrization and model.base_dim as there"
        )


def _width_multiplier_of(config: Any) -> float:
    """Return the width of a network in units of its base width, from the config in metadata, which may be damaged."""
    match config:
        case {"model": {"parametrization": Parametrization.mup.value, "dim": int(dim), "base_dim": int(base)}} if base:
            return dim / base
    return 1.0


def _fitted(table: Tensor, length: int, *, is_relative: bool) -> Tensor:
    """Return a table of another length: interpolated if longer, else its first rows, or the middle ones if relative."""
    if length >= len(table):
        return stretch(table, length)
    first = (len(table) - length) // 2 if is_relative else 0
    return table[first : first + length]


def _with_vectors(words: list[str], weights: dict[str, Tensor]) -> list[str]:
    """Return the words that have a vector. A classifier may have vectors of the most frequent words only."""
    return words[: len(weights[EMBEDDING])] if EMBEDDING in weights else words


def _shared_words(words: list[str], other_words: list[str]) -> list[tuple[int, int]]:
    """Return the pairs of rows, in this run and in the other, of the words that both have."""
    row_of = {word: row for row, word in enumerate(other_words)}
    shared = [(row, row_of[word]) for row, word in enumerate(words) if word in row_of]
    log.info("init_from: the other run has %d of %d words", len(shared), len(words), extra=ONLY_IN_LOG)
    return shared


def _rows_of(weight: Tensor, source: Tensor, shared: list[tuple[int, int]]) -> Tensor:
    """Return the weight, (words, …), with the rows of the shared words from source."""
    mine, theirs = torch.tensor(shared).T
    result = weight.clone()
    result[mine] = source[theirs].to(weight)
    return result


# --- vectors of words, from their counts or from a file ---


def set_vectors(options: VectorOptions, network: nn.Module, data: TableData, *, is_resumed: bool = False) -> None:
    """Copy the vectors that the options name into the network's embeddings. Other words keep their random vectors.

    A resumed run has its vectors in its checkpoint. For such a run, only options.trained is applied.

    Raises UserError for a file that cannot be used, and for a task without words.
    """
    if options.kind is VectorsKind.random:
        return
    sides = data.training_words()
    if not sides:
        raise UserError(f"vectors={options.kind.value}: this task has no words; leave the option out")
    done: set[int] = set()
    for name, side in sides.items():
        embedding: nn.Embedding = getattr(network, name)
        embedding.weight.requires_grad_(options.trained)
        if id(embedding) not in done and not is_resumed:  # a translator may share one between its sides
            fill(embedding, side, options, name)
            done.add(id(embedding))


def fill(embedding: nn.Embedding, side: TrainingWords, options: VectorOptions, name: str) -> None:
    """Copy scaled vectors into an embedding, and log how many of its words have one."""
    if len(side.words) > embedding.num_embeddings:  # a classifier may have vectors of fewer words
        ids = np.where(side.ids.ids < embedding.num_embeddings, side.ids.ids, UNKNOWN_ID).astype(side.ids.ids.dtype)
        side = side._replace(words=side.words[: embedding.num_embeddings], ids=RaggedIds(ids, side.ids.offsets))
    found = vectors_of(side, options, embedding.embedding_dim)  # (words, dim), zeros where there is none
    known: NDArray[np.bool_] = np.asarray(found.any(axis=1))
    if not known.any():
        remedy = "longer texts" if options.kind is VectorsKind.cooccurrence else "another file"
        raise UserError(f"vectors={options.kind.value}: none of the {len(known)} words has a vector; use {remedy}")
    scale = 1.0 if options.std is None else options.std / float(found[known].std())
    with torch.no_grad():
        embedding.weight[torch.from_numpy(known)] = torch.from_numpy(found[known] * scale).to(embedding.weight)
    covered = {word: found[i] for i, word in enumerate(side.words) if known[i]}
    log.info("vectors=%s, %s: %s", options.kind.value, name, coverage(covered, side.words, side.ids, side.no_words))


def vectors_of(side: TrainingWords, options: VectorOptions, dim: int) -> NDArray[np.float32]:
    """A vector for each word: (words, dim), zeros where there is none."""
    if options.kind is VectorsKind.cooccurrence:
        counts = cooccurrence(side.ids, len(side.words), options.window, side.no_words)
        vectors = principal_components(counts, dim, method=options.method)
        log.info("%s components explain %.1f%% of the variance", dim, 100 * explained_variance(counts, vectors))
        return vectors
    path = Path(options.path) if options.path is not None else glove_file(dim)
    log.info("Reading vectors from %s", path)
    spellings = set(side.words) | {word.lower() for word in side.words}
    entries = read_vectors(path, spellings, dim)
    nothing = np.zeros(dim, np.float32)
    rows = [entries.get(word, entries.get(word.lower(), nothing)) for word in side.words]
    for token_id in side.no_words:
        rows[token_id] = nothing
    return np.stack(rows)


def glove_file(dim: int) -> Path:
    """Return the file of GloVe vectors of this width. Raises UserError if it does not exist."""
    folder = local_folder(GLOVE)
    there = [] if folder is None else sorted(folder.glob("*.txt"))
    found = [file for file in there if f".{dim}d" in file.name]
    if not found:
        others = ", ".join(file.name for file in there) or "none"
        raise UserError(
            f"vectors=glove: no file such as glove.6B.{dim}d.txt in the folder glove of ${DATA_VARIABLE} or data/ "
            f"(found: {others}); download one from nlp.stanford.edu/projects/glove, set vectors.path, or set "
            "model.dim to another width"
        )
    return found[0]
