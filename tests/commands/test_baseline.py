"""Tests of the baselines: their metrics on the data of a training, and their records."""

import csv
import json
import math
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from firstlight.classifier import baseline as baseline_classifier
from firstlight.classifier.baseline import NaiveBayesRegression
from firstlight.errors import UserError
from firstlight.figures import calibration_bins
from firstlight.generator.baseline import _splits, token_losses
from firstlight.generator.data import CharacterData
from firstlight.generator.kind import CharacterDataNode
from firstlight.kind.kind import best_of
from firstlight.runs.named import find_run
from firstlight.runs.predictions import read_predictions
from firstlight.text.normalize import words
from tests_support import Scripts


def measured(scripts: Scripts, *arguments: str) -> tuple[Path, dict]:
    """Return the folder and the record of a baseline."""
    scripts.succeed("baseline", *arguments)
    files = (scripts.folder / "logs").glob("*/baseline/*/metrics.json")
    newest = max(files, key=lambda file: file.stat().st_mtime_ns)
    return newest.parent, json.loads(newest.read_text())


def reviews(folder: Path, split: str) -> tuple[list[str], list[int]]:
    lines = [json.loads(line) for line in (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()]
    return [line["text"] for line in lines], [int(line["label"]) for line in lines]


@pytest.fixture(scope="module")
def stars(tmp_path_factory: pytest.TempPathFactory, reviews_folder: Path) -> tuple[Path, dict]:
    """Return the baseline of five stars, which is fitted once for all tests that only read it."""
    scripts = Scripts(tmp_path_factory.mktemp("baseline"))
    return measured(scripts, "--task", "stars", "--data.path", str(reviews_folder))


def test_the_record_is_that_of_a_training_on_the_same_data(stars, trained) -> None:
    training = json.loads((trained("stars") / "metrics.json").read_text())
    _, record = stars
    assert training.keys() <= record.keys()
    assert record["data"] == training["data"]
    measured_here = {"val/calibration_error", "test/calibration_error"}  # and by evaluate.py
    assert record["metrics"].keys() == training["metrics"].keys() | measured_here
    assert record["seconds"].keys() == training["seconds"].keys()
    assert training["versions"].items() <= record["versions"].items()
    for key in ("task", "seed", "tags", "git", "status", "reason", "optimized_metric"):
        assert record[key] == training[key], key
    assert record["model"] == "tfidf"


def test_the_numbers_are_those_of_a_regression_in_a_few_lines(stars: tuple[Path, dict], reviews_folder: Path) -> None:
    def words_and_pairs(text: str) -> list[str]:
        found = words(text)
        return found + [" ".join(pair) for pair in pairwise(found)]

    _, record = stars
    vectorizer = TfidfVectorizer(analyzer=words_and_pairs, sublinear_tf=True)
    texts, labels = reviews(reviews_folder, "train")
    features = vectorizer.fit_transform(texts)
    model = LogisticRegression(C=record["chosen"]["C"], max_iter=1000).fit(features, labels)
    assert record["parameters"] == 5 * (features.shape[1] + 1)
    for stage, split in (("val", "validation"), ("test", "test")):
        texts, labels = reviews(reviews_folder, split)
        shares = model.predict_proba(vectorizer.transform(texts))
        off = np.abs(shares.argmax(axis=1) - np.array(labels))
        expected = {"accuracy": (off == 0).mean(), "mean_absolute_error": off.mean()}
        expected["calibration_error"] = calibration_bins(shares, np.array(labels)).error
        expected["loss"] = -np.log(shares[np.arange(len(labels)), labels]).mean()
        found = {name: record["metrics"][f"{stage}/{name}"] for name in expected}
        assert found == pytest.approx(expected, abs=1e-3), split


@pytest.fixture
def one_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let baselines try one strength of the regularization only."""
    monkeypatch.setattr(baseline_classifier, "REGULARIZATION", (1.0,))


def test_tfidf_of_the_most_frequent_words_has_no_pairs(scripts: Scripts, reviews_folder: Path, one_fit: None) -> None:
    _, record = measured(scripts, "--task", "sentiment", "--data.path", str(reviews_folder), "--max-words", "7")
    assert record["parameters"] == 7 + 1
    assert "max_words=7" in record["overrides"]


@pytest.mark.parametrize("num_classes", [2, 3])
def test_nb_svm_is_a_regression_of_each_class_on_features_times_their_log_count_ratios(num_classes: int) -> None:
    random = np.random.default_rng(1)
    features, targets = random.poisson(0.7, (60, 7)).astype(float), random.integers(num_classes, size=60)
    model = NaiveBayesRegression(C=3.0, max_iter=1000).fit(csr_matrix(features), targets)
    shares = []
    for label in range(num_classes):
        own, others = ((features[targets == label] > 0).sum(0) + 1, (features[targets != label] > 0).sum(0) + 1)
        weighted = features * np.log((own / own.sum()) / (others / others.sum()))
        alone = LogisticRegression(C=3.0, max_iter=1000).fit(weighted, targets == label)
        shares.append(alone.predict_proba(weighted)[:, 1])
    expected = np.stack(shares, axis=1)
    expected = expected / expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(csr_matrix(features)), expected, atol=1e-3)


def test_a_row_of_weight_2_counts_in_nb_svm_as_two_rows() -> None:
    features, targets = csr_matrix([[1.0, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]]), np.array([0, 1, 0, 1])
    weighted = NaiveBayesRegression(max_iter=1000).fit(features, targets, np.array([1.0, 2, 1, 1]))
    rows = np.array([0, 1, 1, 2, 3])
    repeated = NaiveBayesRegression(max_iter=1000).fit(features[rows], targets[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)


def test_nb_svm_recognizes_words_that_it_has_not_seen_by_their_letters(scripts: Scripts, one_fit: None) -> None:
    rows = [f"this {'un' if number % 2 else ''}word{number},{number % 2}" for number in range(1000, 1100)]
    (scripts.folder / "mine.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    folder, record = measured(scripts, "--task", "reviews", "--data.path", "mine.csv", "--method", "nb-svm")
    assert (record["model"], record["metrics"]["test/accuracy"]) == ("nb-svm", 1.0)
    assert "method=nb-svm" in record["overrides"]
    assert read_predictions(folder / "predictions" / "test.npz").correct.all()
    assert record["metrics"]["val/accuracy"] == 1.0


def test_the_best_regularization_of_validation_is_taken(stars: tuple[Path, dict]) -> None:
    _, record = stars
    tried = record["tried"]["C"]
    chosen = tried[f"{record['chosen']['C']:g}"]
    assert len(tried) > 2
    assert len({metrics["val/loss"] for metrics in tried.values()}) == len(tried)
    assert chosen["val/accuracy"] == max(metrics["val/accuracy"] for metrics in tried.values())
    assert chosen.items() <= record["metrics"].items()


def test_of_equal_accuracies_the_one_with_the_lowest_loss_is_taken() -> None:
    values = {0.3: (0.9, 0.52), 3.0: (0.9, 0.11), 30.0: (0.8, 0.1)}
    tried = {inverse: {"val/accuracy": accuracy, "val/loss": loss} for inverse, (accuracy, loss) in values.items()}
    assert best_of(tried, "val/accuracy") == 3.0
    assert best_of(tried, "val/loss") == 30.0


def test_predictions_and_confusion_matrices_are_saved_as_a_training_saves_them(stars, trained) -> None:
    folder, record = stars
    for stage, split in (("val", "validation"), ("test", "test")):
        ours, theirs = (read_predictions(each / "predictions" / f"{split}.npz") for each in (folder, trained("stars")))
        assert ours.key == theirs.key, "the same texts"
        assert ours.correct.mean() == pytest.approx(record["metrics"][f"{stage}/accuracy"])
        assert ours.losses.mean() == pytest.approx(record["metrics"][f"{stage}/loss"], rel=1e-3)
        largest = np.bincount(ours.targets).max() / len(ours.targets)  # all classes of the sample have the same size
        assert record["references"]["largest_class"][f"{stage}/accuracy"] == pytest.approx(largest)
        assert record["references"]["chance"][f"{stage}/accuracy"] == 1 / 5
        cells = list(csv.DictReader((folder / "confusion_matrix" / f"{split}.csv").open(encoding="utf-8")))
        hits = [int(cell["count"]) for cell in cells if cell["true"] == cell["predicted"]]
        assert (sum(hits), sum(int(cell["count"]) for cell in cells)) == (ours.correct.sum(), len(ours.correct))
        assert len(ours.correct) == record["data"]["rows"][split]
        assert (folder / "confusion_matrix" / f"{split}.png").stat().st_size > 0


def test_other_data_is_measured_with_the_words_of_the_training(scripts: Scripts, one_fit: None) -> None:
    rows = [f"{word} film number {number},{number % 2}" for number, word in enumerate(["awful", "great"] * 30)]
    (scripts.folder / "films.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    stars = ["an awful thing,1", "awful,2", "so so,3", "great,4", "a great thing,5", "awful but cheap,5"]
    (scripts.folder / "stars.csv").write_text("\n".join(["text,label", *stars]) + "\n")
    folder, record = measured(
        *(scripts, "--task", "movies", "--data.path", "films.csv", "--data.validation-fraction", "0.2"),
        *("--other.path", "stars.csv", "--other.labels", "binary", "--other.lowest-label", "1"),
    )
    assert record["metrics"]["other/accuracy"] == pytest.approx(4 / 5)
    predictions = read_predictions(folder / "predictions" / "other.npz")
    assert predictions.targets.tolist() == [0, 0, 1, 1, 1], "three stars are left out"
    assert predictions.predicted.tolist() == [0, 0, 1, 1, 0]
    assert "other.labels=binary" in record["overrides"]


def test_ngrams_of_a_text_that_is_counted_by_hand(scripts: Scripts) -> None:
    """Train on 95 times ab. In the validation split ababababab, 5 b and 4 a follow the first letter."""
    (scripts.folder / "ab.txt").write_text("ab" * 100)
    _, record = measured(scripts, "--task", "text", "--data.path", "ab.txt")
    size = record["data"]["vocab_size"]
    either = (95 + 2 / size) / (190 + 2)
    b_after_a, a_after_b = (95 + either) / (95 + 1), (94 + either) / (94 + 1)
    tried = record["tried"]["order"]
    assert list(tried) == ["1", "2", "3", "4", "5", "6"]
    assert tried["1"]["val/loss"] == pytest.approx(-math.log(either))
    assert tried["2"]["val/loss"] == pytest.approx(-(5 * math.log(b_after_a) + 4 * math.log(a_after_b)) / 9)
    assert record["metrics"]["val/perplexity"] == pytest.approx(math.exp(record["metrics"]["val/loss"]))
    assert record["metrics"]["val/bits_per_character"] == pytest.approx(record["metrics"]["val/loss"] / math.log(2))
    windowed = math.log(tried["6"]["val/windowed_perplexity"])
    assert windowed == pytest.approx(tried["6"]["val/loss"])  # the split is shorter than one window
    assert record["chosen"] == {"order": 6}
    assert record["parameters"] == 6 * 2  # of each length, one that begins with a and one with b
    assert not any(name.startswith("test/") for name in record["metrics"])
    assert record["model"] == "ngrams"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the baseline of generated names, and its output."""
    scripts = Scripts(tmp_path_factory.mktemp("names"))
    done = scripts.succeed("baseline", "--task", "names", "--data.source", "sample")
    [folder] = (scripts.folder / "logs" / "names" / "baseline").iterdir()
    return folder, done.stdout


def test_the_order_is_chosen_on_validation_and_measured_on_test(names: tuple[Path, str]) -> None:
    folder, _ = names
    record = json.loads((folder / "metrics.json").read_text())
    losses = {int(order): metrics["val/loss"] for order, metrics in record["tried"]["order"].items()}
    chosen = min(losses, key=lambda order: losses[order])
    assert record["chosen"] == {"order": chosen}
    assert record["metrics"]["val/loss"] == losses[chosen]
    data = data_of(folder)
    training, test = (data.ids(data.stream(split)) for split in ("train", "test"))
    *_, whole = token_losses(training, test, data.tokenizer.vocab_size, chosen)
    assert record["metrics"]["test/loss"] == pytest.approx(whole[1:].mean())  # the first token is not predicted


def test_the_windowed_losses_are_those_of_each_window_alone(names: tuple[Path, str]) -> None:
    """Score each window of the context as a text of its own, whose first token is given."""
    folder, _ = names
    record = json.loads((folder / "metrics.json").read_text())
    data = data_of(folder)
    training, test = data.ids(data.stream("train")), data.ids(data.stream("test"))
    size, order, context = data.tokenizer.vocab_size, record["chosen"]["order"], data.options.context_length
    *_, split = _splits(data, training, "test", order)
    found = split.windowed
    for start in (0, context, 3 * context, (len(test) - 2) // context * context):
        *_, alone = token_losses(training, test[start : start + context + 1], size, order)
        assert found[start : start + context] == pytest.approx(alone[1:], rel=1e-5)
    assert record["metrics"]["test/windowed_loss"] == pytest.approx(found.mean(), rel=1e-5)
    assert record["metrics"]["test/windowed_loss"] > record["metrics"]["test/loss"]


def data_of(folder: Path) -> CharacterData:
    """Return the data of a baseline according to its config.yaml."""
    from omegaconf import OmegaConf

    saved = OmegaConf.load(folder / "config.yaml")["data"]
    options = vars(OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(CharacterDataNode), saved)))
    data = CharacterData(**{name: value for name, value in options.items() if name != "_target_"})
    data.setup("fit")
    return data


