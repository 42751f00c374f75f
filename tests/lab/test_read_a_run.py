"""Predicting with, evaluating and loading a trained run, which is all that is needed for it."""

import csv
import io
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import firstlight
from firstlight.commands import generate, predict
from firstlight.commands.predict import PredictOptions, columns_of, rows_of
from firstlight.errors import UserError
from firstlight.files.rows import Row, write_rows
from firstlight.kind.registry import KINDS
from firstlight.spelling import kept
from tests_support import Scripts, sample_reviews, sample_rows

Trained = Callable[[str], Path]


@pytest.fixture
def runs(trained: Trained) -> dict[str, Path]:
    """Two runs that are trained before the test begins, since a training replaces the handlers of the log."""
    return {task: trained(task) for task in ("sentiment", "stars")}


def test_a_prediction_is_the_label_and_the_probabilities_as_in_python(trained: Trained, scripts: Scripts) -> None:
    texts = ["It's great, (really)! 5/5: café", "Bad"]
    lines = scripts.succeed("predict", str(trained("sentiment")), "--text", *texts).stdout.splitlines()
    for line, found in zip(lines, firstlight.load(trained("sentiment")).predict(texts), strict=True):
        shares = (f"{name} {share:.3f}" for name, share in found.probabilities.items())
        assert line.split() == f"{found.label} ({' '.join(shares)})".split()


def test_many_texts_are_judged_as_each_alone(trained: Trained) -> None:
    run = firstlight.load(trained("stars"))
    texts = [review["text"] for review in sample_rows("reviews", 37)] + [""]
    together = list(run.predict_many(texts))
    for text, prediction in zip(texts, together, strict=True):
        alone = run.predict(text)
        assert alone.label == prediction.label
        assert alone.probabilities == pytest.approx(prediction.probabilities, abs=1e-5)


@pytest.mark.parametrize("text", ["", "!!!", "word " * 200_000, "\ud800", "[PAD] [UNK]"])
def test_an_odd_review_is_judged_all_the_same(text: str, trained: Trained) -> None:
    prediction = firstlight.load(trained("sentiment")).predict(text)
    assert sum(prediction.probabilities.values()) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "txt"])
def test_a_file_is_scored_row_by_row(ending: str, trained: Trained, scripts: Scripts) -> None:
    texts = [review["text"] for review in sample_rows("reviews", 11)]
    source, target = scripts.folder / f"in.{ending}", scripts.folder / "out.csv"
    if ending == "txt":
        source.write_text("\n".join(texts) + "\n", encoding="utf-8")
    else:
        write_rows(source, [{"text": text, "label": 3} for text in texts])
    scripts.succeed("predict", str(trained("sentiment")), "--input", str(source), "--output", str(target))
    rows = list(csv.DictReader(target.open(encoding="utf-8")))
    assert [row["text"] for row in rows] == texts
    assert {row["label"] for row in rows} <= {"negative", "positive"}
    assert all(float(row["probability_positive"]) + float(row["probability_negative"]) > 0.999 for row in rows)
    assert ending == "txt" or all(row["given_label"] == "3" for row in rows)


def test_predict_reads_the_lines_of_standard_input(trained, scripts, monkeypatch) -> None:
    lines = "It works, and it looks good.\r\nDer Geschmack ist süß.\n"
    (scripts.folder / "lines.txt").write_text(lines, encoding="utf-8")
    expected = scripts.run("predict", str(trained("sentiment")), "--input", "lines.txt").stdout
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode()), encoding="ascii"))
    done = scripts.succeed("predict", str(trained("sentiment")), "--input", "-")
    assert done.stdout == expected
    assert "süß" in done.stdout
    (scripts.folder / "lines.txt").write_text(lines, encoding="cp1252")
    asked = ["predict", str(trained("sentiment")), "--input", "lines.txt"]
    assert "set --encoding, such as cp1252" in scripts.run(*asked).stderr
    assert scripts.run(*asked, "--encoding", "cp1252").stdout == expected
    assert "--encoding utf-16 must be an encoding" in scripts.run(*asked, "--encoding", "utf-16").stderr


