"""Tests of translators: training, all commands, and loaded runs in Python."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstlight
from docstring_examples import run_examples, without_an_example
from firstlight.files.rows import write_rows
from firstlight.runs.folder import SAMPLE_NOTE
from firstlight.translator.run import TranslatorRun
from tests_support import Scripts, read_csv

Sentences = list[tuple[str, str]]

NOUNS = {"dog": "Hund", "cat": "Katze", "horse": "Pferd", "house": "Haus", "tree": "Baum", "car": "Auto"}
VERBS = {"sees": "sieht", "likes": "mag", "hears": "hört"}
ADJECTIVES = {"big": "große", "small": "kleine", "old": "alte"}
CONTEXT = 31
TEXT = "the small dog sees a house ."
TOO_LONG = "the " + "old " * CONTEXT + "dog sees a cat ."


def sentences(count: int, seed: int, longest: int = 4) -> Sentences:
    """Return sentence pairs of 6 words and up to `longest` adjectives."""
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(count):
        first, second = rng.choice([*NOUNS], 2)
        verb, adjectives = rng.choice([*VERBS]), rng.choice([*ADJECTIVES], rng.integers(longest + 1))
        english = ["the", *adjectives, first, verb, "a", second, "."]
        german = ["das", *map(ADJECTIVES.get, adjectives), NOUNS[first], VERBS[verb], "ein", NOUNS[second], "."]
        pairs.append((" ".join(english), " ".join(german)))
    return pairs


SPLITS = {"train": sentences(400, 1), "validation": sentences(37, 2), "test": sentences(29, 3)}
VALIDATION = [source for source, _ in SPLITS["validation"]]


def write_pairs(folder: Path) -> Path:
    """Write a JSONL file for each split."""
    folder.mkdir()
    for split, pairs in SPLITS.items():
        write_rows(folder / f"{split}.jsonl", [{"en": source, "de": target} for source, target in pairs])
    return folder


QUICK = [
    "task=translation",
    "model=tiny",
    "model.dim=32",
    "context_length=31",
    "data.batch_tokens=400",
    "optimizer.lr=0.01",
    "schedule.warmup_steps=10",
    "trainer.max_epochs=2",
    "trainer.accelerator=cpu",
]
PIECES = ["tokenizer.max_size=310", "model.num_decoder_layers=2"]
WORDS = ["tokenizer=word", "tokenizer.min_document_frequency=1", "data.shared_vocabulary=false"]


@dataclass(frozen=True)
class Trained:
    """Finished run with its data."""

    run: Path
    data: Path

    def load(self) -> TranslatorRun:
        loaded = firstlight.load(self.run)
        assert isinstance(loaded, TranslatorRun)
        return loaded

    def record(self) -> dict[str, Any]:
        return json.loads((self.run / "metrics.json").read_text())


def train(folder: Path, *options: str) -> Trained:
    data = write_pairs(folder / "pairs")
    return Trained(Scripts(folder).train(*QUICK, f"data.path={data}", *options), data)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Return a translator with one subword vocabulary for both languages."""
    return train(tmp_path_factory.mktemp("translation"), *PIECES)


