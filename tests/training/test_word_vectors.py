"""The vectors of words that a training starts from: which rows they fill, how wide, and whether they may change."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.testing import assert_close

import firstlight
from firstlight.data import PairData, ReviewData, ReviewTextData, TableData
from firstlight.data.options import Labels
from firstlight.errors import UserError
from firstlight.lit.networks import build_network
from firstlight.networks import ClassifierConfig, EncoderDecoderConfig, GeneratorConfig
from firstlight.text.options import TokenizerOptions, VectorOptions, VectorsKind
from firstlight.text.ragged import RaggedIds
from firstlight.text.tokenizers import PAD_ID, UNKNOWN_ID
from firstlight.text.vectors import cooccurrence, principal_components
from firstlight.training.initialize import fill, set_vectors
from tests_support import write_lines

DIM = 3
EVERY_WORD = TokenizerOptions(min_document_frequency=1)
TRAINING = [
    "the film was good and the cat was good",
    "the film was bad and the dog was very very bad",
    "some good dog and some bad cat sat on the mat",
    "lonely",  # has no neighbor, hence no counted vector
]
VALIDATION = ["mat mat mat cat cat dog dog film film", "good bad good bad lonely good"]


# --- small data ---


def opened(data: TableData) -> TableData:
    data.ensure_setup()
    return data


def text_data(
    kind: type[ReviewData] | type[ReviewTextData], folder: Path, training: list[str] = TRAINING, **options: Any
) -> TableData:
    """Labeled texts below a folder, opened."""
    (folder / "texts").mkdir(exist_ok=True)
    for split, texts in {"train": training, "validation": VALIDATION}.items():
        rows = [{"text": text, "label": i % 2} for i, text in enumerate(texts)]
        write_lines(folder / "texts" / f"{split}.jsonl", rows)
    places = {"path": str(folder / "texts"), "cache_dir": str(folder / "cache")}
    sizes = {"context_length": 4, "tokenizer": EVERY_WORD}
    labels = {"labels": Labels.classes} if kind is ReviewData else {}
    return opened(kind(**(places | sizes | labels | options)))


def pair_data(folder: Path, pairs: list[tuple[str, str]], **options: Any) -> PairData:
    """Sentences and their translations below a folder, opened."""
    (folder / "pairs").mkdir()
    for split in ("train", "validation"):
        write_lines(folder / "pairs" / f"{split}.jsonl", [{"en": source, "de": target} for source, target in pairs])
    places = {"path": str(folder / "pairs"), "cache_dir": str(folder / "cache")}
    data = opened(PairData(**(places | {"context_length": 13, "tokenizer": EVERY_WORD} | options)))
    assert isinstance(data, PairData)
    return data


def network_for(data: TableData, config: Any = None) -> nn.Module:
    torch.manual_seed(0)
    config = config or ClassifierConfig(dim=DIM, num_heads=1, context_length=4)
    return build_network(config, **data.network_sizes())


def rows_of(embedding: nn.Embedding) -> Tensor:
    return embedding.weight.detach().clone()


@pytest.fixture
def data(tmp_path: Path) -> TableData:
    return text_data(ReviewData, tmp_path)


def counted(texts: list[str], words: list[str], window: int) -> NDArray[np.float32]:
    """The components of what stands beside each word, without [PAD] and [UNK]."""
    id_of = {word: i for i, word in enumerate(words)}
    ids = RaggedIds.from_rows([[id_of.get(word, UNKNOWN_ID) for word in text.split()] for text in texts])
    return principal_components(cooccurrence(ids, len(words), window, (PAD_ID, UNKNOWN_ID)), DIM)


def assert_counted(embedding: nn.Embedding, before: Tensor, texts: list[str], words: list[str]) -> None:
    """Fail unless the words with neighbors in the texts have their components, and the others the vectors of before."""
    expected = torch.from_numpy(counted(texts, words, 1))
    known = expected.any(dim=1)
    assert known.sum() > DIM
    assert_close(rows_of(embedding), torch.where(known[:, None], expected, before))


def from_file(path: Path, lines: dict[str, list[float]], **options: Any) -> VectorOptions:
    """Options that read a file of these vectors."""
    path.write_text("".join(f"{word} {' '.join(map(str, numbers))}\n" for word, numbers in lines.items()))
    return VectorOptions(**({"kind": VectorsKind.file, "path": str(path)} | options))


# --- counted ---


@pytest.mark.parametrize("std", [None, 0.1])
@pytest.mark.parametrize("window", [1, 2])
def test_counted_vectors_are_the_components_of_the_training_texts_as_wide_as_asked(window, std, data) -> None:
    """Of whole texts, though the context is shorter, and not of the validation texts."""
    network = network_for(data)
    before = rows_of(network.embedding)
    set_vectors(VectorOptions(VectorsKind.cooccurrence, window=window, std=std), network, data)
    found, words = rows_of(network.embedding), data.tokenizer.words
    expected = counted(TRAINING, words, window)
    without = [PAD_ID, UNKNOWN_ID, words.index("lonely")]
    known = [i for i in range(len(words)) if i not in without]
    scale = 1 if std is None else std / expected[known].std()
    assert_close(found[known], torch.from_numpy(expected[known] * np.float32(scale)))
    assert torch.equal(found[without], before[without])
    if std is not None:
        assert found[known].std(correction=0).item() == pytest.approx(std, rel=1e-5)


def test_only_the_training_rows_that_are_used_are_counted(tmp_path: Path) -> None:
    data = text_data(ReviewData, tmp_path, max_train_rows=3, split_seed=1)
    assert isinstance(data, ReviewData)
    texts = [TRAINING[row] for row in data.rows("train")]
    assert len(texts) == 3
    network = network_for(data)
    before = rows_of(network.embedding)
    set_vectors(VectorOptions(VectorsKind.cooccurrence), network, data)
    assert_counted(network.embedding, before, texts, data.tokenizer.words)


# --- from a file ---


def test_a_file_fills_the_rows_of_its_words_and_no_other(tmp_path: Path, data: TableData, caplog) -> None:
    """[PAD] and [UNK] are no words, whatever the file says."""
    network = network_for(data)
    before = rows_of(network.embedding)
    vectors = {"good": [1, 2, 3], "bad": [-1, 0.5, 4], "elsewhere": [7, 7, 7], "[PAD]": [8, 8, 8], "[UNK]": [9, 9, 9]}
    with caplog.at_level(logging.INFO):
        set_vectors(from_file(tmp_path / "v.txt", vectors), network, data)
    expected = before.clone()
    for word in ("good", "bad"):
        expected[data.tokenizer.words.index(word)] = torch.tensor(vectors[word])
    assert torch.equal(rows_of(network.embedding), expected)
    assert "vectors=file, embedding: 2 of 14 words have a vector (18.8% of the training tokens)" in caplog.text  # 6/32


def test_glove_is_found_by_its_width(tmp_path: Path, data: TableData, monkeypatch) -> None:
    """Below $FIRSTLIGHT_DATA; 3 numbers are neither 30 nor 13."""
    folder = tmp_path / "mine" / "glove"
    folder.mkdir(parents=True)
    monkeypatch.setenv("FIRSTLIGHT_DATA", str(folder.parent))
    for width in (13, 30, 3):
        from_file(folder / f"glove.6B.{width}d.txt", {"good": [width] * width, "bad": [0.5] * width})
    network = network_for(data)
    set_vectors(VectorOptions(VectorsKind.glove), network, data)
    good = data.tokenizer.words.index("good")
    assert rows_of(network.embedding)[good].tolist() == [3, 3, 3]
    set_vectors(from_file(tmp_path / "v.txt", {"good": [4, 5, 6]}, kind=VectorsKind.glove), network, data)
    assert rows_of(network.embedding)[good].tolist() == [4, 5, 6]  # vectors.path goes before the folder


def test_a_task_of_no_words_has_no_vectors_of_words() -> None:
    with pytest.raises(UserError, match=r"^vectors=cooccurrence: this task has no words; leave the option out$"):
        set_vectors(VectorOptions(VectorsKind.cooccurrence), nn.Identity(), TableData())


# --- other tasks ---


def test_a_generator_of_words_starts_from_vectors_too(tmp_path: Path) -> None:
    data = text_data(ReviewTextData, tmp_path)
    network = network_for(data, GeneratorConfig(dim=DIM, num_heads=1, context_length=4, tie_embeddings=True))
    before = rows_of(network.embedding)
    set_vectors(VectorOptions(VectorsKind.cooccurrence), network, data)
    assert_counted(network.embedding, before, TRAINING, data.tokenizer.words)
    assert network.head.weight is network.embedding.weight


PAIRS = [
    ("the cat sat", "die Katze lag"),
    ("Paris sat on the cat", "Paris lag auf der Katze"),
    ("on the mat sat PARIS", "auf der Matte lag berlin"),
    ("the old Mat", "die Matte"),
    ("Berlin", "Berlin"),
]


def translator(data: PairData, *, shared: bool = False) -> nn.Module:
    config = EncoderDecoderConfig(dim=DIM, num_heads=1, context_length=13, share_embeddings=shared)
    return network_for(data, config)


def test_a_word_takes_the_vector_of_its_own_spelling_else_that_of_its_lower_case(tmp_path: Path) -> None:
    data = pair_data(tmp_path, PAIRS, shared_vocabulary=False)
    vectors = {"berlin": [1, 1, 2], "paris": [3, 3, 4], "Paris": [5, 5, 6], "MAT": [7, 7, 8], "Die": [9, 9, 1]}
    network = translator(data)
    before = rows_of(network.source_embedding), rows_of(network.embedding)
    set_vectors(from_file(tmp_path / "v.txt", vectors), network, data)
    expected = [
        {"Berlin": [1, 1, 2], "Paris": [5, 5, 6], "PARIS": [3, 3, 4]},  # mat and Mat are not MAT
        {"Berlin": [1, 1, 2], "berlin": [1, 1, 2], "Paris": [5, 5, 6]},  # die is not Die
    ]
    sides = [(data.source_tokenizer, network.source_embedding), (data.tokenizer, network.embedding)]
    for (tokenizer, embedding), old, filled in zip(sides, before, expected, strict=True):
        words = tokenizer.plain_words()
        assert filled.keys() <= set(words)
        for row, (word, drawn) in enumerate(zip(words, old, strict=True)):
            assert embedding.weight[row].tolist() == filled.get(word, drawn.tolist()), word


def test_each_side_of_a_translator_has_the_vectors_of_its_own_language(tmp_path: Path, caplog) -> None:
    data = pair_data(tmp_path, PAIRS, shared_vocabulary=False)
    assert data.source_tokenizer.vocab_size != data.tokenizer.vocab_size
    network = translator(data)
    sides = [(data.source_tokenizer, network.source_embedding), (data.tokenizer, network.embedding)]
    before = [rows_of(embedding) for _, embedding in sides]
    with caplog.at_level(logging.INFO):
        set_vectors(VectorOptions(VectorsKind.cooccurrence), network, data)
    for column, (tokenizer, embedding) in enumerate(sides):
        assert_counted(embedding, before[column], [pair[column] for pair in PAIRS], tokenizer.plain_words())
        assert torch.equal(embedding.weight[:4], before[column][:4])  # the marks
    assert [message.partition(": ")[0] for message in caplog.messages if message.startswith("vectors=")] == [
        *("vectors=cooccurrence, embedding", "vectors=cooccurrence, source_embedding")
    ]


@pytest.mark.parametrize("shared", [True, False])
def test_a_shared_vocabulary_is_counted_in_both_languages_for_one_embedding_or_two(shared, tmp_path, caplog) -> None:
    data = pair_data(tmp_path, PAIRS, shared_vocabulary=True)
    network = translator(data, shared=shared)
    embeddings = (network.embedding, network.source_embedding)
    before = [rows_of(embedding) for embedding in embeddings]
    with caplog.at_level(logging.INFO):
        set_vectors(VectorOptions(VectorsKind.cooccurrence, trained=False), network, data)
    texts = [text for side in zip(*PAIRS, strict=True) for text in side]
    for embedding, old in zip(embeddings, before, strict=True):
        assert_counted(embedding, old, texts, data.tokenizer.plain_words())
        assert not embedding.weight.requires_grad
    assert (network.embedding is network.source_embedding) is shared
    assert caplog.text.count("words have a vector") == (1 if shared else 2)


# --- a whole run ---


@pytest.fixture
def training(tiny_training: list[str]) -> list[str]:
    return ["task=stars", *tiny_training, "model=bag_of_words", "model.dim=6", "logger=none"]


def weight_of(run: Path) -> Tensor:
    checkpoint = torch.load(run / "checkpoints" / "last.ckpt", weights_only=True)
    return checkpoint["state_dict"]["network.embedding.weight"]


def test_a_run_with_vectors_that_stay_is_counted_read_and_resumed_without_them(scripts, training) -> None:
    """The record counts trained parameters, predicting needs no file, and a resumed run keeps its weights."""
    vectors = scripts.folder / "v.txt"
    from_file(vectors, {"good": [1, 2, 3, 4, 5, 6], "not": [6, 5, 4, 3, 2, 1]})
    chosen = [*training, "vectors=file", f"vectors.path={vectors}", "vectors.trained=false", "vectors.std=null"]
    run = scripts.train(*chosen, "trainer.max_steps=4", "test=false")
    record = json.loads((run / "metrics.json").read_text())
    words = (run / "vocabulary.txt").read_text().splitlines()
    assert record["parameters"] == 6 * 5 + 5  # the head
    log = (run / "train.log").read_text()
    assert f"vectors=file, embedding: 2 of {len(words) - 2:,} words have a vector (" in log
    good, no = (words.index(word) for word in ("good", "not"))
    first = weight_of(run)
    assert first[[good, no]].tolist() == [[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]]

    from_file(vectors, {"good": [9, 9, 9, 9, 9, 8]})
    done = scripts.succeed("train", f"resume={run}", "trainer.max_steps=7")
    assert "resumed at step" in done.stdout
    assert json.loads((run / "metrics.json").read_text())["steps"] == 7
    assert torch.equal(weight_of(run), first)

    vectors.unlink()
    prediction = firstlight.load(run).predict("not good")
    assert sum(prediction.probabilities.values()) == pytest.approx(1, abs=1e-5)


# --- mistakes ---


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An override that lets all runs here encode the reviews once."""
    return f"paths.cache_dir={tmp_path_factory.mktemp('cache')}"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("good 1 2\nbad 3 4\n", "v.txt has vectors of 2 numbers, but model.dim=6; set model.dim=2"),
        ("xyzzy 1 2 3 4 5 6\n", "vectors=file: none of the "),
        (None, "vectors=glove: no file such as glove.6B.6d.txt in the folder glove of $FIRSTLIGHT_DATA or data/"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line(lines, message, scripts, training, cached) -> None:
    chosen = ["vectors=glove"]
    if lines is not None:
        (scripts.folder / "v.txt").write_text(lines)
        chosen = ["vectors=file", "vectors.path=v.txt"]
    assert scripts.refuse("train", *training, cached, *chosen).startswith(f"error: {message}")
    assert not list((scripts.folder / "logs").glob("*/runs/*"))


def test_words_without_a_vector_of_their_own_are_counted_as_unknown(data: TableData, caplog: Any) -> None:
    (side,) = data.training_words().values()
    few = len(side.words) - 3
    embedding = nn.Embedding(few, 5)
    with caplog.at_level("INFO"):
        fill(embedding, side, VectorOptions(kind=VectorsKind.cooccurrence), "embedding")
    assert "vectors=cooccurrence, embedding: " in caplog.text
    assert torch.isfinite(embedding.weight).all()