def test_standard_input_that_cannot_be_read_is_one_line() -> None:
    texts = [row.values["text"] for row in rows_of(io.BytesIO(b"\xef\xbb\xbfone\n\ntwo"), "cp1252")]
    assert texts == ["one", "", "two"]
    with pytest.raises(UserError, match=r"standard input:2: byte 0x\w\w is not UTF-8"):
        list(rows_of(io.BytesIO(b"one\n\xff\n"), "utf-8"))


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        (predict, ["--text", "It works."], r"RUN is missing; name a run .* latest --text 'It works.'$"),
        (predict, ["latest", "It works."], r"It works.: a text follows --text; write .* latest --text 'It works.'$"),
        (generate, ["latest", "The king"], r"The king: a text follows --prompt; write .* latest --prompt 'The king'$"),
    ],
)
def test_a_text_without_a_run_or_an_option_is_answered_with_the_command(
    command, arguments, message, monkeypatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["command", *arguments])
    with pytest.raises(UserError, match=message), kept():
        command.main()


def test_a_broken_line_leaves_no_half_written_output(trained: Trained, scripts: Scripts) -> None:
    source = scripts.folder / "in.jsonl"
    source.write_text('{"text": "good"}\n{"text": \n', encoding="utf-8")
    error = scripts.refuse("predict", str(trained("sentiment")), "--input", "in.jsonl", "--output", "out.csv")
    assert "in.jsonl:2" in error
    assert [path.name for path in scripts.folder.iterdir()] == ["in.jsonl"]


def test_texts_beyond_the_context_are_cut_and_counted(runs: dict[str, Path], caplog: pytest.LogCaptureFixture) -> None:
    run = firstlight.load(runs["sentiment"])
    long = " ".join(["good"] * 23)
    expected = run.predict(long)
    assert caplog.messages == []
    assert run.predict(f"{long} good").probabilities == expected.probabilities
    assert len(list(run.predict_many(iter([long, f"{long} bad", "good", f"{long} good"])))) == 4
    assert caplog.messages == [
        "1 of 1 texts are longer than the context of 23 tokens and were cut",
        "2 of 4 texts are longer than the context of 23 tokens and were cut",
    ]


def test_a_long_text_is_predicted_by_the_mean_logits_of_its_windows(runs: dict[str, Path], caplog) -> None:
    run = firstlight.load(runs["stars"])
    words = ("good bad it broke works great looks cheap " * 8).split()[:50]  # context 23
    windows = [" ".join(words[start : start + 23]) for start in (0, 13, 27)]
    expected = run.logits(run.encode(windows)).mean(dim=0).softmax(dim=0)
    found = run.predict(" ".join(words), long_texts="windows")
    assert list(found.probabilities.values()) == pytest.approx(expected.tolist(), abs=1e-6)
    assert found.probabilities != run.predict(" ".join(words)).probabilities
    assert caplog.messages == ["1 of 1 texts are longer than the context of 23 tokens and were cut"]
    assert list(run.rows(windows, "windows")) == list(run.rows(windows))
    with pytest.raises(ValueError, match=r"^long_texts='half' must be one of cut, windows"):
        run.predict("good", long_texts="half")


def test_an_evaluation_repeats_the_numbers_of_the_run(runs, scripts, caplog) -> None:
    for task, run in runs.items():
        assert scripts.run("evaluate", str(run)).returncode == 0
        written = run / "evaluate" / "test"
        record, expected = (json.loads((each / "metrics.json").read_text()) for each in (written, run))
        metrics = expected["metrics"]
        assert ("test/auc" in record["metrics"]) == (task == "sentiment")  # of two classes, and of no training
        assert 0 <= record["metrics"].pop("test/calibration_error") <= 1  # of no training
        record["metrics"].pop("test/auc", None)
        assert record["metrics"] == pytest.approx({name: metrics[name] for name in record["metrics"]}, rel=1e-5)
        for name in ("confusion_matrix.png", "confusion_matrix.csv", "probability_per_star.png"):
            assert (written / name).stat().st_size > 0
        rows = list(csv.DictReader((written / "predictions.csv").open(encoding="utf-8")))
        assert {row["label"] for row in rows} == {"1 star", "2 stars", "3 stars", "4 stars", "5 stars"}
        num_left_out = sum(row["label"] == "3 stars" for row in rows) if task == "sentiment" else 0
        assert (len(rows), record["rows"], record["left_out"]) == (100, 100 - num_left_out, num_left_out)
        tokenizer = firstlight.load(run).tokenizer
        num_cut = int((tokenizer.encode_batch([row["text"] for row in rows]).lengths > 23).sum())
        assert record["cut"] == num_cut > 1
        assert f"{num_cut} of 100 texts are longer than the context of 23 tokens and were cut" in caplog.messages


