"""Functions that encode small data of each kind, with the cache that they write and read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from firstlight.data.encoding import encode
from firstlight.data.options import Labels, ReviewOptions
from firstlight.data.sources import find_source
from firstlight.generator.corpus import encode_text, find_text
from firstlight.generator.options import CharacterOptions, Preparation
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.translator.corpus import encode_pairs, find_pairs
from firstlight.translator.options import PairOptions

PREPARATIONS = {"names": Preparation.lines, "text": Preparation.text, "plays": Preparation.plays}


def encoder(kind: str, path: Path, cache: Path) -> Callable[[], Any]:
    """Return a function that encodes data. kind: reviews, subwords (of reviews), pairs, names, text or plays."""
    where = {"path": str(path), "cache_dir": str(cache)}
    if kind in PREPARATIONS:
        text = CharacterOptions(**where, preparation=PREPARATIONS[kind])
        return lambda: encode_text(find_text(text), text)
    if kind == "pairs":
        pairs = PairOptions(**where, tokenizer=TokenizerOptions(kind=TokenizerKind.word))
        return lambda: encode_pairs(find_pairs(pairs), pairs)
    reviews = ReviewOptions(**where, labels=Labels.stars)
    if kind == "subwords":
        reviews.tokenizer = TokenizerOptions(kind=TokenizerKind.subword, max_size=300)
    return lambda: encode(find_source(reviews), reviews)
