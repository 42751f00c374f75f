"""Classifiers of pairs of texts: training on a file in the format of SNLI, and everything that reads such a run."""

import csv
import random
from pathlib import Path

import pytest

import firstlight
from firstlight.classifier.insight import attributions
from firstlight.classifier.panel import ClassifierPanel
from firstlight.errors import UserError
from firstlight.files.rows import write_rows
from firstlight.kind.panel import Inputs
from tests_support import Scripts, read_csv, write_lines

DATA = ["task=reviews", "data.path=snli_1.0_train.jsonl", "context_length=13", "trainer.max_epochs=1"]
DATA += ["data.text_column=[sentence1,sentence2]", "data.label_column=gold_label"]
NOUNS, VERBS = ("dog", "boy", "nurse", "cook"), ("runs", "sleeps", "sings", "waits")
LABELS = ("entailment", "neutral", "contradiction")


def snli_rows(count: int, seed: int) -> list[dict[str, str]]:
    """Return rows with the columns of SNLI. They are written for this test."""
    chosen = random.Random(seed)
    rows = []
    for i in range(count):
        noun, verb, label = chosen.choice(NOUNS), chosen.choice(VERBS), LABELS[i % 3]
        other = chosen.choice([each for each in VERBS if each != verb])
        second = {"entailment": f"Somebody {verb}.", "neutral": f"The {noun} is old.", "contradiction": f"It {other}."}
        first = f"A {noun} {verb} near the house, number {i}."
        rows.append({"gold_label": label, "sentence1": first, "sentence2": second[label], "pairID": f"{seed}-{i}"})
    return rows


def shortest(tiny_training: list[str]) -> list[str]:
    """Return the overrides of the shortest training but those of its data and its length."""
    return [each for each in tiny_training if not each.startswith(("data.path=", "context_length=", "trainer.max_e"))]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, tiny_training: list[str]) -> tuple[Scripts, Path]:
    """Return a folder of scripts and a run that was trained on a file of pairs."""
    scripts = Scripts(tmp_path_factory.mktemp("pairs"))
    write_lines(scripts.folder / "snli_1.0_train.jsonl", snli_rows(101, seed=1))
    return scripts, scripts.train(*shortest(tiny_training), *DATA)


def test_a_run_of_pairs_predicts_pairs_and_strings_with_a_separator(home: tuple[Scripts, Path]) -> None:
    run = firstlight.load(home[1])
    assert set(run.class_names) == {"entailment", "neutral", "contradiction"}
    pair = ("A dog runs near the house.", "Somebody runs.")
    first, second, third = run.predict_many([pair, " ||| ".join(pair), pair[::-1]])
    assert first == second
    assert list(run.predict(pair).probabilities.values()) == pytest.approx(list(first.probabilities.values()), abs=1e-6)
    assert abs(third.probabilities["neutral"] - first.probabilities["neutral"]) > 1e-4
    assert run.predict((pair[0] * 9, pair[1])).label in run.class_names  # longer than the context
    with pytest.raises(UserError, match=r"write \|\|\| between the two"):
        run.predict("A dog runs.")
    with pytest.raises(UserError, match=r"^--long-texts windows requires a run of single texts without marks; leave"):
        run.predict(pair, long_texts="windows")


def test_the_words_of_both_texts_are_explained_and_the_marks_are_not(home: tuple[Scripts, Path]) -> None:
    run = firstlight.load(home[1])
    found = attributions(run, "A dog runs near the house. ||| Somebody sleeps.")
    marks = [i for i, word in enumerate(found.words) if word.startswith("[")]
    assert [found.words[i] for i in marks] == ["[START]", "[DELIMITER]", "[EXTRACT]"]
    assert found.scores[marks].tolist() == [0, 0, 0]
    panel = ClassifierPanel(run)
    panel.warm_up()
    assert all("|||" in example for example in panel.examples())
    assert "Type two texts with ||| between them." in panel.answer(Inputs({"text": "A dog runs."}))["notice"]
    assert "[DELIMITER]" in panel.answer(Inputs({"text": "A dog runs. ||| Somebody runs."}))["words"]["words"]


def test_a_file_is_predicted_by_the_columns_of_the_training(home: tuple[Scripts, Path]) -> None:
    scripts, run = home
    rows = snli_rows(7, seed=2)
    columns = [{"sentence2": row["sentence2"], "id": row["pairID"], "sentence1": row["sentence1"]} for row in rows]
    write_rows(scripts.folder / "new.csv", [row | {"other": row["sentence2"]} for row in columns])
    scripts.succeed("predict", str(run), "--input", "new.csv", "--output", "out.csv")
    labels = [line["label"] for line in read_csv(scripts.folder / "out.csv")]
    loaded = firstlight.load(run)
    assert labels == [each.label for each in loaded.predict_many((row["sentence1"], row["sentence2"]) for row in rows)]
    same = scripts.run("predict", str(run), "--input", "new.csv", "--text-column", "sentence1,other")
    assert [line["label"] for line in csv.DictReader(same.stdout.splitlines())] == labels
    wrong = scripts.refuse("predict", str(run), "--input", "new.csv", "--text-column", "sentence1,nothing")
    assert "there is no column nothing; set --text-column to one of" in wrong


def test_a_run_that_reads_both_orders_predicts_the_same_for_an_exchanged_pair(home, tiny_training) -> None:
    scripts, _ = home
    run = firstlight.load(scripts.train(*shortest(tiny_training), *DATA, "data.both_orders=true", "test=false"))
    first, second = run.probabilities([("A dog runs.", "It sings."), ("It sings.", "A dog runs.")])
    assert first == pytest.approx(second, abs=1e-6)
    texts = ("A dog runs ||| it sings", "It sings ||| a dog runs")
    one, other = (attributions(run, text).scores for text in texts)
    assert one[[1, 2, 3, 5, 6]] == pytest.approx(other[[4, 5, 6, 1, 2]], abs=1e-5)