def test_other_data_can_be_evaluated_and_rows_of_the_training_are_counted(runs, scripts, caplog) -> None:
    reviews = [*sample_reviews(15, "test"), *sample_reviews(5)]  # the run was trained on the last ones
    write_rows(scripts.folder / "mine.csv", [{"body": row["text"], "score": row["label"] + 1} for row in reviews])
    columns = ["--data.text-column", "body", "--data.label-column", "score"]
    run = str(runs["stars"])
    error = scripts.refuse("evaluate", run, "--data.path", "mine.csv", *columns)
    assert "label 5 is outside 0 to 4; set --data.lowest-label 1" in error
    scripts.succeed("evaluate", run, "--data.path", "mine.csv", *columns, "--data.lowest-label", "1")
    assert json.loads(next((Path(run) / "evaluate").glob("mine-*-test/metrics.json")).read_text())["rows"] == 20
    assert "mine.csv: the run was trained on 5 of these 20 test texts" in caplog.messages
    assert scripts.run("evaluate", run, "--split", "train").returncode == 0
    assert "the run was trained on these 600 rows" in caplog.messages


def test_labels_that_may_be_stars_or_classes_are_refused_unless_it_is_said(runs, scripts, caplog) -> None:
    run = tmp_copy(runs["sentiment"], scripts.folder)
    (scripts.folder / "mine.csv").write_text("text,label\nbad,1\ngood,2\n")
    asked = ["evaluate", str(run), "--data.path", "mine.csv"]
    assert "lowest" in scripts.refuse(*asked)
    assert not (run / "evaluate").exists()
    for option, value, line in (
        ("lowest-label", "1", "labels 1, 2 → negative, positive"),
        ("labels", "stars", "labels 1 → negative (2 left out)"),
    ):
        done = scripts.succeed(*asked, f"--data.{option}", value)
        assert line in done.stdout
    assert "mine.csv, test split: no row is positive" in caplog.text
    error = scripts.refuse("evaluate", str(runs["stars"]), "--data.path", "mine.csv", "--data.labels", "classes")
    assert "--data.labels classes: the run predicts stars; leave it out" in error


def test_the_column_of_the_training_is_predicted_if_the_input_has_it() -> None:
    def chosen(kind: str, *columns: str) -> list[str]:
        data = {"source_column": "en", "target_column": "de"} if kind == "translator" else {"text_column": "body"}
        run = object.__new__(KINDS[kind].get("run"))
        run.config = {"data": data}
        return columns_of(PredictOptions("run"), run.text_columns, Row(1, dict.fromkeys(columns)))

    assert chosen("classifier", "id", "body", "text") == ["body"]
    assert chosen("classifier", "id", "text") == ["text"]
    assert chosen("translator", "de", "en") == ["en"]
    assert chosen("translator", "id", "text") == ["text"]
    assert columns_of(PredictOptions("run"), ["b", "a"], Row(1, {"a": "", "b": "", "text": ""})) == ["b", "a"]


def tmp_copy(run: Path, folder: Path) -> Path:
    """A run of a test's own, without evaluations."""
    return Path(shutil.copytree(run, folder / "run", ignore=shutil.ignore_patterns("evaluate")))


def test_an_evaluation_never_falls_back_to_other_data(scripts: Scripts, tmp_path: Path, small_sample: str) -> None:
    quick = ["trainer.max_steps=1", "trainer.limit_val_batches=1", "trainer.limit_test_batches=1", small_sample]
    quick += ["++callbacks.confusion_matrix=null"]
    run = scripts.train("model=tiny", "data.source=auto", *quick)
    own = tmp_path / "data" / "amazon_reviews"
    own.mkdir(parents=True)
    for split in ("train", "validation", "test"):
        (own / f"{split}.jsonl").write_text('{"text": "good", "label": 4}\n{"text": "bad", "label": 0}\n')
    assert "the run was trained on other data than data/amazon_reviews" in scripts.refuse("evaluate", str(run))
    done = scripts.succeed("evaluate", str(run), "--data.source", "sample", "--split", "validation")
    assert "generated sample" in done.stdout
