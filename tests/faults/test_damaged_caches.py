"""A damaged cache gives the correct encoding or a one-line error, but not a different encoding."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from faults.damage import Damage, answered, damaged, damages
from faults.trials import Trials
from firstlight.data.corpus_options import CharacterOptions, Preparation
from firstlight.data.encoding import encode
from firstlight.data.options import ReviewOptions
from firstlight.data.sources import find_source
from firstlight.generator.corpus import encode_text, find_text
from firstlight.text.options import TokenizerKind, TokenizerOptions
from firstlight.translator.data_options import PairOptions
from firstlight.translator.parallel import find_pairs
from firstlight.translator.sentence_pairs import encode_pairs

DAMAGES = 60  # trials for each file


def reviews(data: Path, cache: Path) -> Callable[[], Any]:
    options = ReviewOptions(path=str(data / "amazon_reviews"), cache_dir=str(cache))
    return lambda: encode(find_source(options), options)


def subwords(data: Path, cache: Path) -> Callable[[], Any]:
    tokenizer = TokenizerOptions(kind=TokenizerKind.subword, max_size=300)
    options = ReviewOptions(path=str(data / "amazon_reviews"), cache_dir=str(cache), tokenizer=tokenizer)
    return lambda: encode(find_source(options), options)


def names(data: Path, cache: Path) -> Callable[[], Any]:
    path = str(data / "names" / "names.txt")
    options = CharacterOptions(path=path, preparation=Preparation.lines, cache_dir=str(cache))
    return lambda: encode_text(find_text(options), options)


def pairs(data: Path, cache: Path) -> Callable[[], Any]:
    tokenizer = TokenizerOptions(kind=TokenizerKind.word)
    options = PairOptions(path=str(data / "multi30k"), cache_dir=str(cache), tokenizer=tokenizer)
    return lambda: encode_pairs(find_pairs(options), options)


@pytest.mark.faults("damaged bytes: encoding caches")
@pytest.mark.parametrize("encoder", [reviews, subwords, names, pairs])
def test_a_damaged_cache_changes_no_encoding(
    encoder: Callable[[Path, Path], Callable[[], Any]], trials: Trials, small_data: Path, tmp_path: Path
) -> None:
    encoded = encoder(small_data, tmp_path / "cache")
    whole = plain(encoded())
    files = sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert len(files) >= 4

    def check(file: Path, damage: Damage) -> None:
        with damaged(file, damage):
            result = answered(encoded)
            assert result is not None, "a cache can be made again"
            assert plain(result) == whole, "a different encoding without an error"
            del result

    def remove(file: Path) -> None:
        content = file.read_bytes()
        file.unlink()
        result = answered(encoded)
        file.write_bytes(content)
        assert result is not None, "a cache can be made again"
        assert plain(result) == whole

    for file in files:
        trials.examples(damages("value"), partial(check, file), DAMAGES, f"{encoder.__name__} {file.name}")
        with trials.one(f"{encoder.__name__} without {file.name}"):
            remove(file)


def plain(encoded: Any) -> dict[str, Any]:
    """Return the content of an encoding in plain types."""
    return {name: in_plain_types(value) for name, value in vars(encoded).items()}


def in_plain_types(value: Any) -> Any:
    if hasattr(value, "offsets"):
        return value.ids.tolist(), value.offsets.tolist()
    if isinstance(value, tuple):  # a tuple of tokenizers
        return [each.to_json() for each in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.to_json() if hasattr(value, "to_json") else value
