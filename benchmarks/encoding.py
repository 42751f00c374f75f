"""Measure how fast texts are encoded: python benchmarks/encoding.py (--help lists all options).

The reviews of task=sentiment are encoded as words, subwords and characters by firstlight, by a loop in plain Python,
and by Hugging Face's `tokenizers` in one thread, in turns. Then the start of the data module is measured, without and
with its cache.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import tyro
from measure import by_turns, ratio, show, versions

os.environ["RAYON_NUM_THREADS"] = "1"  # threads of `tokenizers`

import hydra
from hydra.utils import instantiate
from tokenizers import Tokenizer as Backend

from firstlight.commands.train import CONFIG_DIR, CONFIG_NAME
from firstlight.config.schema import register_schemas
from firstlight.data.table_data import TableData
from firstlight.text.text_tokenizers import CharacterTokenizer
from firstlight.text.tokenizers import UNKNOWN_ID, Tokenizer, train_subword_tokenizer, train_word_tokenizer

VOCABULARY = 7000


@dataclass
class Options:
    """Options of the measurement."""

    texts: int = 20_000
    """Number of reviews."""
    repeats: int = 5
    """Number of turns. The results are medians of the turns."""
    source: str = "auto"
    """The value of data.source, from which the reviews come."""


def main() -> None:
    """Measure, and print the results."""
    options = tyro.cli(Options)
    with tempfile.TemporaryDirectory() as folder:
        data = started(Path(folder), options.source)
        found = (values["text"] for _, values in data.source.rows("train", ["text"]))
        texts = [text for text, _ in zip(found, range(options.texts), strict=False)]
        starts = start_times(Path(folder), options)
    characters = sum(map(len, texts))
    print(f"{len(texts):,} reviews of {data.source.where}, {characters:,} characters; {versions(1)}")
    rows = []
    for name, ours, others in encodings(texts):
        times = by_turns({name: ours, **others}, options.repeats)
        rate = characters / sorted(times[name])[options.repeats // 2] / 1e6
        rows += [(name, f"{rate:.1f}", other, ratio(times[other], times[name])) for other in others]
    show("texts to ids", ["encoding", "million characters/s", "against", "its seconds / ours"], rows)
    times = {name: [start[name] for start in starts] for name in starts[0]}
    show(
        "the data module's start",
        ["start", "seconds"],
        [(name, ratio(each, [1.0] * len(each))) for name, each in times.items()]
        + [("ratio", ratio(times["cold"], times["cached"]))],
    )


def encodings(texts: list[str]) -> Iterable[tuple[str, Callable[[], object], dict[str, Callable[[], object]]]]:
    """Return the name of each encoding, firstlight's function, and the functions that it is compared with."""
    words = train_word_tokenizer(texts, max_size=VOCABULARY)
    subwords = train_subword_tokenizer(texts, vocab_size=VOCABULARY)
    letters = CharacterTokenizer.train(texts, None)
    yield (
        "words",
        lambda: words.encode_batch(texts),
        {"Python: re.findall and a dict": plain_words(words, texts), "tokenizers": alone(words, texts)},
    )
    yield "subwords", lambda: subwords.encode_batch(texts), {"tokenizers": alone(subwords, texts)}
    ids = {letter: number for number, letter in enumerate(letters.words)}
    yield (
        "characters",
        lambda: letters.encode_batch(texts),
        {"Python: a dict": lambda: [[ids[letter] for letter in text] for text in texts]},
    )


def plain_words(tokenizer: Tokenizer, texts: list[str]) -> Callable[[], object]:
    """Return a function that encodes lower-case words with a regular expression and a dict, without normalization."""
    ids = {word: number for number, word in enumerate(tokenizer.words)}
    return lambda: [[ids.get(word, UNKNOWN_ID) for word in re.findall(r"\w\w+\b", text.lower())] for text in texts]


def alone(tokenizer: Tokenizer, texts: list[str]) -> Callable[[], object]:
    """Return a function that encodes texts with Hugging Face's tokenizer of the same JSON."""
    backend = Backend.from_str(tokenizer.to_json())
    return lambda: [each.ids for each in backend.encode_batch(texts)]


def start_times(folder: Path, options: Options) -> list[dict[str, float]]:
    """Return the seconds of the data module's start, with an empty cache and with a filled cache."""
    times = []
    for number in range(options.repeats):
        place = folder / str(number)
        turn = by_turns({name: lambda: started(place, options.source) for name in ("cold", "cached")}, 1)  # noqa: B023
        times.append({name: each[0] for name, each in turn.items()})
    return times


def started(folder: Path, source: str) -> TableData:
    """Return the data module of task=sentiment, with its cache below a folder."""
    register_schemas()
    overrides = ["task=sentiment", f"data.source={source}", f"data.cache_dir={folder}"]
    with hydra.initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        config = hydra.compose(CONFIG_NAME, overrides=overrides)
    data: TableData = instantiate(config.data, _convert_="object")
    data.prepare_data()
    data.setup("fit")
    return data


if __name__ == "__main__":
    main()