def test_the_end_shows_both_splits_and_calls_a_sample_a_sample(names: tuple[Path, str]) -> None:
    folder, printed = names
    metrics = json.loads((folder / "metrics.json").read_text())["metrics"]
    [row] = (line for line in printed.splitlines() if " perplexity" in line and "order=" not in line)
    assert row.index(f"{metrics['val/perplexity']:.4f}") < row.index(f"{metrics['test/perplexity']:.4f}")
    assert "GENERATED SAMPLE" in printed
    assert f"The baseline is in logs/names/baseline/{folder.name}" in printed


def test_a_baseline_is_no_run_that_could_predict(stars: tuple[Path, dict]) -> None:
    folder, _ = stars
    for name in ("latest", "best:val/accuracy"):
        with pytest.raises(UserError, match=r"no trained run (below|has)"):
            find_run(name, folder.parents[2])


def test_a_bad_row_is_named_and_the_record_says_that_it_failed(scripts: Scripts) -> None:
    (scripts.folder / "mine.csv").write_text("text,label\ngood,4\nbad,0\ngreat,5\n")
    error = scripts.refuse("baseline", "--task", "stars", "--data.path", "mine.csv")
    assert "mine.csv:4: label 5 is outside 0 to 4; set --data.lowest-label 1 if" in error
    [file] = (scripts.folder / "logs").glob("stars/baseline/*/metrics.json")
    record = json.loads(file.read_text())
    assert record["status"] == "failed"
    assert "mine.csv:4" in record["reason"]


