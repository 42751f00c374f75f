"""Pairs of sentences as arrays of ids, which are encoded once and stored on disk."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstlight.data import store
from firstlight.data.encoding import carve_out, drawn, rows_of_columns
from firstlight.data.sources import Source
from firstlight.data.store import SPLITS, Encoded, number_of, overlaps
from firstlight.errors import UserError
from firstlight.text.ragged import RaggedIds
from firstlight.text.saved_tokenizers import tokenizer_of_json
from firstlight.text.sentence_tokenizers import SentenceTokenizer, tidy
from firstlight.translator.options import PairOptions

VERSION = 3  # increase it when the encoding changes, so that the cache is not reused
SIDES = ("source", "target")


class PairTokenizers(NamedTuple):
    """The tokenizers of the source and of the target, which are the same object if the vocabulary is shared."""

    source: SentenceTokenizer
    target: SentenceTokenizer


@dataclass(frozen=True, eq=False)
class EncodedPairs(Encoded):
    """All pairs of a source, split after split, in the order in which they were read.

    source, target: the ids of both sides without marks; places: (pairs, 2) int, the split of the file of each pair, and
    its line.
    """

    source: RaggedIds
    target: RaggedIds
    places: NDArray[np.int64]
    tokenizers: PairTokenizers


def encode_pairs(source: Source, options: PairOptions, tokenizers: PairTokenizers | None = None) -> EncodedPairs:
    """Return the encoded pairs of a source, which is read and checked, or opened from the cache.

    tokenizers: those of a trained network that reads this data; None learns them from the training pairs. Raises
    UserError with file and line.
    """
    columns = [VERSION, options.source_column, options.target_column, options.shared_vocabulary]

    facts, arrays, _ = store.stored(
        options, source, tokenizers or (), lambda _: _encode(source, options, tokenizers), pairs=columns
    )
    ids = {side: RaggedIds(arrays[f"{side}_ids"], arrays[f"{side}_offsets"]) for side in SIDES}
    found = tokenizers_of(*facts["tokenizers"])
    return EncodedPairs(arrays["splits"], facts["overlaps"], **ids, places=arrays["places"], tokenizers=found)


def _encode(
    source: Source, options: PairOptions, tokenizers: PairTokenizers | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the facts and the arrays of the encoded pairs."""
    if tokenizers is None and "train" not in source.splits:
        raise UserError(f"{source.where} has no train split; add a file such as train.jsonl")
    columns = (options.source_column, options.target_column)
    texts: tuple[list[str], list[str]] = ([], [])
    places: list[tuple[int, int]] = []
    for split in source.splits:
        for line, values in rows_of_columns(source, split, options, ["source_column", "target_column"], columns):
            for column, side in zip(columns, texts, strict=True):
                side.append(_checked(values[column], column, source, split, line))
            places.append((SPLITS.index(split), line))
    splits = np.array([split for split, _ in places])
    carve_out(splits, np.zeros_like(splits), options)
    sentence = overlaps(map(number_of, zip(*texts, strict=True)), splits, remove=options.deduplicate)
    if tokenizers is None:
        rows = drawn(np.flatnonzero(splits == 0), options.max_train_rows, options.split_seed)
        training = [[side[row] for row in rows] for side in texts]
        if options.shared_vocabulary:
            shared = SentenceTokenizer.train(training[0] + training[1], options.tokenizer)
            tokenizers = PairTokenizers(shared, shared)
        else:
            tokenizers = PairTokenizers(*(SentenceTokenizer.train(side, options.tokenizer) for side in training))
    arrays = {"splits": splits, "places": np.array(places)}
    for name, tokenizer, sentences in zip(SIDES, tokenizers, texts, strict=True):
        ids = tokenizer.encode_batch(sentences)
        arrays |= {f"{name}_ids": ids.ids, f"{name}_offsets": ids.offsets}
    return {"overlaps": sentence, "tokenizers": [tokenizer.to_json() for tokenizer in tokenizers]}, arrays


def _checked(text: str, column: str, source: Source, split: str, line: int) -> str:
    """Return the text of one side without extra spaces. Raises UserError if it is empty."""
    if not (text := tidy(text)):
        raise UserError(f"{source.place(split, line)}: column {column} is empty; fill it in, or remove the pair")
    return text


def tokenizers_of(source: str, target: str) -> PairTokenizers:
    """Return the tokenizers from their JSON. The same JSON gives one object for both."""
    readers: dict[str, Any] = {text: tokenizer_of_json(text) for text in (source, target)}
    return PairTokenizers(readers[source], readers[target])