@pytest.fixture(scope="module")
def word_translator(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Return a translator with a word vocabulary for each language."""
    return train(tmp_path_factory.mktemp("words"), *WORDS, "callbacks.translations.beam_size=null")


@pytest.fixture
def any_translator(request: pytest.FixtureRequest) -> Trained:
    return request.getfixturevalue(request.param)


EITHER = pytest.mark.parametrize("any_translator", ["translator", "word_translator"], indirect=True)


# --- the run ---


def test_a_run_says_what_it_was_trained_on_and_how_good_it_is(translator: Trained) -> None:
    record = translator.record()
    data = record["data"]
    assert data["rows"] == {split: len(pairs) for split, pairs in SPLITS.items()}
    assert data["languages"] == ["en", "de"]
    names = ["accuracy", "bleu", "bleu_beam4", "chrf", "chrf_beam4", "loss", "perplexity"]
    assert sorted(record["metrics"]) == [f"{split}/{name}" for split in ("test", "val") for name in names]
    assert 0 < record["metrics"]["val/bleu"] < 100


def test_the_best_checkpoint_is_the_one_of_the_best_translations(translator: Trained) -> None:
    lines = [json.loads(line) for line in (translator.run / "history.jsonl").read_text().splitlines()]
    scores = [line["val/bleu"] for line in lines if "val/bleu" in line]
    assert len(scores) == 2
    assert translator.record()["metrics"]["val/bleu"] == max(scores)
    assert not any(name.startswith("val/") and "beam" in name for line in lines for name in line)  # not while it trains


@EITHER
def test_a_run_needs_nothing_but_its_folder(any_translator: Trained, tmp_path: Path) -> None:
    expected = list(any_translator.load().translate_many(VALIDATION))
    moved = shutil.copytree(any_translator.run, tmp_path / "run")
    root = any_translator.data.parent
    root.rename(root.with_name("away"))
    try:
        loaded = firstlight.load(moved)
        assert list(loaded.translate_many(VALIDATION)) == expected
    finally:
        root.with_name("away").rename(root)
    assert len(set(expected)) > 5


def test_every_example_of_a_translator_runs(translator: Trained) -> None:
    assert without_an_example(TranslatorRun) == []
    folder = translator.run.parents[3]
    assert run_examples(TranslatorRun, folder, firstlight=firstlight, run=translator.load()) > 10


# --- as an object ---


def test_many_sentences_are_translated_as_each_alone_and_in_their_order(translator: Trained) -> None:
    loaded = translator.load()
    texts = [source for source, _ in sentences(67, seed=5)]  # more than one batch
    texts[3] = texts[66] = ""
    texts[20] = " \n"
    together = list(loaded.translate_many(iter(texts), beam_size=1))
    assert together == [loaded.translate(text, beam_size=1) for text in texts]
    assert [i for i, text in enumerate(together) if not text] == [3, 20, 66]
    assert list(loaded.translate_many([])) == []


def test_sentences_beyond_the_context_are_cut_and_counted(translator, caplog) -> None:
    loaded = translator.load()
    ids = loaded.tokenizers.source.encode_batch([TOO_LONG])[0]
    beginning = loaded.tokenizers.source.decode(ids[:CONTEXT].tolist())
    assert len(loaded.tokenizers.source.encode_batch([beginning])[0]) == CONTEXT
    fitting = list(loaded.translate_many([TEXT, "", beginning, TEXT]))
    assert caplog.messages == []
    assert list(loaded.translate_many([TEXT, "", TOO_LONG, TEXT])) == fitting
    assert loaded.translate(TOO_LONG) == fitting[2]
    assert [message.partition(" longer")[0] for message in caplog.messages] == ["1 of 4 texts are", "1 of 1 texts are"]
    assert caplog.messages[0].endswith("longer than the context of 31 tokens and were cut")


def test_cross_attention_is_one_distribution_over_the_source_for_each_written_token(translator: Trained) -> None:
    loaded = translator.load()
    first, last = loaded.cross_maps(TEXT)
    assert "".join(last.keys) == TEXT.replace(" ", "")
    assert "".join(last.queries) == loaded.translate(TEXT, beam_size=1).replace(" ", "") + "[END]"
    assert last.weights.shape == (4, len(last.queries), len(last.keys))
    assert len(last.queries) != len(last.keys)
    np.testing.assert_allclose(last.weights.sum(axis=2), 1, atol=1e-5)
    assert last.weights.min() >= 0
    assert not np.allclose(first.weights, last.weights, atol=1e-3)
    assert not np.allclose(last.weights[0], last.weights[1], atol=1e-3)


# --- predict.py ---


def test_a_file_is_translated_row_by_row_and_keeps_its_columns(translator: Trained, scripts: Scripts) -> None:
    done = scripts.run("predict", str(translator.run), "--text", TEXT, 'A "quoted", ünknown word!')
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        translator.load().translate(text) for text in (TEXT, 'A "quoted", ünknown word!')
    ]
    texts = [*VALIDATION[:7], "", 'A "quoted", ünknown\nword!']
    rows = [{"id": f"{i}", "text": text, "translation": f"old {i}"} for i, text in enumerate(texts)]
    write_rows(scripts.folder / "in.csv", rows)
    scripts.succeed("predict", str(translator.run), "--input", "in.csv", "--output", "out.csv")
    found = read_csv(scripts.folder / "out.csv")
    assert [*found[0]] == ["id", "text", "given_translation", "translation"]
    expected = list(translator.load().translate_many(texts))
    assert expected[7] == ""
    for row, old, translation in zip(found, rows, expected, strict=True):
        assert row == old | {"given_translation": old["translation"], "translation": translation}


def test_the_search_is_chosen_on_the_command_line(translator: Trained, scripts: Scripts) -> None:
    """Compare with Python. Each setting changes some translations of this file."""
    write_rows(scripts.folder / "in.jsonl", [{"body": source} for source in VALIDATION])
    loaded, seen = translator.load(), []
    for options, arguments in [
        ({"beam_size": 1}, ["--beam-size", "1"]),
        ({"beam_size": 2, "length_penalty": 9.0}, ["--beam-size", "2", "--length-penalty", "9"]),
        ({"length_penalty": 0.0}, ["--length-penalty", "0"]),
    ]:
        command = ["--input", "in.jsonl", "--text-column", "body", "--output", "out.csv", *arguments]
        scripts.succeed("predict", str(translator.run), *command)
        seen.append([row["translation"] for row in read_csv(scripts.folder / "out.csv")])
        assert seen[-1] == list(loaded.translate_many(VALIDATION, **options))
    assert len({tuple(translations) for translations in seen}) == 3


def test_a_pair_beyond_the_context_does_not_end_an_evaluation(translator, scripts, caplog) -> None:
    pairs = [{"en": TEXT, "de": "das"}, {"en": TEXT, "de": TOO_LONG}, {"en": TOO_LONG, "de": "das"}]
    write_rows(scripts.folder / "long.csv", pairs)
    scripts.succeed("evaluate", str(translator.run), "--data.path", "long.csv", "--beam-size", "1")
    assert "2 of 3 texts are longer than the context of 31 tokens and were cut" in caplog.messages
    [folder] = (translator.run / "evaluate").glob("long-*-test-beam1")
    record = json.loads((folder / "metrics.json").read_text())
    assert (record["rows"], record["cut"]) == (3, 2)
    assert [row["reference"] for row in read_csv(folder / "translations.csv")] == [pair["de"] for pair in pairs]


# --- the other scripts ---


@EITHER
def test_an_evaluation_repeats_the_numbers_of_the_run(any_translator: Trained, scripts: Scripts) -> None:
    expected = any_translator.record()["metrics"]
    done = scripts.succeed("evaluate", str(any_translator.run), "--split", "validation")
    folder = any_translator.run / "evaluate" / "validation"
    record = json.loads((folder / "metrics.json").read_text())
    found = {name.replace("validation/", "val/"): value for name, value in record["metrics"].items()}
    assert found["val/bleu"] == pytest.approx(expected["val/bleu"], rel=1e-6)
    own = {name: value for name, value in expected.items() if name.startswith("val/")}
    assert {name: found[name] for name in own} == pytest.approx(own, rel=1e-5)
    assert (record["split"], record["rows"], record["checkpoint"]) == ("validation", len(VALIDATION), "best")
    rows = read_csv(folder / "translations.csv")
    assert [(row["source"], row["reference"]) for row in rows] == SPLITS["validation"]
    loaded = any_translator.load()
    assert [row["translation"] for row in rows] == list(loaded.translate_many(VALIDATION, beam_size=1))
    assert [row["translation_beam4"] for row in rows] == list(loaded.translate_many(VALIDATION))
    assert "|tok:13a|" in done.stdout  # without its signature, nobody can compare a BLEU
    assert SAMPLE_NOTE not in done.stdout


def test_other_pairs_can_be_evaluated_all_of_them(translator: Trained, scripts: Scripts) -> None:
    pairs = sentences(11, seed=7)
    (scripts.folder / "mine.en").write_text("".join(f"{source}\n" for source, _ in pairs), encoding="utf-8")
    (scripts.folder / "mine.de").write_text("".join(f"{target}\n" for _, target in pairs), encoding="utf-8")
    write_rows(scripts.folder / "rows.csv", [{"from": source, "to": target} for source, target in pairs])
    columns = ["--data.source-column", "from", "--data.target-column", "to"]
    records = []
    for name, arguments in {"mine": [], "rows.csv": columns}.items():
        scripts.succeed("evaluate", str(translator.run), "--data.path", name, "--beam-size", "2", *arguments)
        [folder] = (translator.run / "evaluate").glob(f"{Path(name).stem}-*-test-beam2")
        records.append(json.loads((folder / "metrics.json").read_text()))
        rows = read_csv(folder / "translations.csv")
        assert [(row["source"], row["reference"]) for row in rows] == pairs
        assert "translation_beam2" in rows[0]
    assert records[0]["metrics"] == records[1]["metrics"]


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("predict", ["--text", TEXT, "--beam-size", "0"], "beam_size=0 must be at least 1"),
        ("predict", ["--text", TEXT, " "], "--text: sentence 2 is empty; write a sentence or leave it out"),
        ("evaluate", ["--data.source-column", "fr"], "fr"),
        ("evaluate", ["--data.text-column", "en"], "--data.text-column does not apply to this kind of run"),
        (
            "evaluate",
            ["--data.path", "one.csv", "--split", "validation"],
            "one.csv has no splits and is read as the test split; leave",
        ),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(command, arguments, message, translator, scripts) -> None:
    write_rows(scripts.folder / "one.csv", [{"en": TEXT, "de": "das"}])
    before = sorted((translator.run / "evaluate").glob("*"))
    assert message in scripts.refuse(command, str(translator.run), *arguments)
    assert sorted((translator.run / "evaluate").glob("*")) == before
    assert {path.name for path in scripts.folder.iterdir()} - {"logs"} == {"one.csv"}  # logs has the cache


def test_explore_splits_a_single_file_as_a_training_does(translator: Trained, tmp_path: Path, scripts: Scripts) -> None:
    run = shutil.copytree(translator.run, tmp_path / "run")
    pairs = [{"en": f"a dog runs {number} .", "de": f"ein hund läuft {number} ."} for number in range(60)]
    path = tmp_path / "pairs.csv"
    write_rows(path, pairs)
    scripts.succeed("explore", str(run), "--data.path", str(path), "--figures", "pair_lengths")
    assert (run / "figures" / "pair_lengths.png").is_file()
