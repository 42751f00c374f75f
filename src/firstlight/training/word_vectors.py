"""Initial vectors of the words."""

import logging
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from firstlight.data.sources import DATA_VARIABLE, local_folder
from firstlight.data.table_data import TableData, TrainingWords
from firstlight.errors import UserError
from firstlight.text.options import VectorOptions, VectorsKind
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import UNKNOWN_ID
from firstlight.text.vectors import cooccurrence, coverage, explained_variance, principal_components, read_vectors

log = logging.getLogger(__name__)

GLOVE = "glove"  # the folder below $FIRSTLIGHT_DATA or data/


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