def test_texts_without_a_word_are_a_mistake_of_the_data(scripts: Scripts) -> None:
    lines = [f"{mark},{number % 2}" for number, mark in enumerate("!?" * 20)]
    (scripts.folder / "mine.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    error = scripts.refuse("baseline", "--task", "reviews", "--data.path", "mine.csv")
    assert "the training texts have no words; check --data.text-column" in error


def test_finished_folds_are_not_measured_again_and_all_are_pooled(scripts: Scripts, one_fit: None) -> None:
    lines = [json.dumps({"text": f"{'good' if n % 2 else 'bad'} film {n}", "label": n % 2}) for n in range(60)]
    (scripts.folder / "own.jsonl").write_text("\n".join(lines))
    options = ("--task", "reviews", "--data.path", "own.jsonl")
    scripts.succeed("baseline", *options, "--data.folds", "3", "--data.fold", "1")
    shown = scripts.succeed("baseline", *options, "--folds", "3").stdout
    assert shown.count("is finished: ") == 1
    assert "Fold 1 is finished: logs/reviews/baseline/" in shown
    assert re.search(r"tfidf *│ *60 *│ *3 *│ *– *│ *100.00 ± 0.00%", shown)
    assert len(list((scripts.folder / "logs" / "reviews" / "baseline").iterdir())) == 3
    assert "--folds 1 must be at least 2" in scripts.refuse("baseline", *options, "--folds", "1")


def test_an_interrupted_baseline_says_so(scripts: Scripts, reviews_folder: Path, monkeypatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(baseline_classifier, "fit", interrupt)
    done = scripts.run("baseline", "--task", "stars", "--data.path", str(reviews_folder))
    assert done.returncode == 130
    [file] = (scripts.folder / "logs").glob("stars/baseline/*/metrics.json")
    assert json.loads(file.read_text())["status"] == "interrupted"
